/* SPDX-License-Identifier: MIT */
/*
 * Values under names in an ordered map, in docs/how-to/structures.md.
 *
 * ctest: not-with thread (one thread)
 */
#include <prudence/prudence.h>
#include <prudence/rcu.h>
#include <string.h>

struct user {
    int id;
};

#include <prudence/map_values.h>

static int set_owner(struct prudence_map_values *owners, const char *name, struct user *user)
{
    void *old;
    int error =
        prudence_map_values_put_bytes(owners, name, strlen(name), user, &old); /* in no section */

    if (!error)
        prudence_free_deferred(old); /* readers may still have it; NULL is ignored */
    return error;
}

static int id_of_owner(struct prudence_map_values *owners, const char *name)
{
    const struct user *user;
    int id;

    prudence_read_lock();
    user = prudence_map_values_get_bytes(owners, name, strlen(name));
    id = user ? user->id : -1;
    prudence_read_unlock();
    return id;
}

int main(void)
{
    const struct prudence_map_values_attr attr = {.size = sizeof attr,
                                                  .flags = PRUDENCE_MAP_VALUES_BYTES};
    struct prudence_map_values *owners = prudence_map_values_create("owners", &attr);

    for (int id = 1; id < 4; id++) {
        struct user *user = prudence_malloc(sizeof *user);

        user->id = id;
        if (set_owner(owners, id == 2 ? "eve" : "adam", user))
            return 1;
    }
    return id_of_owner(owners, "adam") != 3 || id_of_owner(owners, "eve") != 2 ||
           id_of_owner(owners, "abel") != -1;
}
