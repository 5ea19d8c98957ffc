/* SPDX-License-Identifier: MIT */
/*
 * Reader-writer-lock/RCU analogy: a list of routes that was guarded by a reader-writer lock,
 * translated word by word. Each intermediate state of a writer must be safe to search.
 * docs/how-to/pattern-rwlock-analogy.md
 */
#include "example.h"

#include <prudence/rculist.h>

#define ROUTES 16

struct route {
    struct prudence_list link;
    unsigned address;
    long hop;
};

static struct prudence_list routes = PRUDENCE_LIST_INIT(routes);
static struct prudence_cache *cache;

static struct route *make(unsigned address, long hop)
{
    struct route *route = prudence_cache_alloc(cache);

    MUST(route);
    route->address = address;
    route->hop = hop;
    return route;
}

static struct route *search(unsigned address)
{
    struct route *route;

    prudence_list_for_each_entry_rcu(route, &routes, link)
    {
        if (route->address == address)
            return route;
    }
    return NULL;
}

/* --------------------------------------------------------------------------------------- before */

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

static long read_before(unsigned random)
{
    struct route *route;
    long hop;

    pthread_rwlock_rdlock(&lock);
    route = search(random % ROUTES);
    hop = route ? route->hop : WRONG;
    pthread_rwlock_unlock(&lock);
    return hop;
}

static void update_before(unsigned random)
{
    struct route *fresh = make(random % ROUTES, random), *old;

    pthread_rwlock_wrlock(&lock);
    old = search(random % ROUTES);
    prudence_list_del_rcu(&old->link);
    prudence_list_add_rcu(&fresh->link, &routes);
    pthread_rwlock_unlock(&lock);
    prudence_cache_free(cache, old);
}

/* ---------------------------------------------------------------------------------------- after */

static pthread_mutex_t writers = PTHREAD_MUTEX_INITIALIZER;

static long read_after(unsigned random)
{
    struct route *route;
    long hop;

    prudence_read_lock();
    route = search(random % ROUTES);
    hop = route ? route->hop : WRONG;
    prudence_read_unlock();
    return hop;
}

static void update_after(unsigned random)
{
    struct route *fresh = make(random % ROUTES, random), *old;

    pthread_mutex_lock(&writers);
    old = search(random % ROUTES);
    if (mistake) { /* word by word; but here readers do not wait until both steps are done */
        prudence_list_del_rcu(&old->link);
        meanwhile();
        prudence_list_add_rcu(&fresh->link, &routes);
    } else {
        prudence_list_replace_rcu(&old->link, &fresh->link); /* one step */
        meanwhile();
    }
    pthread_mutex_unlock(&writers);
    prudence_cache_free_deferred(cache, old);
}

/* ---------------------------------------------------------------------------------------- check */

static long found;

static void look_up(void)
{
    found = read_after(3);
}

static const char *check(void)
{
    example_meanwhile = look_up;
    update_after(3);
    return found == WRONG ? "a route that exists all the time was not found" : NULL;
}

static void set_up(void)
{
    MUST(cache = prudence_cache_create("routes", sizeof(struct route), NULL));
    for (unsigned i = 0; i < ROUTES; i++)
        prudence_list_add_rcu(&make(i, i)->link, &routes);
}
