/* SPDX-License-Identifier: MIT */
/* The program in README.md. */
#include <prudence/rcu.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static struct route {
    int next_hop;
} * current; /* all threads read it, one thread replaces it */

static void replace(struct prudence_cache *cache, int next_hop)
{
    struct route *fresh = prudence_cache_alloc(cache), *old = current;
    if (!fresh)
        abort(); /* there is no memory */
    fresh->next_hop = next_hop;
    prudence_assign_pointer(current, fresh);  /* from now on readers find the new route */
    prudence_cache_free_deferred(cache, old); /* reused when no reader can hold the old one */
}

static void *reader(void *unused)
{
    for (int hop = 0; hop < 1000000;) {
        prudence_read_lock(); /* about a nanosecond, never waits */
        hop = prudence_dereference(current)->next_hop;
        prudence_read_unlock();
    }
    return unused;
}

int main(void)
{
    struct prudence_cache *cache = prudence_cache_create("routes", sizeof(struct route), NULL);
    pthread_t thread;
    if (!cache)
        abort();
    replace(cache, 0); /* the first old route is NULL, which is ignored */
    pthread_create(&thread, NULL, reader, NULL);
    for (int hop = 1; hop <= 1000000; hop++)
        replace(cache, hop);
    pthread_join(thread, NULL);
    printf("last hop: %d\n", current->next_hop);
}
