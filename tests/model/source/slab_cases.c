/* SPDX-License-Identifier: MIT */
/*
 * Cases of the per-CPU caches: the helper that pre-flushes while a thread closes a batch, an
 * owner from another CPU with a local one and its fast path, and fork with a thread on its fast
 * path. And the limit of deferred bytes, which rises while its ceiling is lowered.
 */
#include "explorer.h"
#include "gp/user/domain.h"
#include "gp/user/process_life.h"
#include "os/os.h"
#include "posix.h"
#include "slab/cache.h"
#include "slab/gate.h"
#include "slab/transfer_batch.h"
#include "slab/latent_cache.h"
#include "slab/node.h"
#include "slab/reclaim/limit.h"
#include "slab/preflush.h"
#include "slab/start.h"

#define OBJECTS 8

static struct prudence_cache *cache;
static void *objects[4 * OBJECTS];

static struct cpu_cache *cpu_0(void)
{
    return cpu_cache_of(cache, 0);
}

static void give_back(void *object)
{
    if (!os_percpu_push(&cache->fast_percpu, object))
        gate_free(slab_known(object), object, "free");
}

/* CPU 0 has a full stack and an empty ring; objects[0] and [1] are live. */
static void make_cache(bool sequences)
{
    struct cache_layout layout = {.object_size = 64,
                                  .alignment = 64,
                                  .domain = &prudence_default,
                                  .object_cache_bytes = (size_t)OBJECTS * 64};

    posix_membarrier_start(true);
    posix_percpu_start(false); /* the next line sets sequences */
    os_percpu_rseq = sequences;
    gp_start();
    explore_assert(slab_start());
    cache = cache_create("explored", &layout);
    explore_assert(cache);
    for (unsigned i = 0; i < 4 * OBJECTS; i++)
        explore_assert((objects[i] = gate_alloc(cache, 0, OS_ALLOC_DEFAULT)));
    for (unsigned i = 2; i < 4 * OBJECTS; i++)
        give_back(objects[i]);
    while (stack_count(&cpu_0()->line) < cpu_0()->size) {
        void *object;

        explore_assert(node_take(cache, &cache->body->nodes[0], &object, 1) == 1);
        give_back(object);
    }
}

static void defer(void *object)
{
    if (!os_percpu_append(&cache->fast_percpu, object))
        gate_free_deferred(slab_known(object), object, "deferred free");
}

/* ------------------------------------------------------------------------------------ pre-flush */

/* A thread closes a batch of one object while the helper searches for one: on one CPU, where the
 * helper removes by a restartable sequence, or from another, where it takes the CPU's caches. */
static void defers_and_closes(void *unused)
{
    struct cpu_cache *cpu;
    char token;

    (void)unused;
    defer(objects[0]);
    while (!(cpu = cpu_cache_take(cache, &token)))
        os_sleep_ns(1000);
    latent_cache_close(cache, cpu);
    cpu_cache_release(cpu);
}

static void pre_flushes(void *unused)
{
    (void)unused;
    preflush_cpu(cache, 0, 1);
}

CASE_THEN("pre-flush", pre_flush, nothing_moved_is_safe, 2, 4)
{
    make_cache(true);
    explore_thread_on(0, defers_and_closes, NULL);
    explore_thread_on(0, pre_flushes, NULL);
}

CASE_THEN("pre-flush-by-owning", pre_flush_by_owning, nothing_moved_is_safe, 2, 3)
{
    make_cache(false);
    explore_thread_on(0, defers_and_closes, NULL);
    explore_thread_on(1, pre_flushes, NULL);
}

/* No thread has driven a grace period. */
static void nothing_moved_is_safe(void)
{
    for (struct transfer_batch *batch = cache->body->nodes[0].handover; batch;
         batch = batch->next) {
        explore_assert(batch->count == 1 && batch->objects[0] == objects[0]);
        explore_assert(!gp_poll(&prudence_default, batch->cookie));
        explore_note();
    }
}

/* --------------------------------------------------------------------------------------- owners */

static void *popped, *taken[2];
static unsigned taken_count;

static void owns_and_pops(void *unused)
{
    struct cpu_cache *cpu;
    char token;

    (void)unused;
    cpu = cpu_cache_take(cache, &token);
    if (cpu)
        cpu_cache_release(cpu);
    popped = os_percpu_pop(&cache->fast_percpu);
}

/* Does the same as object_cache_take(), but leaves the slots: a section that the fence has
 * restarted notices that only at the commit, and reads the slots before. */
static void takes_two(void *elsewhere)
{
    struct os_percpu_line *line = &cpu_0()->line;
    uint64_t word;
    char token;

    if (elsewhere ? !cpu_cache_take_remote(cpu_0(), &token) : !cpu_cache_take(cache, &token))
        return;
    word = load_relaxed(&line->stack_word);
    for (taken_count = 0; taken_count < 2; taken_count++)
        taken[taken_count] =
            load_relaxed(&line->stack[(word & STACK_COUNT_MASK) - 1 - taken_count]);
    store_relaxed(&line->stack_word, word - taken_count);
    cpu_cache_release(cpu_0());
    explore_note();
}

CASE_THEN("release-during-a-take", release_during_a_take, nobody_has_the_same, 2, 4)
{
    make_cache(true);
    popped = NULL;
    taken_count = 0;
    explore_thread_on(0, owns_and_pops, NULL);
    explore_thread_on(1, takes_two, cache);
}

/* The third CPU has no line, so its thread runs no sections, and takes the first CPU's caches. */
CASE_THEN("a-cpu-without-a-line", a_cpu_without_a_line, nobody_has_the_same, 2, 4)
{
    make_cache(true);
    popped = NULL;
    taken_count = 0;
    explore_thread_on(0, owns_and_pops, NULL);
    explore_thread_on(2, takes_two, NULL);
}

static void nobody_has_the_same(void)
{
    for (unsigned i = 0; i < taken_count; i++)
        explore_assert(taken[i] != popped);
    explore_assert(stack_count(&cpu_0()->line) + taken_count + (popped != NULL) == cpu_0()->size);
}

static unsigned owners;
static bool two_owners;

static void owns(void *unused)
{
    char token;
    struct cpu_cache *cpu = cpu_cache_take(cache, &token);

    (void)unused;
    if (!cpu)
        return;
    two_owners |= add_relaxed(&owners, 1u) != 0;
    add_relaxed(&owners, -1u);
    cpu_cache_release(cpu);
    explore_note();
}

/* Tries to own, cannot fence, and gives up. */
static void claims_in_vain(void *unused)
{
    char token;

    (void)unused;
    if (os_percpu_claim(&cpu_0()->line, &token))
        os_percpu_unclaim(&cpu_0()->line, &token);
}

CASE_THEN("unclaim-during-a-take", unclaim_during_a_take, one_at_a_time, 1, 4)
{
    make_cache(true);
    owners = 0;
    two_owners = false;
    explore_thread_on(0, owns, NULL);
    explore_thread_on(0, owns, NULL);
    explore_thread_on(1, claims_in_vain, NULL);
}

static void one_at_a_time(void)
{
    explore_assert(!two_owners);
}

/* -------------------------------------------------------------------------------------------- fork
 * The child has the parent's words, each as it was when fork() copied the page. Here fork() copies
 * the arrays' pages first, then the line's. fork() makes the pages read-only and invalidates all
 * TLBs before it returns. On AArch64 the invalidation completes after every store by an old
 * translation; on x86-64 it interrupts the other CPUs. So a store that was executed before fork()
 * is in the child. */

static void *copied_ring[4 * OBJECTS], *copied_stack[4 * OBJECTS];
static uint64_t copied_tail, copied_head;
static unsigned copied_count;
static uintptr_t fork_owner;

/* Repairs the copy as cpu_cache_repair_all() does in the child. The owner is read last, so that
 * it is the owner at that time. */
static void repair(const struct os_percpu_line *line)
{
    const struct cpu_note *note = &cache->body->fork_notes[0];

    if (copied_count > (note->stack_word & STACK_COUNT_MASK))
        copied_count = (unsigned)(note->stack_word & STACK_COUNT_MASK);
    copied_tail = note->ring_tail;
    if (load_relaxed(&line->owner) != fork_owner)
        copied_count = copied_tail = copied_head = 0;
}

static void forks(void *unused)
{
    const struct os_percpu_line *line = &cpu_0()->line;

    (void)unused;
    slab_fork_prepare();
    fork_owner = load_relaxed(&cpu_cache_of(cache, 1)->line.owner); /* no other thread runs now */
    explore_remote_fence(false, __builtin_return_address(0));
    for (unsigned i = 0; i <= line->ring_mask && i < 4 * OBJECTS; i++) {
        copied_ring[i] = load_relaxed(&line->ring[i]);
        copied_stack[i] = load_relaxed(&line->stack[i]);
    }
    copied_count = stack_count(line);
    copied_head = load_relaxed(&line->ring_head);
    copied_tail = load_relaxed(&line->ring_tail);
    if (cache->body->fork_notes)
        repair(line);
    slab_fork_done();
    explore_note();
}

static bool is_ours(const void *object)
{
    for (unsigned i = 0; i < 4 * OBJECTS; i++)
        if (objects[i] == object)
            return true;
    return false;
}

static void the_child_is_whole(void)
{
    for (uint64_t i = copied_head; i != copied_tail; i++)
        explore_assert(is_ours(copied_ring[i & cpu_0()->line.ring_mask]));
    for (unsigned i = 0; i < copied_count; i++)
        explore_assert(is_ours(copied_stack[i]));
}

static void defers(void *unused)
{
    (void)unused;
    defer(objects[0]);
}

CASE_THEN("fork-during-a-deferral", fork_during_a_deferral, the_child_is_whole, 2, 3)
{
    make_cache(true);
    defer(objects[1]); /* leaves the batch open */
    explore_thread_on(0, defers, NULL);
    explore_thread_on(1, forks, NULL);
}

static void frees_one(void *unused)
{
    (void)unused;
    give_back(objects[0]);
}

CASE_THEN("fork-during-a-free", fork_during_a_free, the_child_is_whole, 2, 3)
{
    make_cache(true);
    explore_assert(os_percpu_pop(&cache->fast_percpu)); /* makes room, in a slot never used */
    store_relaxed(&cpu_0()->line.stack[stack_count(&cpu_0()->line)], NULL);
    explore_thread_on(0, frees_one, NULL);
    explore_thread_on(1, forks, NULL);
}

/* No membarrier may be called: a free, or the take, may end while pages are copied. */
CASE_THEN("fork-unfenced-during-a-free", fork_unfenced_during_a_free, the_child_is_whole, 2, 3)
{
    store_relaxed(&os_calls, (uint32_t)OS_CALLS_PLAIN);
    fork_during_a_free();
}

/* -------------------------------------------------------------------------------------- ceiling */

/* The first step, a 16th of the limit, leads to LOWER, the second would lead past CEILING. */
#define LIMIT   UINT64_C(4096)
#define LOWER   (LIMIT + LIMIT / 16)
#define CEILING (LIMIT + LIMIT / 8)
#define SHARE   (LIMIT / 3)

static void reserves_and_raises(void *unused)
{
    (void)unused;
    for (unsigned i = 0; i < 5; i++) {
        if (!limit_reserve(0, SHARE) && limit_follow(GP_READER_LACKS_CPU))
            explore_note();
        explore_assert(limit_in_force() <= CEILING);
    }
}

static void lowers(void *unused)
{
    (void)unused;
    limit_set_ceiling(LOWER);
    explore_assert(limit_in_force() <= LOWER);
}

static void falls(void *unused)
{
    (void)unused;
    limit_follow(GP_READER_STAYS);
}

static void start_with_a_ceiling(void)
{
    posix_membarrier_start(true);
    posix_percpu_start(false);
    gp_start();
    explore_assert(slab_start());
    limit_change(LIMIT);
    limit_set_ceiling(CEILING);
}

CASE_THEN("rise-during-a-lower-ceiling", rise_during_a_lower_ceiling, bytes_are_below_the_ceiling,
          2, 4)
{
    start_with_a_ceiling();
    explore_thread_on(0, reserves_and_raises, NULL);
    explore_thread_on(1, lowers, NULL);
}

CASE_THEN("rise-during-a-fall", rise_during_a_fall, bytes_are_below_the_ceiling, 1, 3)
{
    start_with_a_ceiling();
    explore_thread_on(0, reserves_and_raises, NULL);
    explore_thread_on(1, reserves_and_raises, NULL);
    explore_thread_on(2, falls, NULL);
}

static void bytes_are_below_the_ceiling(void)
{
    explore_assert(limit_used_peak() <= CEILING);
    explore_assert(limit_in_force() <= CEILING);
}
