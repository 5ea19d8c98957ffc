/* SPDX-License-Identifier: MIT */
/* A reader that stays and is outlived, of docs/how-to/rcu.md. */
#include <prudence/epoch.h>
#include <prudence/hazard.h>
#include <prudence/prudence.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

struct route {
    int hop;
};

static struct route *current;
static struct prudence_cache *routes;
static atomic_bool is_inside, asked, may_end;

static bool make_routes(void)
{
    struct prudence_domain *both[] = {
        prudence_default_domain(), prudence_domain_create("names", PRUDENCE_DOMAIN_HAZARD, NULL)};
    struct prudence_cache_attr attr = {.size = sizeof attr};

    attr.domain = prudence_domain_create_set("outlived", both, 2);
    routes = attr.domain ? prudence_cache_create("routes", sizeof(struct route), &attr) : NULL;
    return routes != NULL;
}

static void ask(void *unused)
{
    (void)unused;
    atomic_store(&asked, true);
}

/* Uses one route for long. Returns its hop. */
static int stay(void)
{
    struct prudence_kick kick = {.size = sizeof kick, .function = ask, .after = 1000000 /* ns */};
    struct prudence_hazard *name = prudence_hazard_acquire();
    struct route *found;
    bool inside = true;

    prudence_kick_set(prudence_default_domain(), &kick);
    prudence_read_lock();
    found = prudence_dereference(current);
    atomic_store(&is_inside, true);
    while (!atomic_load(&may_end)) { /* the work */
        if (inside && atomic_load(&asked)) {
            prudence_hazard_set(name, found); /* keeps this route */
            prudence_read_unlock();           /* and no other; `current` is not read any more */
            inside = false;
        }
    }
    if (inside)
        prudence_read_unlock();
    prudence_kick_set(prudence_default_domain(), NULL);
    int hop = found->hop;
    prudence_hazard_release(name);
    return hop;
}

static void *reader(void *hop)
{
    *(int *)hop = stay();
    return NULL;
}

static bool replace(int hop)
{
    struct route *fresh = prudence_cache_alloc(routes), *old = current;

    if (!fresh)
        return false;
    fresh->hop = hop;
    prudence_assign_pointer(current, fresh);
    prudence_cache_free_deferred(routes, old);
    return true;
}

int main(void)
{
    pthread_t thread;
    int hop = -1, updates = 1;
    bool right = make_routes() && replace(0);

    if (!right || pthread_create(&thread, NULL, reader, &hop) != 0)
        return 1;
    while (!atomic_load(&is_inside))
        ;
    while (right && !atomic_load(&asked))
        right = replace(updates++);
    for (int i = 0; right && i < 100000; i++)
        right = replace(updates++);
    atomic_store(&may_end, true);
    pthread_join(thread, NULL);
    printf("the reader's hop: %d, after %d updates\n", hop, updates);
    return right && hop == 0 ? 0 : 1;
}
