/* SPDX-License-Identifier: MIT */
/*
 * The shortest loop of updates, in docs/how-to/inline.md.
 *
 * ctest: not-with thread (one thread)
 */
#include <prudence/inline.h>
#include <prudence/prudence.h>
#include <prudence/rcu.h>

struct object {
    int contents;
};

struct entry {
    struct object *object;
};

int main(void)
{
    struct prudence_cache *cache = prudence_cache_create("objects", sizeof(struct object), NULL);
    struct object *spare = prudence_cache_alloc(cache), *old;
    struct entry one = {.object = NULL}, *entry = &one;

    for (int i = 0; i < 1000; i++) {
        const struct object new_contents = {.contents = i};

        *spare = new_contents;
        old = entry->object;
        prudence_assign_pointer(entry->object, spare);
        spare = prudence_cache_replace(cache, old);
    }
    prudence_cache_free(cache, spare);
    return entry->object->contents != 999;
}
