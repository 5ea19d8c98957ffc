/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Tidying: what has not been wanted for `decay` goes back, a little at a time (ADR 42).
 *
 * A round looks at all caches, one after the other. Objects of a CPU's object cache that were not reached since the
 * last round go to the nodes; if nothing moved, all that is free or safe does. A node merges what is safe and gives
 * back the free slabs that were not in use within the last one or two windows of decay. Rounds begin `decay` apart,
 * and are made by threads on a slow path: each visit does a bounded part of a round, one thread at a time, and the
 * others go on. In a kernel, where taking from another CPU interrupts it (OS_REMOTE_IS_QUICK is false), such a round
 * looks at nodes alone. What lies on a CPU is taken by a thread that runs there (tidy_pass).
 *
 * Locks: such a thread holds no lock of the slab layer; a plain free may hold one of a layer above. The place in the
 * round is guarded by slab_caches_lock, which is not held while a cache is looked at. Such a cache is held by its
 * count of visitors, and its destruction waits for them.
 */
#include "slab/tidy.h"

#include "os/os.h"
#include "slab/all_caches.h"
#include "slab/drain.h"
#include "slab/latent_account.h"
#include "slab/node.h"
#include "slab/wait.h"

/* A visit of a thread that has other things to do: so many caches, or so many moves of a batch of objects or slabs. */
#define VISIT_CACHES 4
#define VISIT_MOVES  8

#define WORTH_BYTES ((uint64_t)1 << 20)

bool slab_tidies READ_MOSTLY; /* constant after start */

static uint32_t tidying;   /* a thread is at it; compare-and-swap */
static uint64_t next_at;   /* ns: when the next round may begin. Atomic, as the next */
static uint32_t under_way; /* a round is */
static uint64_t rounds;    /* ever ended */
static uint32_t drive_due; /* since one ended while something was latent */
static uint64_t cached;    /* bytes that the last round found in object caches */

/* The cache whose turn it is; slab_caches_lock. */
static struct list *turn;

/* How far the turn has come. It belongs to the thread that is tidying; if the cache is destroyed in that time, to the
 * destroying thread, which has waited for the other. */
static struct place {
    struct drain_place drain;
    unsigned moves; /* that its turn has taken */
    bool done;
} place;
static uint64_t cached_now; /* of the thread that is tidying */

/* What slabs and object caches keep without its being live, and what is latent; roughly. */
uint64_t tidy_kept(void)
{
    return node_free_bytes() + load_relaxed(&cached) + latent_bytes_roughly();
}

/* Whether a thread that has nothing else to do should. */
bool tidy_is_worth_it(void)
{
    return tidy_kept() > WORTH_BYTES;
}

uint64_t tidy_rounds(void)
{
    return load_relaxed(&rounds);
}

/* A cache is about to go off the list, whose lock is held. Nobody holds it. */
void tidy_forget(struct prudence_cache *cache)
{
    if (turn == &cache->link) {
        turn = turn->next;
        place = (struct place){.done = false};
    }
}

/* In a forked child no thread is tidying. */
void tidy_fork_child(void)
{
    tidying = 0;
}

/* ---------------------------------------------------------------------------------------- a cache */

/* False: there is more. */
static bool tidy_nodes(struct prudence_cache *cache, unsigned *moves)
{
    unsigned most = (unsigned)(load_relaxed(&cache->slabs_now) / NODE_SLABS_A_VISIT) + 2;

    for (unsigned i = 0; i < os_node_count(); i++) {
        while (node_tidy(cache, &cache->nodes[i])) {
            if (!*moves)
                return place.moves > most; /* others may bring more: enough for this round */
            --*moves;
            place.moves++;
        }
    }
    return true;
}

static bool tidy_cache(struct prudence_cache *cache, unsigned *moves)
{
    if (!OS_REMOTE_IS_QUICK)
        place.drain.left = cache->percpu ? drain_cached(cache) : 0;
    else if (cache->percpu && !drain_unwanted(cache, &place.drain, moves))
        return false;
    return tidy_nodes(cache, moves);
}

/* ---------------------------------------------------------------------------------------- a round */

/* Where the option has become shorter, so has the time until then. */
static bool is_due(void)
{
    uint64_t now, next;

    if (load_relaxed(&under_way))
        return true;
    now = os_clock_coarse_ns();
    next = load_relaxed(&next_at);
    return now >= next || next - now > load_relaxed(&slab_decay);
}

static void round_begin(void)
{
    store_relaxed(&under_way, 1u);
    store_relaxed(&next_at, os_clock_coarse_ns() + load_relaxed(&slab_decay));
    turn = slab_caches.next;
    place = (struct place){.done = false};
    cached_now = 0;
}

static void round_end(void)
{
    store_relaxed(&under_way, 0u);
    store_relaxed(&cached, cached_now);
    add_relaxed(&rounds, 1);
}

/* The cache whose turn it is, held; NULL: the round is over, or the list is in use. */
static struct prudence_cache *hold_next(void)
{
    struct prudence_cache *cache = NULL;

    if (!os_lock_try(&slab_caches_lock))
        return NULL;
    if (!load_relaxed(&under_way))
        round_begin();
    if (place.done) {
        cached_now += place.drain.left;
        place = (struct place){.done = false};
        turn = turn->next;
    }
    if (turn == &slab_caches) {
        round_end();
    } else {
        cache = list_entry(turn, struct prudence_cache, link);
        cache_hold(cache);
    }
    os_lock_release(&slab_caches_lock);
    return cache;
}

/* A part of a round, if one is due: so many caches and moves at most. Returns whether it goes on. */
bool tidy_some(unsigned caches, unsigned moves)
{
    struct prudence_cache *cache = NULL;
    uint32_t nobody = 0;
    uint64_t ended = load_relaxed(&rounds);

    if (!is_due() || !compare_exchange(&tidying, &nobody, 1u))
        return false;
    os_hands_full();
    for (; caches && moves && (cache = hold_next()); caches--) {
        place.done = tidy_cache(cache, &moves);
        cache_let_go(cache);
    }
    os_hands_empty();
    store_release(&tidying, 0u);
    if (load_relaxed(&rounds) != ended && latent_bytes_roughly())
        store_relaxed(&drive_due, 1u);
    return cache != NULL;
}

/* ----------------------------------------------------------------------------------------- a CPU */

static bool is_wanted_on(unsigned cpu)
{
    struct list *item;

    list_for_each(item, &slab_caches)
    {
        const struct prudence_cache *cache = list_entry(item, struct prudence_cache, link);

        if (cache->percpu && drain_is_wanted(cache, cpu))
            return true;
    }
    return false;
}

static void note_all(unsigned cpu)
{
    struct list *item;

    list_for_each(item, &slab_caches)
    {
        struct prudence_cache *cache = list_entry(item, struct prudence_cache, link);

        if (cache->percpu)
            drain_note(cache, cpu);
    }
}

/* Looks at a CPU. True: something was kept there in vain, in some cache, for tidy_pass() to take; until then, looks compare
 * with what there was before. */
bool tidy_is_wanted_on(unsigned cpu)
{
    bool wanted;

    os_lock_take(&slab_caches_lock);
    wanted = is_wanted_on(cpu);
    if (!wanted)
        note_all(cpu);
    os_lock_release(&slab_caches_lock);
    return wanted;
}

/* The cache after that one (NULL: the first), held; that one is let go. NULL: there is none. No thread has the lock while
 * it waits for the visitors of a cache. */
static struct prudence_cache *hold_after(struct prudence_cache *cache)
{
    struct prudence_cache *next = NULL;
    struct list *item;

    os_lock_take(&slab_caches_lock);
    item = cache ? cache->link.next : slab_caches.next;
    if (item != &slab_caches) {
        next = list_entry(item, struct prudence_cache, link);
        cache_hold(next);
    }
    os_lock_release(&slab_caches_lock);
    if (cache)
        cache_let_go(cache);
    return next;
}

/* What a CPU has kept in vain goes to the nodes, of all caches, so many moves at a time; by a thread that runs there: in a
 * kernel nothing is taken if it does not. Returns whether it goes on. After the last call: tidy_pass_end(). */
bool tidy_pass(struct tidy_pass *pass, unsigned moves)
{
    if (!pass->cache)
        pass->cache = hold_after(NULL);
    while (pass->cache &&
           (!pass->cache->percpu || drain_unwanted_of(pass->cache, &pass->place, &moves)))
        pass->cache = hold_after(pass->cache);
    return pass->cache != NULL;
}

void tidy_pass_end(struct tidy_pass *pass)
{
    if (pass->cache)
        cache_let_go(pass->cache);
    pass->cache = NULL;
}

/* ----------------------------------------------------------------------------------------- threads */

/*
 * Latent objects need grace periods, which no other thread may ask for: they are pushed on once a round. Foreign
 * functions may be called, so nothing is held; and not by a plain free, whose caller may hold a lock that those
 * functions want.
 */
void tidy_drive(void)
{
    if (unlikely(load_relaxed(&drive_due)) && exchange_relaxed(&drive_due, 0u))
        latent_drive_all();
}

/* Called by threads on a slow path. No foreign function is called. */
void tidy_come_by(void)
{
    if (slab_tidies)
        tidy_some(VISIT_CACHES, VISIT_MOVES);
}
