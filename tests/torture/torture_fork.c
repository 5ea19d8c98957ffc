/* SPDX-License-Identifier: MIT */
/*
 * Forks under load: threads allocate, defer, read, create and destroy caches, while several threads
 * fork, inside and outside read-side critical sections. Each child allocates, defers, synchronizes,
 * starts threads, forks again, and destroys caches. A child that hangs or fails is a violation.
 */
#define _GNU_SOURCE
#include "support/gp_torture.h"

#define WORKERS  4
#define FORKERS  2
#define POINTERS 8
#define PATIENCE 20 /* seconds; a child needs a few milliseconds */

struct object {
    struct torture_mark mark;
    uint64_t words[28];
};

static struct object *pointers[POINTERS];
static struct prudence_cache *cache;
static uint64_t births, updates, forks, fork_ns, fork_ns_max;
static unsigned threads_begun;

static struct object *object_make(void)
{
    struct object *object = prudence_cache_alloc(cache);

    if (!object) {
        torture_violation("no memory");
        _exit(3);
    }
    torture_check_reuse(&object->mark, prudence_default_domain());
    __atomic_store_n(&object->mark.birth, __atomic_add_fetch(&births, 1, __ATOMIC_RELAXED),
                     __ATOMIC_RELAXED);
    torture_mark_set(&object->mark, TORTURE_LIVE, 0);
    for (unsigned i = 0; i < 28; i++)
        __atomic_store_n(&object->words[i], object->mark.birth + i, __ATOMIC_RELAXED);
    return object;
}

static void replace(uint64_t *random)
{
    struct object *old = __atomic_exchange_n(&pointers[torture_below(random, POINTERS)],
                                             object_make(), __ATOMIC_ACQ_REL);

    torture_mark_set(&old->mark, TORTURE_RETIRED, prudence_gp_get_state().private_value);
    prudence_cache_free_deferred(cache, old);
}

/* Inside a section. */
static void look(uint64_t *random)
{
    struct object *object = prudence_dereference(pointers[torture_below(random, POINTERS)]);
    uint64_t birth = __atomic_load_n(&object->mark.birth, __ATOMIC_RELAXED);

    for (unsigned i = 0; i < 28; i++)
        if (__atomic_load_n(&object->words[i], __ATOMIC_RELAXED) != birth + i)
            torture_violation("object %p changed inside a section", (void *)object);
}

static void churn_sizes(uint64_t *random)
{
    size_t size = 1 + torture_below(random, torture_below(random, 10) ? 3000 : 100000);
    char *object = prudence_malloc(size);

    object[0] = object[size - 1] = 1;
    if (torture_below(random, 2))
        prudence_free(object);
    else
        prudence_free_deferred(object);
}

static void short_lived_cache(uint64_t *random)
{
    struct prudence_cache *other = prudence_cache_create("short-lived", 100, NULL);

    for (unsigned i = torture_below(random, 200); i > 0; i--)
        prudence_cache_free_deferred(other, prudence_cache_alloc(other));
    TORTURE_CHECK(prudence_cache_destroy(other) == 0);
}

static void one_step(uint64_t *random, unsigned steps)
{
    while (steps-- > 0) {
        unsigned dice = torture_below(random, 1000);

        if (dice < 600)
            replace(random);
        else if (dice < 900)
            churn_sizes(random);
        else if (dice < 902 && !prudence_read_lock_held())
            short_lived_cache(random);
        else if (dice < 903)
            prudence_trim();
        else {
            prudence_read_lock();
            look(random);
            prudence_read_unlock();
        }
    }
}

/* All threads are there before the first fork: AddressSanitizer's lock of its list of threads, held where one
 * is being made, would stay locked in the child, which makes some, too. */
static void wait_for_all(void)
{
    __atomic_fetch_add(&threads_begun, 1, __ATOMIC_RELAXED);
    while (__atomic_load_n(&threads_begun, __ATOMIC_RELAXED) < WORKERS + FORKERS)
        torture_sleep_us(100);
}

static void *worker(void *argument)
{
    uint64_t random = (uint64_t)(uintptr_t)argument, done = 0;

    wait_for_all();
    for (; !torture_stopped(); done++)
        one_step(&random, 20);
    __atomic_fetch_add(&updates, done, __ATOMIC_RELAXED);
    return NULL;
}

/* ------------------------------------------------------------------------------------ children */

static void *childs_thread(void *argument)
{
    uint64_t random = (uint64_t)(uintptr_t)argument;

    one_step(&random, 200);
    return NULL;
}

static void check_only_me(void)
{
    struct prudence_stats stats;

    prudence_stats(&stats);
    TORTURE_CHECK(stats.readers <= 1);
}

/* What every child must be able to do; returns its exit status. */
static int be_child(bool inside, bool again, uint64_t random)
{
    alarm(PATIENCE); /* kills it where torture_wait cannot */
    torture_violations = 0;
    check_only_me();
    if (inside) {
        prudence_gp_t cookie;

        TORTURE_CHECK(prudence_read_lock_held());
        look(&random);
        cookie = prudence_gp_start_poll();
        TORTURE_CHECK(!prudence_gp_poll_state(cookie)); /* this very section is in the way */
        one_step(&random, 50);
        prudence_read_unlock();
        TORTURE_CHECK(prudence_gp_poll_state(cookie));
    }
    TORTURE_CHECK(!prudence_read_lock_held());
    one_step(&random, 300);
    prudence_synchronize();
    if (torture_below(&random, 4) == 0 && !TORTURE_TSAN) { /* TSan: no threads after such a fork */
        pthread_t thread = torture_thread(childs_thread, (void *)(uintptr_t)77);

        one_step(&random, 100);
        pthread_join(thread, NULL);
    }
    if (again) {
        pid_t grandchild = fork();

        if (grandchild == 0)
            _exit(be_child(false, false, random));
        if (torture_wait(grandchild, PATIENCE) != 0)
            torture_violation("a grandchild failed");
    }
    for (unsigned i = 0; i < POINTERS; i++)
        prudence_cache_free_deferred(cache, pointers[i]);
    prudence_trim();
    return torture_violations ? 4 : 0;
}

static void *forker(void *argument)
{
    uint64_t random = (uint64_t)(uintptr_t)argument;

    wait_for_all();
    while (!torture_stopped()) {
        bool inside = torture_below(&random, 3) == 0;
        uint64_t began, took, seed = torture_random(&random) | 1, most;
        pid_t child;
        int status;

        if (inside)
            prudence_read_lock();
        began = torture_now();
        child = fork();
        if (child == 0)
            _exit(be_child(inside, torture_below(&random, 8) == 0, seed));
        took = torture_now() - began;
        if (inside)
            prudence_read_unlock();
        one_step(&random, 20);
        status = torture_wait(child, PATIENCE);
        if (status != 0)
            torture_violation("child %d%s ended with status %#x", (int)child,
                              inside ? " (forked inside a section)" : "", (unsigned)status);
        __atomic_fetch_add(&forks, 1, __ATOMIC_RELAXED);
        __atomic_fetch_add(&fork_ns, took, __ATOMIC_RELAXED);
        most = __atomic_load_n(&fork_ns_max, __ATOMIC_RELAXED);
        while (took > most && !__atomic_compare_exchange_n(&fork_ns_max, &most, took, false,
                                                           __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            ;
    }
    return NULL;
}

static int torture(const char *variant, double seconds)
{
    pthread_t workers[WORKERS], forkers[FORKERS];

    if (TORTURE_TSAN) /* which does not bear threads in a child of a threaded process */
        prudence_option_set("background", "0");
    torture_pretend_idle();
    cache = prudence_cache_create("torture", sizeof(struct object), NULL);
    for (unsigned i = 0; i < POINTERS; i++)
        pointers[i] = object_make();
    for (uintptr_t i = 0; i < WORKERS; i++)
        workers[i] = torture_thread(worker, (void *)(i + 1));
    for (uintptr_t i = 0; i < FORKERS; i++)
        forkers[i] = torture_thread(forker, (void *)(i + 100));
    torture_sleep_us((unsigned)(seconds * 1e6));
    torture_stop();
    for (unsigned i = 0; i < FORKERS; i++)
        pthread_join(forkers[i], NULL);
    for (unsigned i = 0; i < WORKERS; i++)
        pthread_join(workers[i], NULL);
    for (unsigned i = 0; i < POINTERS; i++)
        prudence_cache_free_deferred(cache, pointers[i]);
    TORTURE_CHECK(prudence_cache_destroy(cache) == 0);
    printf(": forks=%llu steps=%llu fork mean=%llu us max=%llu us", (unsigned long long)forks,
           (unsigned long long)updates * 20,
           (unsigned long long)(fork_ns / (forks + !forks) / 1000),
           (unsigned long long)fork_ns_max / 1000);
    return torture_end(variant);
}

int main(int argc, char **argv)
{
    static const struct torture_variant variants[] = {
        {"default", ""},
        {"background", "background=1"},
        {"lock", "rseq=0,background=1"},
        {"no membarrier", "membarrier=0"},
        {"watched", "guard=10,check=1,quarantine=4M,zero_on_free=1"},
    };

    return torture_main(argc, argv, variants, sizeof variants / sizeof variants[0], torture);
}
