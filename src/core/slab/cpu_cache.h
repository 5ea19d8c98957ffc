/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A CPU's caches and their ownership: the object cache (a stack) and the latent cache (a ring of
 * closed batches and an open one). Between take and release the caller makes no system call, takes
 * no lock and does not wait.
 */
#ifndef SLAB_CPU_CACHE_H
#define SLAB_CPU_CACHE_H

#include "gp/gp.h"
#include "os/os.h"
#include "slab/cache_type.h"
#include "slab/figures.h"

struct batch {
    uint64_t end; /* the ring's tail when the batch was closed */
    gp_cookie cookie;
};

/* Counters of a CPU. The owner of the caches writes them. */
struct cpu_counts {
    uint64_t stacked;   /* objects that the owner put on the stack by refills and merges */
    uint64_t unstacked; /* objects that the owner took off the stack by flushes */
    CPU_COUNTERS(COUNTER_FIELD)
};

/*
 * Invariants: objects on the stack <= size; tail - head <= size; closed batches are
 * batches[batch_head .. batch_tail), the last one ends at `closed`, and the open one is [closed,
 * tail). head <= tail <= stop <= reserved, and the account of latent bytes covers reserved - head
 * objects. Only the owner writes, except for head, tail, stop and the stack's word.
 */
struct cpu_cache {
    struct os_percpu_line line;
    /* set by a flush or an overflow, cleared by an attempt to grow */
    bool churned;
    uint8_t unmerged_refills; /* with closed batches since the last merge, up to UNMERGED_MAX */
    unsigned size;  /* of the object cache, and limit of the latent cache; follows demand */
    unsigned slots; /* of the ring; a power of two, or 0 before the arrays exist */
    unsigned batch_head, batch_tail; /* running counts; the slot is index & batch_mask */
    unsigned ahead;                  /* objects reserved past the tail, at the owner's last visit */
    uint16_t not_at_once;            /* calls of latent_cache_end_at_once() to skip */
    uint16_t tried_early;            /* such calls in a row that gave GP_LATER */
    unsigned batch_mask;             /* batch_slots() - 1, a power of two less 1 */
    uint64_t closed;
    struct cpu_counts counts;
    uint64_t quiet_word, quiet_tail; /* last seen by drain_quiet_cpus() */
    gp_cookie closed_cookie; /* cookie of the newest closed batch; written before `closed` */
    uint64_t decay_word, decay_tail; /* last seen by decay */
    uint32_t preflush_gained;        /* gained() at the helper's last check (preflush.c) */
    /* Start of the period over which hits are weighed (budget_share.c); hints. */
    uint32_t worth_pops, worth_since;
    /* Without arrays the number of misses, else what abandoned.c has seen last; a hint. */
    uint32_t abandoned_word;
    uint64_t reserved; /* the tail up to which the account covers objects; >= tail */
};
_Static_assert(sizeof(struct cpu_cache) <= OS_PERCPU_STRIDE, "lines are a stride apart");
_Static_assert(OS_CACHE_OBJECTS_MAX <= STACK_COUNT_MASK, "the word of a stack has its count");

static inline struct cpu_cache *cpu_cache_of(const struct prudence_cache *cache, unsigned cpu)
{
    return (struct cpu_cache *)((char *)load_relaxed(&cache->percpu) + cpu * OS_PERCPU_STRIDE);
}

/* Returns the number of objects that share a cookie. An open batch waits for its cookie until it is
 * complete, so it is a small part of the ring where no thread ends grace periods sooner. */
static inline unsigned batch_of(const struct prudence_cache *cache, const struct cpu_cache *cpu)
{
    return (unsigned)clamp_size(cpu->size / GP_RING_BATCHES, 1, cache->body->batch);
}

static inline struct batch *batches_of(const struct cpu_cache *cpu)
{
    return (struct batch *)(cpu->line.ring + cpu->slots); /* after the ring, in the same block */
}

static inline unsigned batch_slots(const struct prudence_cache *cache, unsigned slots)
{
    return (unsigned)round_up_to_power_of_two(max_size(8, 2 * slots / cache->body->batch));
}

struct cpu_cache *cpu_cache_take(struct prudence_cache *cache, const void *token);
bool cpu_cache_take_remote(struct cpu_cache *cpu, const void *token);
bool cpu_cache_visit_remote(struct cpu_cache *cpu, const void *token,
                            void (*visit)(struct os_percpu_line *line, void *data), void *data);
void cpu_cache_release(struct cpu_cache *cpu);
bool cpu_cache_grow(struct prudence_cache *cache, unsigned size);
struct arrays {
    void *block;
    size_t bytes;
};
struct arrays cpu_cache_arrays_for(const struct prudence_cache *cache, unsigned size);
void cpu_cache_arrays_free(struct arrays arrays);
bool cpu_cache_shrink(struct prudence_cache *cache, struct cpu_cache *cpu, unsigned size,
                      struct arrays *arrays);
void cpu_cache_free_arrays(struct prudence_cache *cache, struct cpu_cache *cpu);
void *cpu_cache_detach_arrays(struct prudence_cache *cache, struct cpu_cache *cpu, size_t *bytes);
size_t cpu_cache_array_bytes(const struct prudence_cache *cache, unsigned size);
/* Claim the caches of all CPUs, for one or more slab caches; then call os_percpu_fence_all(), and
 * confirm the claims. If the fence failed, the caches may only be read. */
void cpu_cache_claim_all(struct prudence_cache *cache, const void *token);
void cpu_cache_confirm_all(struct prudence_cache *cache, const void *token);
void cpu_cache_release_all(struct prudence_cache *cache, const void *token, bool fenced);
/* State of a CPU's caches in a fork that could not fence, from which the child undoes later
 * changes. Without notes (NULL) the child loses one object of each stack and open batch. */
struct cpu_note {
    uint64_t stack_word, ring_tail;
};
void cpu_cache_note_all(const struct prudence_cache *cache, struct cpu_note *notes);
void cpu_cache_repair_all(struct prudence_cache *cache, const void *token,
                          const struct cpu_note *notes);

#endif /* SLAB_CPU_CACHE_H */
