/* SPDX-License-Identifier: MIT */
/*
 * Hands: a thread that runs destructors takes up to REUSE_MAX objects from a ring or from slabs,
 * and destroys them one after the other, owning and carrying nothing. What such a batch needs of
 * other threads it needs once: the objects count as pending from before the thread has them until
 * all have been destroyed, or those of one epoch, and they are in a list, where fork and walks find
 * them. Each list has a lock of its own (rank OS_RANK_HANDS), which is held for some instructions,
 * by a thread that carries the objects, or while none can.
 *
 * No destructor begins while the process is copied: its object would count as destroyed in the
 * child, or not, by chance. The thread that begins one marks that it decides, then checks whether a
 * fork copies. Fork says that it copies, makes all threads fence (membarrier), then waits for
 * those that decide. Either the thread's check finds the fork, or fork's finds the mark. So
 * beginning a destructor takes no fence, and no atomic operation but loads and stores. Without
 * membarrier the thread carries while it decides, and fork waits for that.
 */
#include "toolkit/callbacks/destruct_hand.h"

#include "guard/annotate.h"
#include "race_detector.h"
#include "slab/extension.h"
#include "slab/slab.h"
#include "toolkit/callbacks/destruct.h"

__thread struct destruct_run *destruct_runs;

#define LIST                                                                                       \
    {                                                                                              \
        .lock = OS_LOCK_INIT(OS_RANK_HANDS)                                                        \
    }

/* By CPU, so that threads seldom meet. */
static struct {
    struct os_lock lock;
    struct destruct_hand *first;
} __attribute__((aligned(CACHE_LINES_APART)))
lists[] = {LIST, LIST, LIST, LIST, LIST, LIST, LIST, LIST};

#define LISTS (sizeof lists / sizeof lists[0])

static uint32_t fork_copies; /* atomic */

/* How threads and fork find each other; UNKNOWN before the first cache. Never changes later, also
 * if membarrier is refused later: os_membarrier() finds another way then. */
enum { UNKNOWN, MEMBARRIER, CARRYING };
static uint32_t meeting READ_MOSTLY = UNKNOWN; /* atomic */

void destruct_hands_start(void)
{
    uint32_t unknown = UNKNOWN;

    compare_exchange(&meeting, &unknown,
                     (uint32_t)(os_membarrier_available() ? MEMBARRIER : CARRYING));
}

bool destruct_hands_use_membarrier(void)
{
    return load_relaxed(&meeting) == MEMBARRIER;
}

/* --------------------------------------------------------------------------------- destructors */

static void run_destructor(const struct prudence_cache *cache, struct slab *slab, void *object)
{
    os_foreign_call("a destructor");
    annotate_taken(slab, object);
    cache->body->destructor(object, cache->body->context);
    tell_release(cache);
}

void destruct_hand_now(struct prudence_cache *cache, struct slab *slab, void *object)
{
    struct destruct_run now = {.cache = cache, .outer = destruct_runs};

    destruct_runs = &now;
    run_destructor(cache, slab, object);
    destruct_runs = now.outer;
}

/* Returns whether no fork copies now. A fork that begins later finds the mark. Within a fork, the
 * forking thread may destroy: its handlers come before the copy or after. */
static bool decide_to_begin(struct destruct_hand *hand)
{
    store_relaxed(&hand->deciding, 1u);
    compiler_barrier(); /* fork's membarrier is the fence here */
    if (likely(!load_relaxed(&fork_copies)) || os_lock_forking)
        return true;
    store_release(&hand->deciding, 0u);
    return false;
}

/* Release: fork, which finds that the thread no longer decides, finds the number. */
static void begin_destructor(struct destruct_hand *hand)
{
    if (unlikely(load_relaxed(&meeting) != MEMBARRIER)) {
        os_in_flight_begin();
        store_relaxed(&hand->begun, hand->begun + 1);
        os_in_flight_end();
        return;
    }
    while (unlikely(!decide_to_begin(hand)))
        os_sleep_ns(10000);
    store_relaxed(&hand->begun, hand->begun + 1);
    store_release(&hand->deciding, 0u);
}

/* Stops counting the objects whose destructors have returned. Release, so that a barrier that finds
 * the count at 0 sees the effects of their destructors. A handler that forks finds both counts
 * changed, or neither. */
static void uncount(struct destruct_hand *hand)
{
    unsigned ended = hand->done - hand->uncounted;

    if (!ended)
        return;
    os_busy_enter();
    __atomic_fetch_sub(
        &destruct_of_cache(hand->cache)->pending[destruct_hand_epoch(hand, hand->done - 1)], ended,
        __ATOMIC_RELEASE);
    hand->uncounted = hand->done;
    os_busy_leave();
}

static void destroy_one(struct destruct_hand *hand, unsigned index)
{
    void *object = hand->objects[index];
    struct slab *slab = slab_known(object);

    begin_destructor(hand);
    run_destructor(hand->cache, slab, object);
    if (unlikely(load_relaxed(&slab->extensions) != EXTENSION_BIT(DESTRUCT_EXTENSION)))
        extensions_released(slab, object, false);
    store_relaxed(&hand->done, index + 1);
}

/* A barrier that waits for the objects of one epoch need not wait for one of the next. */
void destruct_hand_destroy(struct destruct_hand *hand)
{
    struct destruct_run run = {.cache = hand->cache, .outer = destruct_runs};

    destruct_runs = &run;
    for (unsigned i = 0; i < hand->count; i++) {
        if (i && unlikely(destruct_hand_epoch(hand, i) != destruct_hand_epoch(hand, i - 1)))
            uncount(hand);
        destroy_one(hand, i);
    }
    destruct_runs = run.outer;
}

/* --------------------------------------------------------------------------------- lists */

void destruct_hand_begin(struct destruct_hand *hand)
{
    hand->begun = hand->done = hand->uncounted = 0;
    hand->deciding = 0;
    hand->thread = &destruct_runs;
    hand->list = os_cpu_current() % LISTS;
    os_lock_take(&lists[hand->list].lock);
    hand->next = lists[hand->list].first;
    hand->place = &lists[hand->list].first;
    if (hand->next)
        hand->next->place = &hand->next;
    *hand->place = hand;
    os_lock_release(&lists[hand->list].lock);
}

static void leave_list(struct destruct_hand *hand)
{
    *hand->place = hand->next;
    if (hand->next)
        hand->next->place = hand->place;
}

void destruct_hand_end(struct destruct_hand *hand)
{
    uncount(hand);
    os_lock_take(&lists[hand->list].lock);
    leave_list(hand);
    os_lock_release(&lists[hand->list].lock);
}

bool destruct_hands_have(const void *object)
{
    bool has = false;

    for (unsigned i = 0; i < LISTS && !has; i++) {
        os_lock_take(&lists[i].lock);
        for (const struct destruct_hand *hand = lists[i].first; hand && !has; hand = hand->next)
            for (unsigned at = load_relaxed(&hand->begun); at < hand->count && !has; at++)
                has = hand->objects[at] == object;
        os_lock_release(&lists[i].lock);
    }
    return has;
}

/* ----------------------------------------------------------------------------------------- fork */

/* A hand of this thread decides only if a handler forks there, and may go on in the child. */
static void wait_for_decision(struct destruct_hand *hand)
{
    while (hand->thread != &destruct_runs && load_acquire(&hand->deciding))
        os_sleep_ns(1000);
}

/* Takes the hand of a thread that the child does not have out of its list. */
void destruct_hand_forget(struct destruct_hand *hand)
{
    leave_list(hand);
}

/* The caller has stopped the threads that carry, so lists do not change, and no lock is held. */
void destruct_hands_visit(void (*visit)(struct destruct_hand *hand))
{
    for (unsigned i = 0; i < LISTS; i++) {
        struct destruct_hand *hand, *next;

        for (hand = lists[i].first; hand; hand = next) {
            next = hand->next;
            visit(hand);
        }
    }
}

static bool any_hand(void)
{
    for (unsigned i = 0; i < LISTS; i++)
        if (lists[i].first)
            return true;
    return false;
}

void destruct_hands_hold(void)
{
    store_relaxed(&fork_copies, 1u);
    if (load_relaxed(&meeting) != MEMBARRIER || !any_hand())
        return;
    os_membarrier();
    destruct_hands_visit(wait_for_decision);
}

void destruct_hands_let_go(void)
{
    store_relaxed(&fork_copies, 0u);
}
