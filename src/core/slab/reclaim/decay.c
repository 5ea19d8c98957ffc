/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Decay takes back memory that has not been wanted for `decay`, a little at a time (ADR 42).
 *
 * A round visits all caches, one after the other. Objects of a CPU's object cache that were not
 * reached since the last round go to the nodes; if nothing moved, all free and safe objects do. A
 * node merges safe objects and shrinks by free slabs that were not in use within the last one or
 * two windows of decay. Rounds begin `decay` apart. Threads on a slow path make them: each visit
 * does a bounded part, one thread at a time, and other threads do not wait.
 *
 * Objects also keep memory from other caches. So when the process's caches have got GROWN_BYTES of
 * new slabs since the last round, an early round begins (ADR 169). It checks only the caches of
 * the CPUs on which threads work for it, so that it needs no system call.
 *
 * In a kernel, taking from another CPU interrupts it (OS_REMOTE_IS_QUICK is false), so a round
 * visits nodes only, and a thread that runs on the CPU takes the objects there (decay_pass).
 *
 * Locks: a thread that works for decay holds no lock of the slab layer; a plain free may hold one
 * of a layer above. slab_caches_lock guards the place in the round, and is not held during the
 * visit to a cache. The count of visitors holds the cache, whose destruction waits for them.
 */
#include "slab/reclaim/decay.h"

#include "os/os.h"
#include "slab/all_caches.h"
#include "slab/cache_type.h"
#include "slab/node.h"
#include "slab/reclaim/drain.h"
#include "slab/reclaim/hollow.h"
#include "slab/reclaim/limit.h"
#include "slab/reclaim/wait.h"

/* Policy: how much does a visit of decay do? */
#define VISIT_CACHES 4 /* caches; in a visit by a thread that has other things to do */
#define VISIT_MOVES  8 /* moves; of a batch of objects or slabs, in such a visit */
#define WORTH_BYTES  ((uint64_t)1 << 20) /* bytes; kept, to make idle threads work for decay */
#define GROWN_BYTES  ((uint64_t)4 << 20) /* bytes; of new slabs, which begin an early round */

/* Policy: when do free slabs serve other sizes? */
#define KEEP_LEAST  ((uint64_t)1 << 20) /* bytes; stay, because a remade slab costs a microsecond */
#define KEEP_MOST   ((uint64_t)4 << 20) /* bytes; stay at most, after regrets */
#define EARLY_BYTES ((size_t)1 << 20)   /* bytes; taken at a time, so that a visit is worth it */
#define EARLY_WORTH ((size_t)256 << 10) /* bytes; a cache that has less is skipped */
#define EARLY_LOOKS 64                  /* caches; most that one search reads */

bool decay_enabled READ_MOSTLY;        /* constant after start */
bool decay_helper READ_MOSTLY = false; /* a helper exists, or will; the option background */

static uint32_t decaying;     /* a thread works on the round; compare-and-swap */
static uint64_t next_at;      /* ns; earliest begin of the next round. Atomic, like the next */
static uint32_t under_way;    /* a round is under way */
static uint64_t rounds_ended; /* rounds ever ended, except early ones */
static uint64_t grown;        /* bytes of slabs made since the last round began */
static uint32_t drive_due;    /* a round ended with latent objects, so decay_drive() has work */
static uint64_t cached;       /* bytes that the last round found in object caches */

/* The cache whose turn it is; under slab_caches_lock. */
static struct list *turn;
/* The cache that early decay reads next, or NULL for the first; under slab_caches_lock. */
static struct list *early_turn;

/* Progress of the turn. Belongs to the thread at work or, if the cache is destroyed, to the
 * destroying thread, under slab_caches_lock: the former has then let the cache go. */
static struct decay_place {
    struct drain_place drain;
    struct hollow_place hollow;
    unsigned moves; /* moves that this turn has taken */
    bool done;
} place;
/* Bytes found so far in this round, and whether the round is early; owned by the thread at work. */
static uint64_t cached_now;
static bool early;

/* Returns about how many bytes are latent, or kept in slabs and object caches without being
 * live. */
uint64_t decay_kept(void)
{
    return node_lists_free_bytes() + load_relaxed(&cached) + limit_used_roughly();
}

/* Returns whether an otherwise idle thread should work for decay. */
bool decay_is_worth_it(void)
{
    return decay_kept() > WORTH_BYTES;
}

uint64_t decay_rounds(void)
{
    return load_relaxed(&rounds_ended);
}

/* Called under slab_caches_lock before a cache leaves the list. No thread holds the cache. */
void decay_forget(struct prudence_cache *cache)
{
    if (turn == &cache->link) {
        turn = turn->next;
        place = (struct decay_place){.done = false};
    }
    if (early_turn == &cache->link)
        early_turn = NULL;
}

/* Runs in a forked child, in which no thread works on the round. */
void decay_fork_child(void)
{
    decaying = 0;
}

/* -------------------------------------------------------------------------------------- a cache */

/* Returns false if there is more. */
static bool decay_nodes(struct prudence_cache *cache, unsigned *moves)
{
    unsigned most =
        narrow(unsigned, load_relaxed(&cache->body->slabs_now) / NODE_SLABS_A_VISIT) + 2;

    for (unsigned i = 0; i < os_node_count(); i++) {
        while (node_decay(cache, &cache->body->nodes[i])) {
            /* Other threads may bring more, but this is enough for a round. */
            if (!*moves)
                return place.moves > most;
            --*moves;
            place.moves++;
        }
    }
    return true;
}

/* Does the turn of an early round, on this CPU. The rest on the CPU of a thread that began the
 * turn stays, because it would take a system call for each move. */
static bool decay_cache_here(struct prudence_cache *cache, unsigned *moves)
{
    unsigned cpu = os_cpu_current();

    if (!cache->percpu || (place.drain.looked && place.drain.cpu != cpu))
        return true;
    place.drain.cpu = cpu;
    return drain_unwanted_of(cache, &place.drain, moves);
}

/* Does part of the turn of the cache, which is held afterwards, too, unless *held is NULL: then it
 * was destroyed, and the turn is over. Returns false if there is more. */
static bool decay_cache(struct prudence_cache **held, unsigned *moves)
{
    struct prudence_cache *cache = *held;

    if (early)
        return decay_cache_here(cache, moves);
    if (!OS_REMOTE_IS_QUICK)
        place.drain.left = cache->percpu ? drain_cached(cache) : 0;
    else if (cache->percpu && !drain_unwanted(cache, &place.drain, moves))
        return false;
    if (!decay_nodes(cache, moves))
        return false;
    if (!OS_PURGES_WITHIN_SLABS)
        return true;
    if (*moves)
        --*moves;
    return hollow_decay(held, &place.hollow);
}

/* -------------------------------------------------------------------------------------- a round */

/* Returns whether it is time for a round. If the option was lowered, the remaining time shrinks
 * with it. */
static bool is_time(void)
{
    uint64_t now = os_clock_coarse_ns(), next = load_relaxed(&next_at);

    return now >= next || next - now > load_relaxed(&slab_decay);
}

static bool round_is_due(void)
{
    return load_relaxed(&under_way) || load_relaxed(&grown) >= GROWN_BYTES || is_time();
}

static void round_begin(void)
{
    store_relaxed(&under_way, 1u);
    store_relaxed(&grown, (uint64_t)0);
    early = !is_time();
    if (!early)
        store_relaxed(&next_at, os_clock_coarse_ns() + load_relaxed(&slab_decay));
    turn = slab_caches.next;
    place = (struct decay_place){.done = false};
    cached_now = 0;
}

static void round_end(void)
{
    store_relaxed(&under_way, 0u);
    if (early)
        return;
    store_relaxed(&cached, cached_now);
    add_relaxed(&rounds_ended, 1);
}

/* Returns, held, the cache whose turn it is, or NULL if the round is over or the list is in use. */
static struct prudence_cache *hold_next(void)
{
    struct prudence_cache *cache = NULL;

    if (!os_lock_try(&slab_caches_lock))
        return NULL;
    if (!load_relaxed(&under_way))
        round_begin();
    if (place.done) {
        cached_now += place.drain.left;
        place = (struct decay_place){.done = false};
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

/* Does part of a round if one is due, at most `caches` and `moves`. Returns whether the round goes
 * on. */
bool decay_some(unsigned caches, unsigned moves)
{
    struct prudence_cache *cache = NULL;
    uint32_t nobody = 0;
    uint64_t ended = load_relaxed(&rounds_ended);

    if (!round_is_due() || !compare_exchange(&decaying, &nobody, 1u))
        return false;
    os_hands_full();
    for (; caches && moves && (cache = hold_next()); caches--) {
        place.done = decay_cache(&cache, &moves);
        if (cache)
            cache_let_go(cache);
    }
    os_hands_empty();
    store_release(&decaying, 0u);
    if (load_relaxed(&rounds_ended) != ended && limit_used_roughly())
        store_relaxed(&drive_due, 1u);
    return cache != NULL;
}

/* ---------------------------------------------------------------------------------------- a CPU */

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

/* Reads a CPU. Returns true if a cache has kept objects there without use, for decay_pass() to
 * take; until then, checks compare with the earlier state. */
bool decay_is_wanted_on(unsigned cpu)
{
    bool wanted;

    os_lock_take(&slab_caches_lock);
    wanted = is_wanted_on(cpu);
    if (!wanted)
        note_all(cpu);
    os_lock_release(&slab_caches_lock);
    return wanted;
}

/* Moves objects that a CPU has kept without use, of all caches, to the nodes, at most `moves` at a
 * time. The caller runs on that CPU; otherwise a kernel takes nothing. Returns whether there is
 * more. The caller ends with decay_pass_end(). */
bool decay_pass(struct decay_pass *pass, unsigned moves)
{
    if (!pass->cache)
        pass->cache = all_caches_hold_after(NULL);
    while (pass->cache &&
           (!pass->cache->percpu || drain_unwanted_of(pass->cache, &pass->place, &moves)))
        pass->cache = all_caches_hold_after(pass->cache);
    return pass->cache != NULL;
}

void decay_pass_end(struct decay_pass *pass)
{
    if (pass->cache)
        cache_let_go(pass->cache);
    pass->cache = NULL;
}

/* --------------------------------------------------------------------------------------- visits */

/*
 * Threads on a slow path do some work now and then for the whole process. They do part of a round,
 * let pages decay, drive grace periods that no other thread asks for, and wake the idle helper.
 */

/*
 * Drives grace periods once a round, for latent objects whose grace period no other thread may ask
 * for. This may call foreign functions, so nothing is held, and a plain free does not call it,
 * because its caller may hold a lock that those functions want.
 */
void decay_drive(void)
{
    if (unlikely(load_relaxed(&drive_due)) && exchange_relaxed(&drive_due, 0u))
        wait_drive_all();
}

/* Called from paths that run often, with no lock of this layer held, because kept memory must age
 * even if no thread takes or frees any. Calls no foreign function. */
void decay_visit(void)
{
    bool pages_decay;

    if (decay_enabled)
        decay_some(VISIT_CACHES, VISIT_MOVES);
    pages_decay = os_pages_decay();
    if (unlikely(load_relaxed(&decay_helper)) && (pages_decay || decay_is_worth_it()))
        os_idle_kick();
}

/* Does the same when nothing at all is held, so that foreign functions may be called. Also acts on
 * what is asked from outside. */
void decay_visit_and_drive(void)
{
    decay_visit();
    decay_drive();
    os_act_if_asked();
}

/*
 * Counts an operation that found the CPU's caches owned by another thread, and goes to the node.
 * Returns whether the thread works for decay now, as after other slow paths. If the owner has
 * lost its CPU, all operations on that CPU go this way until the owner is back, and a visit
 * each time would be a fifth of their cost.
 */
bool decay_visit_count_bypass(struct prudence_cache *cache)
{
    return add_relaxed(&cache->body->busy_bypasses, 1) % BYPASSES_A_VISIT == 0;
}

/* ---------------------------------------------------------------------------------------- early */

/*
 * The free slabs of a cache are available to all (ADR 169).
 *
 * A node keeps the free slabs that were in use within the last one or two windows of decay, because
 * it will want them again. When another slab cache grows in that time, some of them go to the page
 * source first, whatever that has. Only there they serve every size, join free pages next to them
 * to longer runs, and no longer count as used (working_set.c). Otherwise a program that builds up
 * objects of one kind, ends them, and builds up another kind would have both in memory.
 *
 * `keep` bytes stay, because a slab that is remade costs about a microsecond. They are few, since
 * free slabs of many kinds are seldom wanted again before they would go. A regret is growth of a
 * cache whose slabs were taken a moment ago, so that KEEP_MOST bytes would have held them. Caches
 * that take turns are such a case. Each byte of regret is kept from then on, up to KEEP_MOST; other
 * growth takes a quarter of its bytes back.
 */

/* Free bytes of the process that are not touched, and the bytes that were ever taken. Atomic. The
 * first is a hint: one of two changes at the same time may be lost. */
static uint64_t keep = KEEP_LEAST, taken_ever;

/* Returns whether a cache seems to have free slabs, without the node's lock. Slabs of a window
 * stay, because their pages serve no other cache. */
static bool has_free_slabs(const struct prudence_cache *cache, unsigned node)
{
    return !load_relaxed(&cache->body->window) &&
           load_relaxed(&cache->body->nodes[node].free_noted) * cache->body->slab_bytes >=
               EARLY_WORTH;
}

/* Returns, held, a cache with free slabs on the node, or NULL if none was found or the list is in
 * use. */
static struct prudence_cache *hold_one_with_free_slabs(unsigned node)
{
    struct prudence_cache *found = NULL;

    if (!os_lock_try(&slab_caches_lock))
        return NULL;
    for (unsigned looks = 0; !found && looks < EARLY_LOOKS; looks++) {
        struct list *item =
            early_turn && early_turn != &slab_caches ? early_turn : slab_caches.next;
        struct prudence_cache *cache = list_entry(item, struct prudence_cache, link);

        if (item == &slab_caches)
            break; /* the list is empty */
        if (has_free_slabs(cache, node))
            found = cache;
        else
            early_turn = item->next;
    }
    if (found)
        cache_hold(found);
    os_lock_release(&slab_caches_lock);
    return found;
}

/* Adapts `keep` to the growth of a cache. */
static void weigh_regret(struct cache_body *body, size_t bytes)
{
    uint64_t kept = load_relaxed(&keep), taken = load_relaxed(&body->early_taken);
    uint64_t now = load_relaxed(&taken_ever);

    if (taken && now - load_relaxed(&body->early_at) <= KEEP_MOST) {
        store_relaxed(&body->early_taken, taken - min_u64(taken, bytes));
        store_relaxed(&body->early_at, now); /* what this growth takes from others does not count */
        store_relaxed(&keep, min_u64(kept + bytes, KEEP_MOST));
    } else {
        store_relaxed(&keep, kept - min_u64(kept - KEEP_LEAST, bytes / 4));
    }
}

static void take_free_slabs(struct prudence_cache *cache, unsigned node)
{
    size_t bytes = node_shrink_until(&cache->body->nodes[node], 0, EARLY_BYTES);

    store_relaxed(&cache->body->early_at, add_relaxed(&taken_ever, bytes) + bytes);
    add_relaxed(&cache->body->early_taken, bytes);
}

/* Called before the cache gets a slab of `bytes` on the node. Free slabs of another cache decay at
 * once if there are many. */
void decay_early(struct prudence_cache *cache, unsigned node, size_t bytes)
{
    struct prudence_cache *other;

    if (!decay_enabled)
        return;
    add_relaxed(&grown, bytes);
    weigh_regret(cache->body, bytes);
    if (likely(node_lists_free_bytes() <= load_relaxed(&keep)))
        return;
    other = hold_one_with_free_slabs(node);
    if (!other)
        return;
    take_free_slabs(other, node);
    cache_let_go(other);
}
