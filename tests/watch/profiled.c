/* SPDX-License-Identifier: MIT */
/*
 * A program with a known profile, compiled by test_profile.py.
 *   - leaks_some: 64 MB in objects of 1000 bytes that no thread frees. Inlined.
 *   - uses_much: 256 MB, each object freed at once.
 *   - storms: 10 MB of the cache 'routes' deferred. A reader keeps them latent until the profile is
 *     written.
 *   - Until a second profile is written, leaks_more leaks 32 MB, refills replaces the entries of a
 *     table of 1 MB, and storms defers again.
 */
#include <stdlib.h>
#include <string.h>

#include <prudence/rcu.h>
#include <prudence/stats.h>

#define NOINLINE __attribute__((noinline))

static void *volatile kept[64 << 10];

static inline __attribute__((always_inline)) void leaks_one(int place)
{
    kept[place] = prudence_malloc(1000);
}

static NOINLINE void leaks_some(void)
{
    for (int i = 0; i < 64 << 10; i++)
        leaks_one(i);
}

static NOINLINE void leaks_more(void)
{
    for (int i = 0; i < 32 << 10; i++)
        leaks_one(i);
}

static NOINLINE void refills(void *volatile *table, int rounds)
{
    for (int i = 0; i < rounds << 10; i++) {
        prudence_free(table[i & 1023]);
        table[i & 1023] = prudence_malloc(1000);
    }
}

static NOINLINE void uses_much(void)
{
    for (int i = 0; i < 256 << 10; i++) {
        kept[0] = prudence_malloc(1024);
        prudence_free(kept[0]);
    }
}

static NOINLINE void storms(struct prudence_cache *routes)
{
    for (int i = 0; i < 20 << 10; i++) {
        void *route = prudence_cache_alloc(routes);

        memset(route, 1, 512);
        prudence_cache_free_deferred(routes, route);
    }
}

int main(int count, char **arguments)
{
    struct prudence_cache *routes = prudence_cache_create("routes", 512, NULL);
    static void *volatile table[1024];
    int error;

    leaks_some();
    refills(table, 4);
    uses_much();
    prudence_read_lock();
    storms(routes);
    error = count > 1 ? prudence_profile_dump(arguments[1]) : 0;
    prudence_read_unlock();
    storms(routes);
    leaks_more();
    refills(table, 32);
    return error || count < 3 ? error : prudence_profile_dump(arguments[2]);
}
