/* SPDX-License-Identifier: MIT */
/* Readers that stay outside are taken out of the scans (see parking.c). */
#ifndef GP_USER_PARKING_H
#define GP_USER_PARKING_H

#include "gp/user/domain.h"

/* A scan reads only awake slots. All other readers are outside, or their threads wake the slots,
 * and fence, before they read anything. */
void parking_after_scan(struct prudence_domain *domain, unsigned outside);
void parking_membarrier(struct prudence_domain *domain);
unsigned parking_count_awake(const struct prudence_domain *domain);
void parking_ask(struct prudence_domain *domain, const struct reader_slot *but);
bool parking_all_answered(const struct prudence_domain *domain, const struct reader_slot *but);
void parking_follow_mode(struct prudence_domain *domain, bool fenced);
void parking_mark_new(struct reader_slot *slot);
void parking_fork_child(struct reader_slot *slot);
void parking_wake(struct prudence_domain *domain, struct reader_slot *slot);

/* Called after the word was published, nested or not. */
static inline void reader_mind_parking(struct prudence_domain *domain, struct reader_slot *slot)
{
    compiler_barrier();
    if (unlikely(load_acquire(&slot->reader.attention) < 0))
        parking_wake(domain, slot);
}

struct awake_walk {
    struct reader_chunk *chunk;
    unsigned next_word; /* index in the chunk */
    uint64_t bits;      /* not yet visited bits of the word before */
};

/* Acquire: a thread that cleared a bit saw the slot's sections end; a thread that set a bit has
 * published the word. */
static inline struct reader_slot *awake_next(struct awake_walk *walk)
{
    unsigned bit;

    while (!walk->bits) {
        if (walk->next_word == AWAKE_WORDS) {
            walk->chunk = walk->chunk->next;
            walk->next_word = 0;
        }
        if (!walk->chunk)
            return NULL;
        walk->bits = load_acquire(&walk->chunk->awake[walk->next_word++]) & SLOTS_AWAKE;
    }
    bit = (unsigned)__builtin_ctzll(walk->bits);
    walk->bits &= walk->bits - 1;
    return &walk->chunk->slots[(walk->next_word - 1) * SLOTS_IN_WORD + bit / 2];
}

/* Only for readers of memb and qsbr domains. */
#define for_each_awake(walk, slot, domain)                                                         \
    for (struct awake_walk walk = {.chunk = load_acquire(&(domain)->chunks)};                      \
         ((slot) = awake_next(&(walk)));)

#endif /* GP_USER_PARKING_H */
