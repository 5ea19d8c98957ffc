/* SPDX-License-Identifier: MIT */
/* The program of README.md. */
#include <prudence/prudence.h>
#include <prudence/rcu.h>
#include <pthread.h>
#include <stdio.h>

struct route {
    int next_hop;
};
static struct route *current; /* read by anybody, replaced by one writer at a time */

static int lookup(void)
{
    prudence_read_lock(); /* about a nanosecond, never waits */
    int hop = prudence_dereference(current)->next_hop;
    prudence_read_unlock();
    return hop;
}

static void replace(struct prudence_cache *cache, int next_hop)
{
    struct route *fresh = prudence_cache_alloc(cache), *old = current;
    fresh->next_hop = next_hop;
    prudence_assign_pointer(current, fresh);  /* new readers find the new one */
    prudence_cache_free_deferred(cache, old); /* reusable once old readers are gone */
}

static void *reader(void *unused)
{
    while (lookup() < 1000000) {
    }
    return unused;
}

int main(void)
{
    struct prudence_cache *cache = prudence_cache_create("routes", sizeof(struct route), NULL);
    pthread_t thread;
    replace(cache, 0); /* the first old one is NULL, which is ignored */
    pthread_create(&thread, NULL, reader, NULL);
    for (int hop = 1; hop <= 1000000; hop++)
        replace(cache, hop);
    pthread_join(thread, NULL);
    printf("last hop: %d\n", lookup());
}
