/* SPDX-License-Identifier: MIT */
/*
 * Values under numbers in a hash table, in docs/how-to/structures.md.
 *
 * ctest: not-with thread (one thread)
 */
#include <prudence/hash_values.h>
#include <prudence/prudence.h>
#include <prudence/rcu.h>

struct session {
    int user;
};

static int set_session(struct prudence_hash_values *sessions, uint64_t number,
                       struct session *session)
{
    void *old;
    int error = prudence_hash_values_put(sessions, number, session, &old); /* in no section */

    if (!error && old != session)
        prudence_free_deferred(old); /* readers may still have it; NULL is ignored */
    return error;
}

static bool is_logged_in(struct prudence_hash_values *sessions, uint64_t number)
{
    bool found;

    prudence_read_lock();
    found = prudence_hash_values_get(sessions, number) != NULL;
    prudence_read_unlock();
    return found;
}

int main(void)
{
    struct prudence_hash_values *sessions = prudence_hash_values_create("sessions", NULL);

    for (int user = 1; user < 4; user++) {
        struct session *session = prudence_malloc(sizeof *session);

        session->user = user;
        if (set_session(sessions, 7, session))
            return 1;
    }
    return !is_logged_in(sessions, 7) || is_logged_in(sessions, 8) ||
           prudence_hash_values_count(sessions) != 1;
}
