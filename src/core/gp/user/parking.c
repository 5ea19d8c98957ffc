/* SPDX-License-Identifier: MIT */
/*
 * Parks readers that stay outside. Scans read only slots that are *awake*, by two bits a slot in
 * the first cache line of the slot's chunk. A thread whose slot is parked wakes the slot at the
 * next entry. ADR 41 has the argument, tests/model/test_parking.py the model.
 *
 * Invariants:
 *   - A slot that is not awake belongs to no thread, or the slot's attention says PARKED and the
 *     thread is outside, or inside parking_wake() and has read nothing yet.
 *   - A thread that stores a word other than 0 reads the attention afterwards. Nested sections
 *     do so as well, because a signal handler may run between the outer section's store and check.
 *   - A parker sets a mark (PARKED) before the membarrier, or the slot's own thread sets it. Only
 *     the slot's own thread removes the mark, with the word published, after setting the bits.
 *
 * The parker's compare-and-swap clears a bit only if, since the membarrier, the word was 0, the
 * mark was set, and no thread touched the bits. The parker sees the word of a thread that entered
 * before the membarrier. A thread that enters after the membarrier finds the mark, and sets
 * `touched`. A thread that was waking since before `touched` was cleared keeps the word published
 * until the mark is gone.
 *
 * Locks: none. One thread parks at a time, the holder of `parking`; no thread waits for the holder.
 * Waking is async-signal-safe, and a handler may repeat the whole of it at any point.
 */
#include "gp/user/domain.h"
#include "gp/user/parking.h"

/* Policy: when are readers' slots parked? */
/* A check of a slot costs some 3 ns, parking a slot some 30 ns, and a round one membarrier. */
#define LOOKS_A_ROUND 8192 /* readers; checked outside, which pays for a membarrier */
#define LOOKS_A_SLOT  16   /* readers; more for each slot to park, some 30 ns */
#define WORTH_A_ROUND 16   /* readers; least outside of sections */
#define RARELY_MAX    64   /* rounds; most that are left out after readers came back */

static uint64_t *word_of(const struct reader_slot *slot, unsigned *shift)
{
    unsigned index = (unsigned)(slot - slot->chunk->slots);

    *shift = 2 * (index % SLOTS_IN_WORD);
    return &slot->chunk->awake[index / SLOTS_IN_WORD];
}

/* Seq-cst, so the bits are set after the word was published. The caller makes the fence after
 * this. */
static void set_awake(struct reader_slot *slot)
{
    unsigned shift;
    uint64_t *word = word_of(slot, &shift);

    __atomic_fetch_or(word, (uint64_t)(SLOT_AWAKE | SLOT_TOUCHED) << shift, __ATOMIC_SEQ_CST);
}

/*
 * Removes the mark, and adopts the domain's mode. A switch of modes either finds the slot awake and
 * writes the attention, or is found here: the switch stores the mode, fences and reads the bits;
 * this thread sets the bit, fences and reads the mode. The exchange may just have overwritten
 * the switch's attention, hence the second check.
 */
static void follow_mode(struct prudence_domain *domain, struct reader_slot *slot)
{
    uint32_t fenced;

    do {
        fenced = load_acquire(&domain->shared.fenced);
        __atomic_exchange_n(&slot->reader.attention, fenced ? PRUDENCE_ATTENTION_FENCE : 0,
                            __ATOMIC_SEQ_CST);
        os_full_fence();
    } while (load_relaxed(&domain->shared.fenced) != fenced);
}

void parking_wake(struct prudence_domain *domain, struct reader_slot *slot)
{
    set_awake(slot);
    os_full_fence(); /* a driver that missed the bit made its barrier before this section's reads */
    follow_mode(domain, slot);
}

/* The slot is this thread's own, so the domain lives. */
void prudence_reader_wake(struct prudence_reader *self)
{
    parking_wake((struct prudence_domain *)(uintptr_t)load_relaxed(&self->domain),
                 (struct reader_slot *)self);
}

/* Marks a slot that was just claimed, whose bits may be anything. */
void parking_mark_new(struct reader_slot *slot)
{
    __atomic_fetch_or(&slot->reader.attention, PRUDENCE_ATTENTION_PARKED, __ATOMIC_SEQ_CST);
}

/* Repairs the slot of the only thread in a forked child. Fork may have copied the bits before a
 * change and the attention after it, or the reverse. The thread may be inside. */
void parking_fork_child(struct reader_slot *slot)
{
    set_awake(slot);
    parking_mark_new(slot);
}

/* Has every reader that is awake, or wakes, follow the mode that the caller has stored. */
COLD void parking_follow_mode(struct prudence_domain *domain, bool fenced)
{
    struct reader_slot *slot;

    os_full_fence(); /* see follow_mode */
    for_each_awake(walk, slot, domain)
    {
        if (fenced)
            __atomic_fetch_or(&slot->reader.attention, PRUDENCE_ATTENTION_FENCE, __ATOMIC_SEQ_CST);
        else
            __atomic_fetch_and(&slot->reader.attention, ~PRUDENCE_ATTENTION_FENCE,
                               __ATOMIC_SEQ_CST);
    }
}

/* ----------------------------------------------------------------------------------- the parker */

/* Marks those slots of a word that are outside and were not woken since the last round. */
static unsigned parking_mark(struct reader_chunk *chunk, unsigned index)
{
    uint64_t word = load_acquire(&chunk->awake[index]);
    uint64_t touched = word >> 1 & SLOTS_AWAKE;
    unsigned marked = 0;

    if (touched)
        __atomic_fetch_and(&chunk->awake[index], ~(touched << 1), __ATOMIC_SEQ_CST);
    for (uint64_t left = word & SLOTS_AWAKE & ~touched; left; left &= left - 1) {
        struct reader_slot *slot =
            &chunk->slots[index * SLOTS_IN_WORD + (unsigned)__builtin_ctzll(left) / 2];

        if (load_relaxed(&slot->reader.word))
            continue;
        __atomic_fetch_or(&slot->reader.attention, PRUDENCE_ATTENTION_PARKED, __ATOMIC_SEQ_CST);
        marked++;
    }
    return marked;
}

/* Acquire: the slot's sections are over, and the mark is loaded afterwards. */
static bool is_outside(struct reader_slot *slot)
{
    return load_acquire(&slot->reader.word) == 0 && load_acquire(&slot->reader.attention) < 0;
}

/* Parks marked slots after the membarrier. Returns the number of slots parked now, and adds the
 * others to `*left`. Each repetition means that another thread has touched its bits, which are then
 * not touched. */
static unsigned park(struct reader_chunk *chunk, unsigned index, unsigned *left)
{
    uint64_t word = load_acquire(&chunk->awake[index]), parked;

    do {
        parked = 0;
        for (uint64_t some = word & SLOTS_AWAKE & ~(word >> 1); some; some &= some - 1) {
            unsigned bit = (unsigned)__builtin_ctzll(some);

            if (is_outside(&chunk->slots[index * SLOTS_IN_WORD + bit / 2]))
                parked |= UINT64_C(1) << bit;
        }
    } while (parked && !compare_exchange(&chunk->awake[index], &word, word & ~parked));
    *left += (unsigned)__builtin_popcountll(word & SLOTS_AWAKE & ~parked);
    return (unsigned)__builtin_popcountll(parked);
}

/* Makes rounds rarer if many of the readers parked last time woke, otherwise more frequent. */
static void learn(struct prudence_domain *domain, unsigned awake)
{
    unsigned came = awake > domain->left_awake ? awake - domain->left_awake : 0;

    if (came > domain->parked / 2)
        domain->park_rarely =
            domain->park_rarely < RARELY_MAX ? 2 * domain->park_rarely + 1 : RARELY_MAX;
    else
        domain->park_rarely /= 2;
}

/* `barrier`: make a membarrier even if no slot is marked, because the caller needs one. */
static void round_of_parking(struct prudence_domain *domain, unsigned outside, bool barrier)
{
    struct reader_chunk *chunk, *chunks = load_acquire(&domain->chunks);
    unsigned marked = 0, parked = 0, left = 0;

    for (chunk = chunks; chunk; chunk = chunk->next)
        for (unsigned index = 0; index < AWAKE_WORDS; index++)
            marked += parking_mark(chunk, index);
    if (marked || barrier)
        os_membarrier();
    for (chunk = marked || barrier ? chunks : NULL; chunk; chunk = chunk->next)
        for (unsigned index = 0; index < AWAKE_WORDS; index++)
            parked += park(chunk, index, &left);
    if (marked || barrier) {
        learn(domain, parked + left);
        domain->parked = parked;
        count_add(&domain->parked_ever, parked);
        domain->left_awake = left;
    }
    store_relaxed(&domain->park_after,
                  (LOOKS_A_ROUND + (uint64_t)LOOKS_A_SLOT * outside) * (domain->park_rarely + 1));
}

/* Counts the `outside` readers that a scan found, and starts a round when that is worthwhile. Any
 * number of drivers may call; one parks, the others go on. */
void parking_after_scan(struct prudence_domain *domain, unsigned outside)
{
    uint64_t looked = load_relaxed(&domain->looked_in_vain) + outside;
    uint32_t nobody = 0;

    store_relaxed(&domain->looked_in_vain, looked);
    if (likely(looked < LOOKS_A_ROUND || looked < load_relaxed(&domain->park_after)) ||
        outside < WORTH_A_ROUND || !os_membarrier_available() ||
        !compare_exchange(&domain->parking, &nobody, 1u))
        return;
    store_relaxed(&domain->looked_in_vain, (uint64_t)0);
    round_of_parking(domain, outside, false);
    store_release(&domain->parking, 0u);
}

/* --------------------------------------------------------------------------------------- asking */

#define LOOK_AT_CHUNKS_MAX 16 /* readers; in chunks of 127, so that counting is quick */

/* Returns the number of awake slots, or UINT32_MAX if counting would take too long for the owner of
 * a CPU's caches. */
unsigned parking_count_awake(const struct prudence_domain *domain)
{
    unsigned chunks = 0, awake = 0;

    for (const struct reader_chunk *chunk = load_acquire(&domain->chunks); chunk;
         chunk = chunk->next) {
        if (++chunks > LOOK_AT_CHUNKS_MAX)
            return UINT32_MAX;
        for (unsigned index = 0; index < AWAKE_WORDS; index++)
            awake +=
                (unsigned)__builtin_popcountll(load_relaxed(&chunk->awake[index]) & SLOTS_AWAKE);
    }
    return awake;
}

/* Acquire: the sections of a thread that has given the slot back are over. */
static bool is_anybodys(const struct reader_slot *slot)
{
    return load_acquire(&slot->thread) != 0;
}

/*
 * Asks every reader that is awake, except the caller's own slot `but`, to fence. Each slot is
 * marked as if for parking, so the thread's next entry fences (parking_wake). A mark that is
 * already set is enough, because the thread removes it by an exchange that comes after this one,
 * and fences once more. Called by the holder of `parking`, after loading the goal.
 *
 * The fence is for readers that are not asked. A reader that is parked, or registers later, sets
 * the bit or claims a slot, and fences, before reading. If that is missed here, the reader's fence
 * came after this one, so the reader finds nothing that was unlinked before the goal. This is also
 * the fence of the caller's own sections.
 */
void parking_ask(struct prudence_domain *domain, const struct reader_slot *but)
{
    struct reader_slot *slot;

    os_full_fence();
    for_each_awake(walk, slot, domain)
    {
        if (slot != but && is_anybodys(slot))
            __atomic_fetch_or(&slot->reader.attention, PRUDENCE_ATTENTION_PARKED, __ATOMIC_SEQ_CST);
    }
}

/*
 * Returns whether each reader has fenced since being asked, which removes the reader's mark.
 * Acquire: the caller then sees the words that were published before the marks were removed. Called
 * by the holder of `parking`.
 */
bool parking_all_answered(const struct prudence_domain *domain, const struct reader_slot *but)
{
    const struct reader_slot *slot;

    for_each_awake(walk, slot, domain)
    {
        if (slot != but && is_anybodys(slot) && load_acquire(&slot->reader.attention) < 0)
            return false;
    }
    return true;
}

/* Makes a membarrier. Also parks readers that did not answer when asked, if they are outside, so
 * that they need not be asked again. */
void parking_membarrier(struct prudence_domain *domain)
{
    uint32_t nobody = 0;

    if (likely(!load_relaxed(&domain->unanswered)) ||
        !compare_exchange(&domain->parking, &nobody, 1u)) {
        os_membarrier();
        return;
    }
    if (load_relaxed(&domain->unanswered) > domain->park_rarely) {
        store_relaxed(&domain->unanswered, 0u);
        round_of_parking(domain, 0, true);
    } else {
        count_add(&domain->unanswered, 1);
        os_membarrier();
    }
    store_release(&domain->parking, 0u);
}
