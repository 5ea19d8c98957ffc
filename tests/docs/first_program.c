/* SPDX-License-Identifier: MIT */
/*
 * The program in docs/tutorial/first-program.md.
 *
 * ctest: not-with thread (readme.c has the same threads)
 */
#include <prudence/prudence.h>
#include <prudence/rcu.h>
#include <prudence/stats.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct route {
    int next_hop;
};

static struct route *current;

static int lookup(void)
{
    prudence_read_lock();
    int hop = prudence_dereference(current)->next_hop;
    prudence_read_unlock();
    return hop;
}

static void *read_all(void *unused)
{
    while (lookup() < 1000000) {
    }
    return unused;
}

static void replace(struct prudence_cache *cache, int next_hop)
{
    struct route *old = current;
    struct route *fresh = prudence_cache_alloc(cache);

    if (!fresh)
        abort();
    fresh->next_hop = next_hop;
    prudence_assign_pointer(current, fresh);
    prudence_cache_free_deferred(cache, old);
}

int main(void)
{
    struct prudence_cache *cache = prudence_cache_create("routes", sizeof(struct route), NULL);
    pthread_t reader;

    if (!cache)
        abort();
    replace(cache, 0);
    pthread_create(&reader, NULL, read_all, NULL);
    for (int hop = 1; hop <= 1000000; hop++)
        replace(cache, hop);
    pthread_join(reader, NULL);
    prudence_stats_print(stdout, PRUDENCE_STATS_TEXT);
}
