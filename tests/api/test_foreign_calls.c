/* SPDX-License-Identifier: MIT */
/*
 * The library calls the program's functions with nothing held: no lock, and no CPU's caches. The
 * test calls each kind of function that the interface takes, in one process for each way of
 * checking for bugs; each function checks that its thread holds nothing, takes the library's locks,
 * and allocates. (Debug builds stop at any violation: os_foreign_call.) The test fails if a kind of
 * function was never called.
 */
#define _GNU_SOURCE

#include <assert.h>
#include <semaphore.h>

#include <prudence/call.h>
#include <prudence/prudence.h>
#include <prudence/rcu.h>
#include <prudence/scm.h>
#include <prudence/stats.h>
#include <prudence/urcu-compat.h>

#include "gp/user/slots.h"
#include "gp/user/stall.h"
#include "toolkit/callbacks/callback_queue.h"
#include "guard/guard.h"
#include "heap/heap.h"
#include "slab/all_caches.h"
#include "support/gp_child.h"
#include "support/gp_reader.h"
#include "support/suite.h"

enum kind {
    CONSTRUCTOR,
    DESTRUCTOR_OF_A_FREE,
    DESTRUCTOR_OF_A_DEFERRAL,
    DESTRUCTOR_BY_THE_WORKER,
    CALLBACK,
    CALLBACK_OF_A_DOMAIN,
    BEGIN_OF_A_TURN,
    END_OF_A_TURN,
    CALL_RCU,
    DEFER_RCU,
    START_POLL,
    POLL_STATE,
    SYNCHRONIZE,
    READ_LOCK_HELD,
    THREAD_STARTS,
    THREAD_ENDS,
    STALL_HOOK,
    FINALIZER,
    KINDS,
};

static const char *const names[KINDS] = {
    "a constructor",
    "a destructor of a free",
    "a destructor of a deferral",
    "a destructor by the worker",
    "a callback",
    "a callback of a domain",
    "what begins a turn of callbacks",
    "what ends a turn of callbacks",
    "call_rcu",
    "defer_rcu",
    "start_poll",
    "poll_state",
    "synchronize",
    "read_lock_held",
    "thread_starts",
    "thread_ends",
    "the hook for stalls",
    "a finalizer",
};

static unsigned calls[KINDS], wrong[KINDS]; /* atomic */
static struct prudence_cache *plain;
static __thread bool inside;

static void probe(struct os_lock *lock)
{
    os_lock_take(lock);
    os_lock_release(lock);
}

/* Checks that the caller holds nothing. If it does, taking the locks hangs, and the alarm ends
 * the test. */
static void called(enum kind kind, bool may_allocate)
{
    if (inside)
        return;
    inside = true;
    add_relaxed(&calls[kind], 1);
    if (os_busy) {
        add_relaxed(&wrong[kind], 1);
        fprintf(stderr, "%s was called with %u locks or CPU caches held\n", names[kind], os_busy);
    }
    probe(&heap_lock);
    probe(&readers_lock);
    probe(&callbacks_lock);
    probe(&slab_caches_lock);
    if (may_allocate) {
        struct prudence_stats stats;

        prudence_free(prudence_malloc(100));
        prudence_free_deferred(prudence_malloc(300));
        prudence_cache_free_deferred(plain, prudence_cache_alloc(plain));
        prudence_stats(&stats);
    }
    inside = false;
}

static unsigned called_so_far(enum kind kind)
{
    return load_acquire(&calls[kind]);
}

/* Waits until another thread calls it. */
static void wait_until_called(enum kind kind)
{
    while (!called_so_far(kind))
        pause_ms(1);
}

/* ---------------------------------------------------------------------------- caches' functions */

static void construct(void *object, void *context)
{
    called(CONSTRUCTOR, false);
}

static void destroy(void *object, void *context)
{
    called(*(const enum kind *)context, true);
}

static enum kind destroying;

static void walk_caches(void)
{
    struct prudence_cache_attr attr = {.size = sizeof attr, .constructor = construct};
    struct prudence_cache *cache = prudence_cache_create("constructed", 64, &attr);

    prudence_cache_free(cache, prudence_cache_alloc(cache));
    prudence_cache_destroy(cache);
    attr = (struct prudence_cache_attr){
        .size = sizeof attr, .destructor = destroy, .context = &destroying};
    cache = prudence_cache_create("destructed", 64, &attr);
    destroying = DESTRUCTOR_OF_A_FREE;
    prudence_cache_free(cache, prudence_cache_alloc(cache));
    destroying = DESTRUCTOR_OF_A_DEFERRAL;
    prudence_cache_free_deferred(cache, prudence_cache_alloc(cache));
    prudence_cache_barrier(cache);
    prudence_cache_destroy(cache);
    destroying = DESTRUCTOR_BY_THE_WORKER;
    attr.flags = PRUDENCE_CACHE_DESTRUCT_SOON;
    cache = prudence_cache_create("soon", 64, &attr);
    prudence_cache_free_deferred(cache, prudence_cache_alloc(cache));
    wait_until_called(DESTRUCTOR_BY_THE_WORKER);
    prudence_cache_destroy(cache);
}

/* ------------------------------------------------------------------------------------ callbacks */

static void callback(struct prudence_head *head)
{
    called(CALLBACK, true);
}

static void callback_of_a_domain(struct prudence_head *head)
{
    called(CALLBACK_OF_A_DOMAIN, true);
}

static void begin_of_a_turn(void *unused)
{
    called(BEGIN_OF_A_TURN, true);
}

static void end_of_a_turn(void *unused)
{
    called(END_OF_A_TURN, true);
}

static void by_call_rcu(struct rcu_head *head)
{
    called(CALL_RCU, true);
}

static void by_defer_rcu(void *p)
{
    called(DEFER_RCU, true);
}

static void walk_callbacks(void)
{
    static struct prudence_head first, second;
    static struct rcu_head third;
    struct prudence_domain *domain = prudence_domain_create("called", PRUDENCE_DOMAIN_MEMB, NULL);

    assert(!prudence_domain_call_around(domain, 0, begin_of_a_turn, end_of_a_turn, NULL));
    prudence_call(&first, callback);
    prudence_domain_call(domain, &second, callback_of_a_domain);
    prudence_urcu_call(NULL, &third, by_call_rcu);
    prudence_urcu_defer(NULL, by_defer_rcu, &third);
    prudence_barrier();
    prudence_domain_barrier(domain);
    prudence_urcu_barrier(NULL);
    prudence_urcu_defer_barrier(NULL);
    prudence_domain_destroy(domain);
}

/* ----------------------------------------------------------------------------- external domains */

static uint64_t start_poll(void *context)
{
    called(START_POLL, true);
    return 1;
}

static bool poll_state(void *context, uint64_t cookie)
{
    called(POLL_STATE, true);
    return true;
}

static void synchronize(void *context)
{
    called(SYNCHRONIZE, true);
}

static bool read_lock_held(void *context)
{
    called(READ_LOCK_HELD, true);
    return false;
}

static void thread_starts(void *context)
{
    called(THREAD_STARTS, true);
}

static void thread_ends(void *context)
{
    called(THREAD_ENDS, true);
}

static struct prudence_domain *make_external(bool polled)
{
    struct prudence_domain_ops ops = {.size = sizeof ops,
                                      .start_poll = polled ? start_poll : NULL,
                                      .poll_state = polled ? poll_state : NULL,
                                      .synchronize = synchronize,
                                      .read_lock_held = read_lock_held,
                                      .thread_starts = thread_starts,
                                      .thread_ends = thread_ends};

    return prudence_domain_create_external("external", &ops, NULL);
}

/* Runs everything that drives grace periods: deferrals that overflow the ring, allocations, a
 * full pool of guarded objects, trimming, barriers. */
static void walk_external(bool polled)
{
    static void *objects[2000], *others[GUARD_SLOTS + 10];
    struct prudence_domain *domain = make_external(polled), *set;
    struct prudence_domain *both[] = {domain, prudence_default_domain()};
    struct prudence_cache_attr attr = {
        .size = sizeof attr, .domain = domain, .object_cache_bytes = 4096};
    struct prudence_cache *cache = prudence_cache_create("external", 64, &attr), *of_set;

    set = prudence_domain_create_set("with an external one", both, 2);
    attr.domain = set;
    of_set = prudence_cache_create("of a set", 64, &attr);
    prudence_cache_free_deferred(cache, prudence_cache_alloc(cache));
    for (unsigned i = 0; i < GUARD_SLOTS + 10; i++) /* objects of another domain: none is reused */
        others[i] = prudence_malloc(64);
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < 2000; i++)
            objects[i] = prudence_cache_alloc(round ? of_set : cache);
        for (unsigned i = 0; i < 2000; i++)
            prudence_cache_free_deferred(round ? of_set : cache, objects[i]);
    }
    prudence_trim();
    prudence_cache_barrier(cache);
    prudence_cache_barrier(of_set);
    prudence_domain_synchronize(set);
    for (unsigned i = 0; i < GUARD_SLOTS + 10; i++)
        prudence_free(others[i]);
    assert(prudence_cache_destroy(of_set) == 0);
    assert(prudence_cache_destroy(cache) == 0);
    assert(prudence_domain_destroy(set) == 0);
    assert(prudence_domain_destroy(domain) == 0);
}

/* ----------------------------------------------------------------------------------- the others */

static void on_stall(const struct prudence_stall *stall, void *argument)
{
    called(STALL_HOOK, true);
}

static void walk_stalls(void)
{
    struct prudence_domain *domain = prudence_domain_create("stalled", PRUDENCE_DOMAIN_MEMB, NULL);
    struct held_reader reader = {.domain = domain};
    uint64_t timeout = gp_stall_timeout;
    prudence_gp_t cookie;

    prudence_stall_hook_set(on_stall, NULL);
    gp_stall_timeout = 1;
    held_reader_start(&reader);
    cookie = prudence_domain_start_poll(domain);
    while (!called_so_far(STALL_HOOK))
        prudence_domain_poll_state(domain, cookie);
    gp_stall_timeout = timeout;
    held_reader_end(&reader);
    prudence_stall_hook_set(NULL, NULL);
    assert(prudence_domain_destroy(domain) == 0);
}

static int finalize(void *object)
{
    called(FINALIZER, true);
    return 0;
}

static void walk_finalizers(void)
{
    int number = scm_register_finalizer(finalize);
    void *object = scm_malloc(64);

    scm_set_finalizer(object, number);
    scm_refresh(object, 0);
    for (unsigned i = 0; i < 3 && !called_so_far(FINALIZER); i++) {
        scm_tick();
        scm_collect();
    }
    scm_unregister_thread();
}

/* ------------------------------------------------------------------------------------- the walk */

static int walk_all(void)
{
    int result = 0;

    plain = prudence_cache_create("plain", 48, NULL);
    walk_caches();
    walk_callbacks();
    walk_external(true);
    walk_external(false);
    walk_stalls();
    walk_finalizers();
    for (unsigned kind = 0; kind < KINDS; kind++) {
        if (!calls[kind])
            fprintf(stderr, "%s was never called\n", names[kind]);
        if (!calls[kind] || wrong[kind])
            result = 1;
    }
    return result ? result : 42;
}

static void walk_with(const char *options)
{
    struct child_result result;

    child_again("walk", options, &result);
    if (!child_exited_with(&result, 42))
        print_error("with options '%s': status %#x\n%s\n", options ? options : "",
                    (unsigned)result.status, result.output);
    assert_child_result(&result);
}

TEST(plainly)
{
    walk_with(NULL);
}

TEST(with_check)
{
    walk_with("check=1");
}

TEST(with_guard)
{
    walk_with("guard=1");
}

TEST(with_quarantine)
{
    walk_with("quarantine=64K");
}

TEST(with_everything)
{
    walk_with("check=1,guard=1,quarantine=64K,zero_on_free=1");
}

TEST(with_memory_limits)
{
    walk_with("latent_limit=64K,wait_max=1ms,background=1");
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "walk"))
        return walk_all();
    return suite_run(NULL, NULL);
}
