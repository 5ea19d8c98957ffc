/* SPDX-License-Identifier: MIT */
/*
 * Guarded sampling. One allocation in N gets a page between two pages that may not be touched. The
 * object lies at the page's end or beginning, in turns, so that an overflow or an underflow faults.
 * When the object is freed, or safe if deferred, the page becomes inaccessible and rests until all
 * pages freed before have been used again, so a use after free faults too. A pattern fills the rest
 * of the page, and is checked when the page goes. Advice that the program gave about the page and
 * that lasts (pages/advice.c) is undone then.
 *
 * For the slab layer, a guarded object is a slab of one object of the same cache
 * (slab_large_make_lone), which is not reused but goes at once. So deferral, statistics and misuse
 * checks work as usual.
 *
 * Not guarded are objects that do not fit a page, objects of no bytes, objects of caches with a
 * destructor, and objects of caches with a constructor or type-safe memory, which may be read when
 * freed.
 *
 * Locks: one (OS_RANK_DEBUG) for the queue of resting slots. A slot's record is written by the
 * thread that took the slot from the queue, or that ends the slot's slab; reports read the record
 * without a lock.
 */
#include <stddef.h>
#include <string.h>

#include "base/pace.h"
#include "base/random.h"
#include "fork_part.h"
#include "guard/fault_handler.h"
#include "guard/faults.h"
#include "guard/guard.h"
#include "guard/stack_depot.h"
#include "pages/pages.h"
#include "slab/all_caches.h"
#include "slab/large.h"
#include "slab/node.h"
#include "slab/reclaim/wait.h"

#define PATTERN   0xb5
#define SETTLE_NS 10000000 /* pause between searches for safe objects, when no slot rests */

static struct os_lock guard_lock = OS_LOCK_INIT(OS_RANK_DEBUG);
static uint16_t resting[GUARD_SLOTS]; /* ring, oldest first, from `oldest` on */
static unsigned oldest, resting_count;
static uint64_t guard_turns; /* at the page's end and beginning; atomic */
static uint64_t settled_at;  /* ns; atomic */
static uint32_t pool_asked;  /* atomic */

static __thread uint64_t countdown, randomness;

static bool slots_make(void)
{
    guard_slots = os_meta_alloc(GUARD_SLOTS * sizeof *guard_slots);
    for (unsigned i = 0; guard_slots && i < GUARD_SLOTS; i++)
        resting[i] = narrow(uint16_t, i);
    resting_count = guard_slots ? GUARD_SLOTS : 0;
    return guard_slots != NULL;
}

static void guard_refuse(void)
{
    os_report("option 'guard': no address space for guarded objects; nothing is guarded");
    guard_interval = 0;
}

/* Makes the slots, perhaps with locks of the options held. */
COLD void guard_start(void)
{
    if (!guard_interval)
        return;
    if (!guard_slots && !slots_make())
        guard_refuse();
    else
        faults_watch();
}

/* Makes the pool for the first guarded object, because mappings change only with no lock held.
 * Returns false if the system refused, or if another thread is making the pool. */
static bool has_pool(void)
{
    char *pool;

    if (likely(load_acquire(&guard_pool) != NULL))
        return true;
    if (exchange_relaxed(&pool_asked, 1))
        return false;
    pool = os_pages_reserve(((size_t)2 * GUARD_SLOTS + 1) * os_page_size);
    if (!pool)
        guard_refuse();
    store_release(&guard_pool, pool);
    return pool != NULL;
}

/* Draws a number from 1 to 2N - 1. The average is N, and no period of the program goes unseen. */
static uint64_t guard_draw(void)
{
    if (!randomness)
        randomness = (os_clock_ns() ^ (uintptr_t)&randomness) | 1;
    randomness = random_behind(randomness);
    return 1 + randomness % (2 * guard_interval - 1);
}

static bool guard_is_due(void)
{
    if (!countdown)
        countdown = guard_draw();
    return --countdown == 0;
}

/* ------------------------------------------------------------------------------------- slots */

static struct guard_slot *slot_take(void)
{
    struct guard_slot *slot = NULL;

    faults_watch();
    os_lock_take(&guard_lock);
    if (resting_count) {
        slot = &guard_slots[resting[oldest]];
        oldest = (oldest + 1) % GUARD_SLOTS;
        resting_count--;
    }
    os_lock_release(&guard_lock);
    return slot;
}

static void slot_rest(const struct guard_slot *slot)
{
    os_lock_take(&guard_lock);
    resting[(oldest + resting_count) % GUARD_SLOTS] = narrow(uint16_t, slot - guard_slots);
    resting_count++;
    os_lock_release(&guard_lock);
}

static char *page_of(const struct guard_slot *slot)
{
    return guard_page((unsigned)(slot - guard_slots));
}

static bool is_pattern(const char *from, const char *to, const char **wrong)
{
    for (; from < to; from++) {
        if ((unsigned char)*from != PATTERN) {
            *wrong = from;
            return false;
        }
    }
    return true;
}

static void check_surroundings(const struct guard_slot *slot)
{
    const char *page = page_of(slot), *wrong;

    if (!is_pattern(slot->object + slot->size, page + os_page_size, &wrong) ||
        !is_pattern(page, slot->object, &wrong))
        guard_report_damage(slot, wrong);
}

static size_t guard_size_asked(const struct slab *slab, const void *object)
{
    const struct guard_slot *slot = slab->side[GUARD_EXTENSION];

    (void)object;
    return slot ? slot->size : 0;
}

static struct guard_slot *guard_slot_of(struct page_job *job)
{
    return (struct guard_slot *)((char *)job - offsetof(struct guard_slot, closing));
}

/* Returns false if a child of fork lacks the page, because the program wished so. Anything may be
 * mapped there by now. */
static bool close_page(struct page_job *job)
{
    char *page = page_of(guard_slot_of(job));

    if (!advice_undo_pages(page, os_page_size))
        return false;
    os_pages_close(page, os_page_size);
    return true;
}

static void guard_closed(struct page_job *job, bool done)
{
    if (done)
        slot_rest(guard_slot_of(job));
}

/* Checks the surroundings, and closes the page, which then rests. Runs before check_going(), so the
 * last word still exists. */
static void guard_going(struct slab *slab)
{
    struct guard_slot *slot = slab->side[GUARD_EXTENSION];

    if (!slot)
        return; /* not a guarded object, or not made, so guarded_alloc() owns the page */
    check_surroundings(slot);
    slot->word = *object_words(slab);
    slot->state = GUARD_FREED;
    store_relaxed(&slot->slab, NULL);
    page_job_queue(&slot->closing, close_page, guard_closed);
}

/* --------------------------------------------------------------- what is deferred becomes safe */

/* Merges in all caches, and thereby closes pages. No other thread may ever visit the node of a
 * quiet cache. */
static void guard_settle_all(void)
{
    struct list *item;

    if (!is_time_again(&settled_at, os_clock_ns(), SETTLE_NS))
        return;
    wait_drive_all(); /* before taking the lock, because domains may call foreign functions */
    os_lock_take(&slab_caches_lock);
    list_for_each(item, &slab_caches)
    {
        struct prudence_cache *cache = list_entry(item, struct prudence_cache, link);

        node_shrink_to(cache, cache->body->free_limit);
    }
    os_lock_release(&slab_caches_lock);
    os_later_check(); /* closes pages */
}

/* ---------------------------------------------------------------------------------- allocation */

static bool can_be_guarded(const struct prudence_cache *cache, size_t size)
{
    return round_up(size, cache->alignment) <= os_page_size && !cache->body->constructor &&
           !cache->body->destructor && !(cache->flags & (CACHE_TYPESAFE | CACHE_CLOSED));
}

/* Places the object on its open page. */
static void guard_place(struct guard_slot *slot, const struct prudence_cache *cache, size_t size)
{
    char *page = page_of(slot);

    tell_acquire(page);
    slot->object = add_relaxed(&guard_turns, 1) % 2 == 0
                       ? page + os_page_size - round_up(size, cache->alignment)
                       : page;
    slot->size = size;
    copy_unseen(slot->cache_name, cache->name, sizeof slot->cache_name);
    memset(page, PATTERN, (size_t)(slot->object - page));
    memset(slot->object + size, PATTERN, (size_t)(page + os_page_size - slot->object) - size);
}

/* Returns a guarded object, or NULL if this allocation is not the one in N, cannot be guarded, or
 * finds no page. */
static void *guarded_alloc(struct prudence_cache *cache, size_t size)
{
    struct guard_slot *slot;
    struct slab *slab;

    if (!guard_interval || !guard_is_due() || !can_be_guarded(cache, size) || !has_pool())
        return NULL;
    node_shrink_to(cache, cache->body->free_limit);
    slot = slot_take();
    if (!slot) {
        guard_settle_all();
        return NULL;
    }
    if (!os_pages_open(page_of(slot), os_page_size))
        goto failed;
    guard_place(slot, cache, size);
    slab = slab_large_make_lone(cache, page_of(slot), os_page_size, slot->object,
                                EXTENSION_BIT(CHECK_EXTENSION));
    if (!slab) {
        os_pages_close(page_of(slot), os_page_size);
        slot->state = GUARD_UNUSED;
        goto failed;
    }
    slab->hurried = true;
    slab->side[GUARD_EXTENSION] = slot;
    slot->slab = slab;
    slot->state = GUARD_IN_USE;
    return slot->object;

failed:
    slot_rest(slot);
    return NULL;
}

COLD static enum extension_wish guard_wants(const struct cache_layout *layout)
{
    (void)layout;
    return extension_wanted_if(guard_interval > 0);
}

static bool guard_must_move(const struct slab *slab)
{
    return slab->side[GUARD_EXTENSION] != NULL;
}

const struct slab_extension guard_extension = {.wants = guard_wants,
                                               .going = guard_going,
                                               .instead = guarded_alloc,
                                               .size_asked = guard_size_asked,
                                               .must_move = guard_must_move,
                                               .explain = guard_report_object};

static void guard_fork_prepare(void)
{
    os_lock_take_for_fork(&guard_lock);
}

/* Lets the child make the pool, if the thread that was making one is not in the child. */
static void guard_fork_child(bool whole)
{
    (void)whole;
    fault_handler_fork_child();
    if (!guard_pool && guard_interval)
        pool_asked = 0;
}

static void guard_fork_done(void)
{
    os_lock_release_from_fork(&guard_lock);
}

const struct fork_part guard_fork_part = {.order = FORK_GUARD,
                                          .name = "guarded objects",
                                          .prepare = guard_fork_prepare,
                                          .child = guard_fork_child,
                                          .done = guard_fork_done};
