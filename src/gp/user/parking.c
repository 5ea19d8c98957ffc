/* SPDX-License-Identifier: MIT */
/*
 * Readers that stay outside are parked: scans look at the slots that are *awake*, by two bits a slot in the first
 * cache line of its chunk. A thread whose slot is parked wakes it at its next entry. ADR 41 has the argument,
 * tests/model/test_parking.py the model.
 *
 * Invariants:
 *   - A slot that is not awake belongs to no thread, or its attention says PARKED and its thread is outside, or
 *     inside reader_wake() and has read nothing yet.
 *   - A thread that stores a word that is not 0 looks at its attention afterwards. Nested sections do so as well,
 *     because a signal handler may stand between the outer section's store and its look.
 *   - A mark (PARKED) is set by a parker before its membarrier, or by the slot's own thread; it is taken away by its
 *     own thread alone, with its word published, after the bits are set.
 *
 * The parker's compare-and-swap clears a bit only if, since the membarrier, the word was 0, the mark was there, and
 * no thread touched the bits. A thread that entered before the membarrier has its word seen; one that enters after it
 * finds the mark, and sets `touched`. One that was waking since before `touched` was cleared has its word published
 * until its mark is gone.
 *
 * Locks: none. One thread parks at a time, the holder of `parking`; no thread waits for it. Waking is
 * async-signal-safe, and may be repeated by a handler at any point of itself.
 */
#include "gp/user/domain.h"

/* A look at a slot costs some 3 ns, parking one some 30, a round a membarrier. */
#define LOOKS_A_ROUND 8192
#define LOOKS_A_SLOT  16
#define WORTH_A_ROUND 16 /* slots outside */
#define RARELY_MAX    64

static uint64_t *word_of(const struct reader_slot *slot, unsigned *shift)
{
    unsigned index = (unsigned)(slot - slot->chunk->slots);

    *shift = 2 * (index % SLOTS_IN_WORD);
    return &slot->chunk->awake[index / SLOTS_IN_WORD];
}

/* Seq-cst: behind the word that was published; the fence after it is the caller's. */
static void set_awake(struct reader_slot *slot)
{
    unsigned shift;
    uint64_t *word = word_of(slot, &shift);

    __atomic_fetch_or(word, (uint64_t)(SLOT_AWAKE | SLOT_TOUCHED) << shift, __ATOMIC_SEQ_CST);
}

/*
 * Takes the mark away, and takes over the domain's mode. A switch either finds the slot awake and writes
 * its attention, or is found here: it stores the mode, fences and looks at the bits; this sets the bit,
 * fences and looks at the mode. What it wrote may just have been overwritten, hence the second look.
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

void reader_wake(struct prudence_domain *domain, struct reader_slot *slot)
{
    set_awake(slot);
    os_full_fence(); /* a driver that missed the bit made its barrier before what this section reads */
    follow_mode(domain, slot);
}

/* Its own, so the domain lives. */
void prudence_reader_wake(struct prudence_reader *self)
{
    reader_wake((struct prudence_domain *)(uintptr_t)load_relaxed(&self->domain),
                (struct reader_slot *)self);
}

/* A slot that was just claimed; its bits may be anything. */
void reader_park_first(struct reader_slot *slot)
{
    __atomic_fetch_or(&slot->reader.attention, PRUDENCE_ATTENTION_PARKED, __ATOMIC_SEQ_CST);
}

/* Repairs the slot of the only thread that is left: fork may have copied one of bits and attention before a change,
 * and the other after it. The thread may be inside. */
void reader_fork_child(struct reader_slot *slot)
{
    set_awake(slot);
    reader_park_first(slot);
}

/* Before: the domain's mode was stored. Afterwards every reader that is awake, or wakes, follows it. */
void readers_follow_mode(struct prudence_domain *domain, bool fenced)
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

/* ------------------------------------------------------------------------------------------ the parker */

/* Marks those of a word's slots that are outside and were not woken since the last round. */
static unsigned mark(struct reader_chunk *chunk, unsigned index)
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

/* Acquire: the sections of the slot are over; and the mark is looked for after that. */
static bool is_outside(struct reader_slot *slot)
{
    return load_acquire(&slot->reader.word) == 0 && load_acquire(&slot->reader.attention) < 0;
}

/* Called behind the membarrier. Returns how many are parked now; *left: how many are not. Each repetition means that
 * another thread has touched its bits, which are then left alone. */
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

/* Whether those that were parked stay so. */
static void learn(struct prudence_domain *domain, unsigned awake)
{
    unsigned came = awake > domain->left_awake ? awake - domain->left_awake : 0;

    if (came > domain->parked / 2)
        domain->park_rarely =
            domain->park_rarely < RARELY_MAX ? 2 * domain->park_rarely + 1 : RARELY_MAX;
    else
        domain->park_rarely /= 2;
}

/* barrier: for the caller's sake there is to be a membarrier in any case. */
static void round_of_parking(struct prudence_domain *domain, unsigned outside, bool barrier)
{
    struct reader_chunk *chunk, *chunks = load_acquire(&domain->chunks);
    unsigned marked = 0, parked = 0, left = 0;

    for (chunk = chunks; chunk; chunk = chunk->next)
        for (unsigned index = 0; index < AWAKE_WORDS; index++)
            marked += mark(chunk, index);
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

/* After a scan that found so many outside. Any number of drivers; one of them parks, the others go on. */
void readers_park(struct prudence_domain *domain, unsigned outside)
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

/* ------------------------------------------------------------------------------------------ asking */

#define LOOK_AT_CHUNKS_MAX 16 /* of 127 slots each */

/* How many slots are awake; UINT32_MAX: to count them takes too long for an owner of a CPU's caches. */
unsigned readers_awake(const struct prudence_domain *domain)
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
 * Asks every reader that is awake, `but` for the caller's own, to fence: it is marked as if it were to be parked, so
 * its next entry fences (reader_wake). An older mark will do, because its thread takes it away by an exchange behind
 * this one's, and fences once more. Called by the holder of `parking`, after it has loaded its goal.
 *
 * The fence is for readers that are not asked. One that is parked, or registers later, sets its bit or claims its
 * slot, and fences, before it reads. If that is missed here, it came behind this fence, so that reader finds nothing
 * that was unlinked before the goal. It is also the fence of the caller's own sections.
 */
void readers_ask(struct prudence_domain *domain, const struct reader_slot *but)
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
 * Whether each reader has fenced since it was asked: its mark is gone when its thread has. Acquire: a word that was
 * published before that is seen behind this. Called by the holder of `parking`.
 */
bool readers_have_answered(const struct prudence_domain *domain, const struct reader_slot *but)
{
    const struct reader_slot *slot;

    for_each_awake(walk, slot, domain)
    {
        if (slot != but && is_anybodys(slot) && load_acquire(&slot->reader.attention) < 0)
            return false;
    }
    return true;
}

/* A membarrier. It also parks readers that did not answer when they were asked, if they are outside, so that they
 * need not be asked again. */
void readers_membarrier(struct prudence_domain *domain)
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
