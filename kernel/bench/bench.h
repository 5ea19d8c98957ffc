/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * prudence_bench.ko: declarations shared by its files. The thread that loads the module runs
 * everything except the workers' functions.
 */
#ifndef PRUDENCE_BENCH_H
#define PRUDENCE_BENCH_H

#include <linux/types.h>

struct kmem_cache;
struct prudence_cache_stats;

/* --- main.c: the parameters --- */
extern char *subject_name;
extern unsigned int pairs, rounds, seconds, cpus, tasks, reader_ms, pace, only_size;
extern bool watch;

/* --- subjects.c --- */
struct subject {
    const char *name;
    void *(*alloc)(size_t size);
    void (*release)(void *object);
    size_t least; /* smallest object size that works */
};

/* Header that some reclaimers write into the old object. */
struct headed {
    struct rcu_head rcu;
};

#define SUBJECTS 6
extern const struct subject subjects[SUBJECTS];

const struct subject *subject_of(const char *name); /* or NULL */
bool subject_is_ours(const struct subject *subject);

/* Calls `run` for each size, round and subject that the parameters allow. In each round another
 * subject is the first. */
void subjects_in_turns(const size_t *sizes, size_t count,
                       void (*run)(const struct subject *subject, size_t size, unsigned int round));

/* Lets later allocations invoke the OOM killer rather than fail first. */
void subjects_try_until_killed(void);

/* --- settle.c --- */
bool settle_start(void); /* called first; false if kfree_rcu cannot be waited for here */

/* Waits until everything deferred is free and no work for it remains, so that each subject begins
 * with the same memory. */
void settle(void);

/* Returns the sum of all CPUs' non-idle time. The difference of two values is the work in
 * between. */
u64 busy_ns(void);

/* --- workers.c --- */
struct worker {
    struct task_struct *task;
    unsigned int cpu;
    u64 ns, done, failed, live;
    u64 longest; /* allocation, in jiffies */
    bool ended, rests;
    const struct subject *subject;
    size_t size;
    int (*body)(struct worker *worker);
};

extern unsigned int worker_count; /* of this run */
extern bool stop;                 /* makes unlimited bodies return */

/* Allocates room for all workers before the first run, and frees it after the last. */
bool workers_make(void);
void workers_forget(void);

/* Starts `body` in `each` threads on every participating CPU. Returns 0 or an error. */
int workers_start(int (*body)(struct worker *worker), const struct subject *subject, size_t size,
                  unsigned int each);
bool workers_rest(void); /* true when every body has set `rests` */
void workers_wait(void); /* until every body has returned */
void workers_end(void);  /* stops the threads; figures stay */

/* Return the sum and the maximum of a u64 of all workers, as in worker_sum(offsetof(struct worker,
 * ns)). */
u64 worker_sum(size_t offset);
u64 worker_most(size_t offset);

/* Returns the memory in use on the machine. */
u64 used_kb(void);

/* --- one run each: pairs.c, latency.c, remote.c, endurance.c, mix.c, misses.c --- */
void run_pairs(void);
void run_latency(void);
void run_mixes(void);

/* Return 0 or an error. */
int run_remote(void);
int run_misses(void);
int run_endurance(const struct subject *subject);

/* --- probes.c: counts SLUB's slow paths for one cache --- */
extern struct kmem_cache *slub_cache; /* that cache (mix.c) */

/* Returns false, and watches nothing, if this kernel's SLUB lacks a probed function. */
bool slub_watch(void);
void slub_unwatch(void);
void slub_forget_counts(void);
long slub_slabs_now(void);

/* Translates SLUB's counters into ours. */
void slub_stats(struct prudence_cache_stats *stats);

#endif /* PRUDENCE_BENCH_H */
