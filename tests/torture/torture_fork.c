/* SPDX-License-Identifier: MIT */
/*
 * Forks under load: threads allocate, defer, read, create and destroy caches, while several threads
 * fork, inside and outside read-side critical sections, in callbacks and destructors. Work is in
 * flight at all times: callbacks, destructors of both kinds, barriers, domains that come and go,
 * short-term memory, liburcu's workers. Each child does all that, too, starts threads, forks again,
 * and waits for all pending work. A child that hangs or fails is a violation.
 *
 * ctest: not-with thread (ThreadSanitizer: no threads in forked children, no exit beside threads)
 * ctest: not-with address (gcc 12's holds no lock of its allocator over fork: few children hang)
 * ctest: inlined-too
 */
#define _GNU_SOURCE
#include <prudence/call.h>
#include <prudence/scm.h>
#include <prudence/urcu-compat.h>

#include "support/gp_torture.h"

#define WORKERS  4
#define FORKERS  2
#define POINTERS 8
/* Seconds. A child needs a few milliseconds, but processors may be busy with others. A child's
 * own children have half as long, so that the report names the one that hangs. */
#define PATIENCE 60

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

/* Looks at an object, inside a section. */
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

/* ---------------------------------------------------------------------------- work in flight */

static void fork_here(void)
{
    static uint64_t seed = 4711;
    pid_t child = fork();

    if (child == 0) {
        uint64_t random = torture_random(&seed) | 1;

        for (unsigned i = 0; i < 20; i++)
            churn_sizes(&random);
        _exit(torture_violations ? 4 : 0);
    }
    if (torture_wait(child, PATIENCE / 2.0) != 0)
        torture_violation("the child of a callback or destructor failed");
}

static void rarely_fork_here(void)
{
    static unsigned turns;

    if (__atomic_fetch_add(&turns, 1, __ATOMIC_RELAXED) % 4096 == 4095)
        fork_here();
}

/* Callback for an object that contains its head; liburcu's functions queue it as well. */
static void called(struct prudence_head *head)
{
    rarely_fork_here();
    prudence_free_deferred(head);
}

static void queue(uint64_t *random)
{
    struct prudence_head *head = prudence_malloc(sizeof *head + torture_below(random, 200));

    if (torture_below(random, 2))
        prudence_call(head, called);
    else
        prudence_urcu_call(NULL, (struct rcu_head *)head,
                           (void (*)(struct rcu_head *))(void (*)(void))called);
}

enum { DESTROYED = 0x0dead, TO_DESTROY = 0x0a11fe };

struct destroyed {
    uint32_t state;
    char rest[60];
};

static struct prudence_cache *soon, *lazy;

static void destroy(void *object, void *unused)
{
    struct destroyed *mine = object;

    if (__atomic_exchange_n(&mine->state, DESTROYED, __ATOMIC_SEQ_CST) != TO_DESTROY)
        torture_violation("an object is destroyed twice, or was not given away");
    rarely_fork_here();
}

static void destroy_some(struct prudence_cache *of, uint64_t *random)
{
    for (unsigned i = torture_below(random, 40); i > 0; i--) {
        struct destroyed *object = prudence_cache_alloc(of);

        __atomic_store_n(&object->state, TO_DESTROY, __ATOMIC_SEQ_CST);
        prudence_cache_free_deferred(of, object);
    }
}

static void short_lived_domain(uint64_t *random)
{
    struct prudence_domain *domain = prudence_domain_create(
        "short-lived", torture_below(random, 2) ? PRUDENCE_DOMAIN_MEMB : PRUDENCE_DOMAIN_SRCU,
        NULL);
    struct prudence_cache_attr attr = {.size = sizeof attr, .domain = domain};
    struct prudence_cache *other = prudence_cache_create("of a domain", 100, &attr);

    for (unsigned i = torture_below(random, 100); i > 0; i--)
        prudence_cache_free_deferred(other, prudence_cache_alloc(other));
    TORTURE_CHECK(prudence_domain_synchronize(domain) == 0);
    TORTURE_CHECK(prudence_cache_destroy(other) == 0);
    TORTURE_CHECK(prudence_domain_destroy(domain) == 0);
}

static void short_term(uint64_t *random)
{
    struct scm_clock *clock;

    scm_register_thread();
    clock = scm_clock_create();
    for (unsigned i = torture_below(random, 30); i > 0; i--) {
        scm_refresh(scm_malloc(50), torture_below(random, 3));
        if (clock)
            scm_clock_refresh(clock, scm_malloc(50), 1);
        scm_tick();
    }
    if (clock)
        scm_clock_destroy(clock);
    scm_unregister_thread();
}

static void short_lived_worker(uint64_t *random)
{
    struct call_rcu_data *worker = prudence_urcu_create(NULL, 0, -1);

    if (!worker)
        return;
    prudence_urcu_set_thread(NULL, worker);
    for (unsigned i = torture_below(random, 20); i > 0; i--)
        queue(random);
    prudence_urcu_set_thread(NULL, NULL);
    if (torture_below(random, 2))
        prudence_urcu_barrier(NULL);
    prudence_urcu_free(worker);
}

/* Makes a call that may wait for a grace period, or for a callback. */
static void wait_for_something(uint64_t *random)
{
    switch (torture_below(random, 8)) {
    case 0:
        TORTURE_CHECK(prudence_barrier() == 0);
        break;
    case 1:
        TORTURE_CHECK(prudence_cache_barrier(soon) == 0);
        break;
    case 2:
        TORTURE_CHECK(prudence_cache_barrier(lazy) == 0);
        break;
    case 3:
        if (!TORTURE_ASAN)
            short_lived_worker(random);
        break;
    case 4:
        short_lived_domain(random);
        break;
    case 5:
        prudence_cache_shrink(lazy);
        break;
    default:
        short_lived_cache(random);
    }
}

static void one_step(uint64_t *random, unsigned steps)
{
    while (steps-- > 0) {
        unsigned dice = torture_below(random, 1000);

        if (dice < 530)
            replace(random);
        else if (dice < 560)
            queue(random);
        else if (dice < 590)
            destroy_some(dice % 2 ? soon : lazy, random);
        else if (dice < 600)
            short_term(random);
        else if (dice < 900)
            churn_sizes(random);
        else if (dice < 903 && !prudence_read_lock_held())
            wait_for_something(random);
        else if (dice < 904)
            prudence_trim();
        else {
            prudence_read_lock();
            look(random);
            prudence_read_unlock();
        }
    }
}

/* Waits until all threads exist before the first fork: AddressSanitizer holds locks while a
 * thread starts or ends, which would stay locked in a child that starts threads, too. For the
 * same reason, with it no threads come and go beside forks. */
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

/* Does everything that a child must be able to do; returns its exit status. */
static int be_child(bool inside, bool again, uint64_t random)
{
    alarm(2 * PATIENCE); /* if torture_wait, which reports more, cannot end it */
    torture_violations = 0;
    check_only_me();
    if (inside) {
        prudence_gp_t cookie;

        TORTURE_CHECK(prudence_read_lock_held());
        look(&random);
        cookie = prudence_gp_start_poll();
        TORTURE_CHECK(!prudence_gp_poll_state(cookie)); /* this section itself holds it up */
        one_step(&random, 50);
        prudence_read_unlock();
        TORTURE_CHECK(prudence_gp_poll_state(cookie));
    }
    TORTURE_CHECK(!prudence_read_lock_held());
    one_step(&random, 300);
    prudence_synchronize();
    /* ThreadSanitizer allows no threads after such a fork */
    if (torture_below(&random, 4) == 0 && !TORTURE_TSAN) {
        pthread_t thread = torture_thread(childs_thread, (void *)(uintptr_t)77);

        one_step(&random, 100);
        pthread_join(thread, NULL);
    }
    if (again && !TORTURE_ASAN) {
        pid_t grandchild = fork();

        if (grandchild == 0)
            _exit(be_child(false, false, random));
        if (torture_wait(grandchild, PATIENCE / 2.0) != 0)
            torture_violation("a grandchild failed");
    }
    for (unsigned i = 0; i < POINTERS; i++)
        prudence_cache_free_deferred(cache, pointers[i]);
    for (unsigned i = 0; i < 2; i++)
        TORTURE_CHECK(prudence_cache_barrier(i ? soon : lazy) == 0);
    TORTURE_CHECK(prudence_barrier() == 0);
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
    struct prudence_cache_attr attr = {.size = sizeof attr};
    uint64_t first = 4711;

    if (!TORTURE_CHILD_THREADS)
        prudence_option_set("background", "0");
    torture_pretend_idle();
    cache = prudence_cache_create("torture", sizeof(struct object), NULL);
    attr.destructor = destroy;
    lazy = prudence_cache_create("lazy", sizeof(struct destroyed), &attr);
    attr.flags = PRUDENCE_CACHE_DESTRUCT_SOON;
    soon = prudence_cache_create("soon", sizeof(struct destroyed), &attr);
    for (unsigned i = 0; i < POINTERS; i++)
        pointers[i] = object_make();
    queue(&first);
    TORTURE_CHECK(prudence_barrier() == 0); /* so the thread for callbacks exists */
    torture_start(worker, WORKERS, 1);
    torture_start(forker, FORKERS, 100);
    torture_run(seconds);
    for (unsigned i = 0; i < POINTERS; i++)
        prudence_cache_free_deferred(cache, pointers[i]);
    TORTURE_CHECK(prudence_barrier() == 0);
    TORTURE_CHECK(prudence_cache_destroy(cache) == 0);
    TORTURE_CHECK(prudence_cache_destroy(soon) == 0);
    TORTURE_CHECK(prudence_cache_destroy(lazy) == 0);
    TORTURE_SAY({"forks", forks}, {"steps", updates * 20},
                {"fork mean us", (fork_ns / (forks + !forks) / 1000)},
                {"max us", fork_ns_max / 1000});
    return torture_end(variant);
}

TORTURE(torture, {"default", ""}, {"background", "background=1"}, {"lock", "rseq=0,background=1"},
        {"no membarrier", "membarrier=0"},
        {"watched", "guard=10,check=1,quarantine=4M,zero_on_free=1"})
