/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * One CPU's caches: the object cache (a stack) and the latent cache (a ring of closed batches and an open one), and
 * owning them. Between take and release the caller makes no system call, takes no lock and does not wait.
 */
#ifndef SLAB_CPU_CACHE_H
#define SLAB_CPU_CACHE_H

#include "gp/gp.h"
#include "os/os.h"
#include "slab/cache.h"

struct batch {
    uint64_t end; /* the ring's tail when it was closed */
    gp_cookie cookie;
};

/* Counters of a CPU; written by the owner of its caches. */
struct cpu_counts {
    uint64_t stacked;   /* objects that the owner put on the stack: refills, merges */
    uint64_t unstacked; /* objects that the owner took off it: flushes */
    uint64_t refills, refilled_objects;
    uint64_t merges, merged_objects;
    uint64_t hits_after_merge;
};

/*
 * Invariants: objects on the stack <= size; tail - head <= size; closed batches are batches[batch_head ..
 * batch_tail), the last one ends at `closed`, and the open one is [closed, tail). head <= tail <= stop <= reserved,
 * and reserved - head objects are in the account of latent bytes. Only the owner writes, except for head, tail, stop
 * and the stack's word.
 */
struct cpu_cache {
    struct os_percpu_line line;
    bool churned;   /* flushed since its last growth: a refill then makes a churn */
    unsigned size;  /* of the object cache, and the limit of the latent cache; follows demand */
    unsigned slots; /* of stack and ring; a power of two, 0: none yet */
    unsigned batch_head, batch_tail; /* ever closed; index & batch_mask */
    unsigned ahead;                  /* objects: reserved - tail, at the owner's last visit */
    unsigned not_at_once;            /* closed batches until latent_end_at_once() tries again */
    unsigned batch_mask;             /* batch_slots() - 1, a power of two less 1 */
    uint64_t closed;
    struct cpu_counts counts;
    uint64_t quiet_word, quiet_tail;  /* what drain_quiet_cpus() saw last */
    gp_cookie closed_cookie;          /* of the newest closed batch; written before `closed` */
    uint64_t tidy_word, tidy_tail;    /* what tidying saw last */
    uint32_t preflush_gained;         /* what the idle helper saw last */
    uint32_t worth_pops, worth_since; /* since when hits are weighed (give.c); hints */
    uint64_t reserved; /* the tail up to which the account knows of objects; >= tail */
};
_Static_assert(sizeof(struct cpu_cache) <= OS_PERCPU_STRIDE, "lines are a stride apart");

static inline struct cpu_cache *cpu_cache_of(const struct prudence_cache *cache, unsigned cpu)
{
    return (struct cpu_cache *)((char *)cache->percpu + cpu * OS_PERCPU_STRIDE);
}

/* Objects that share a cookie: less in a small ring. */
static inline unsigned batch_of(const struct prudence_cache *cache, const struct cpu_cache *cpu)
{
    return (unsigned)clamp_size(cpu->size / 2, 1, cache->batch);
}

static inline struct batch *batches_of(const struct cpu_cache *cpu)
{
    return (struct batch *)(cpu->line.ring + cpu->slots); /* behind the ring, in the same block */
}

static inline unsigned batch_slots(const struct prudence_cache *cache, unsigned slots)
{
    return (unsigned)round_up_to_power_of_two(max_size(8, 2 * slots / cache->batch));
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
                      struct arrays *spare);
void cpu_cache_free_arrays(struct prudence_cache *cache, struct cpu_cache *cpu);
void *cpu_cache_detach_arrays(struct prudence_cache *cache, struct cpu_cache *cpu, size_t *bytes);
size_t cpu_cache_array_bytes(const struct prudence_cache *cache, unsigned slots);
/* All CPUs' caches: claim those of one or more slab caches, os_percpu_fence_all(), confirm them. Not fenced, they may be read
 * only. */
void cpu_cache_claim_all(struct prudence_cache *cache, const void *token);
void cpu_cache_confirm_all(struct prudence_cache *cache, const void *token);
void cpu_cache_release_all(struct prudence_cache *cache, const void *token, bool fenced);
/* For a fork that could not fence, of each CPU: what was claimed; and the repair in the child of what came of it since. Without
 * notes (NULL) the child loses an object of each CPU. */
struct cpu_note {
    uint64_t stack_word, ring_tail;
};
void cpu_cache_note_all(const struct prudence_cache *cache, struct cpu_note *notes);
void cpu_cache_repair_all(struct prudence_cache *cache, const void *token,
                          const struct cpu_note *notes);

#endif /* SLAB_CPU_CACHE_H */
