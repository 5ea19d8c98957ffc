/* SPDX-License-Identifier: MIT */
/*
 * Walks over the heap while threads allocate, free, defer, shrink and fork.
 *
 * Three caches and malloc. In each, some objects stay live and some stay latent (their domain's
 * grace periods never end) from the first to the last walk: each walk shows each of them once, in
 * that state. A thread holds one object of the busy cache at a time, so no slab of it has more live
 * objects than there are threads: an object that is free, cached or latent, or moves between two
 * places, is never shown as a live one.
 */
#define _GNU_SOURCE
#include "support/gp_torture.h"

#include <sys/wait.h>
#include <unistd.h>

#include <prudence/heap_walk.h>

#define THREADS 6
#define KEPT    3000
#define LATENT  3000
#define BURST   200

static struct prudence_cache *kept_cache, *latent_cache, *busy;
static void *kept[KEPT], *latent[LATENT], *blocks[KEPT];
static uint64_t walks, forks;

/* ------------------------------------------------------------------------------------- one walk */

struct seen {
    unsigned char kept[KEPT], latent[LATENT], blocks[KEPT];
};

static int by_address(const void *a, const void *b)
{
    uintptr_t first = (uintptr_t) * (void *const *)a, second = (uintptr_t) * (void *const *)b;

    return first < second ? -1 : first > second;
}

/* Returns -1 if the object is not in the list. */
static long index_of(void *const *objects, unsigned count, const void *object)
{
    void *const *found = bsearch(&object, objects, count, sizeof *objects, by_address);

    return found ? found - objects : -1;
}

static void see(unsigned char *seen, long index, const struct prudence_heap_object *object,
                unsigned state, const char *what)
{
    if (index < 0)
        return;
    seen[index]++;
    if (object->state != state)
        torture_violation("%s object %p is shown in state %u", what, object->address,
                          object->state);
}

static int visit(const struct prudence_heap_slab *slab, const struct prudence_heap_object *object,
                 void *context)
{
    struct seen *seen = context;

    if (!object) {
        if (slab->cache == busy && slab->live > THREADS)
            torture_violation("a slab with %lu live objects of the busy cache",
                              (unsigned long)slab->live);
        return slab->cache == busy ? PRUDENCE_HEAP_SKIP : 0;
    }
    see(seen->kept, index_of(kept, KEPT, object->address), object, PRUDENCE_OBJECT_LIVE, "live");
    see(seen->blocks, index_of(blocks, KEPT, object->address), object, PRUDENCE_OBJECT_LIVE,
        "live");
    see(seen->latent, index_of(latent, LATENT, object->address), object, PRUDENCE_OBJECT_LATENT,
        "latent");
    return 0;
}

static void each_once(const unsigned char *seen, unsigned count, const char *what)
{
    for (unsigned i = 0; i < count; i++)
        if (seen[i] != 1)
            torture_violation("%s object %u was shown %u times", what, i, seen[i]);
}

/* Allocates nothing, because AddressSanitizer's malloc may be locked in a child. */
static void walk(void)
{
    struct seen seen = {0};
    int error = prudence_heap_walk(NULL, visit, &seen);

    if (error)
        torture_violation("error %d", error);
    each_once(seen.kept, KEPT, "live");
    each_once(seen.blocks, KEPT, "malloc's");
    each_once(seen.latent, LATENT, "latent");
}

/* ---------------------------------------------------------------------------------- the threads */

static void *walker(void *unused)
{
    while (!torture_stopped()) {
        walk();
        __atomic_fetch_add(&walks, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

/* Allocates and frees objects one at a time; large blocks too, which move. */
static void *churn(void *number)
{
    uint64_t random = (uintptr_t)number * 77 + 1;

    while (!torture_stopped()) {
        for (unsigned i = 0; i < BURST; i++) {
            void *object = prudence_cache_alloc(busy);

            if (torture_below(&random, 3))
                prudence_cache_free_deferred(busy, object);
            else
                prudence_cache_free(busy, object);
        }
        if (torture_below(&random, 20) == 0)
            prudence_cache_shrink(torture_below(&random, 2) ? busy : latent_cache);
        if (torture_below(&random, 8) == 0)
            prudence_free(prudence_realloc(prudence_malloc(40000 + torture_below(&random, 200000)),
                                           40000 + torture_below(&random, 3000000)));
        if (torture_below(&random, 50) == 0)
            prudence_trim();
    }
    return NULL;
}

/* A child of a process in the middle of walks walks the heap, too. */
static void *forker(void *unused)
{
    while (!torture_stopped()) {
        int status = 0;
        pid_t child = fork();

        if (child == 0) {
            alarm(60);
            torture_violations = 0; /* count only the child's own */
            walk();
            walk();
            _exit(torture_violations ? 1 : 0);
        }
        if (child < 0 || waitpid(child, &status, 0) != child || status)
            torture_violation("a child ended with status %#x", (unsigned)status);
        forks++;
        usleep(20000);
    }
    return NULL;
}

static void set_up(void)
{
    struct prudence_domain *stays = prudence_domain_create("stays", PRUDENCE_DOMAIN_MANUAL, NULL);
    struct prudence_cache_attr attr = {.size = sizeof attr, .domain = stays};

    kept_cache = prudence_cache_create("kept", 48, NULL);
    latent_cache = prudence_cache_create("latent", 96, &attr);
    busy = prudence_cache_create("busy", 200, NULL);
    for (unsigned i = 0; i < KEPT; i++) {
        kept[i] = prudence_cache_alloc(kept_cache);
        blocks[i] = prudence_malloc(i % 100 ? 24 + i % 500 : 50000);
    }
    for (unsigned i = 0; i < LATENT; i++)
        latent[i] = prudence_cache_alloc(latent_cache);
    for (unsigned i = 0; i < LATENT; i++)
        prudence_cache_free_deferred(latent_cache, latent[i]);
    qsort(kept, KEPT, sizeof *kept, by_address);
    qsort(blocks, KEPT, sizeof *blocks, by_address);
    qsort(latent, LATENT, sizeof *latent, by_address);
}

static int run(const char *variant, double seconds)
{
    torture_pretend_idle();
    set_up();
    torture_start(churn, THREADS, 0);
    torture_start(walker, 2, 0);
    if (TORTURE_CHILD_THREADS) /* background=1 makes one in each child */
        torture_start(forker, 1, 0);
    torture_run(seconds);
    walk();
    TORTURE_CHECK(walks > 0);
    TORTURE_SAY({"walks", walks}, {"forks", forks});
    return torture_end(variant);
}

TORTURE(run, {"rseq", "background=1,preflush=1"}, {"lock", "background=1,preflush=1,rseq=0"})
