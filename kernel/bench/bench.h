/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * prudence_bench.ko: what its files share. The thread that loads the module runs all of it; the workers'
 * functions alone run on other threads.
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
    size_t least; /* object size that it can do with */
};

/* What reclaimers that need a head write into the old object. */
struct headed {
    struct rcu_head rcu;
};

#define SUBJECTS 6
extern const struct subject subjects[SUBJECTS];

const struct subject *subject_of(const char *name); /* NULL: there is none */
bool subject_is_ours(const struct subject *subject);

/* From here on allocations go as far as the OOM killer, rather than fail before. */
void subjects_try_until_killed(void);

/* --- settle.c --- */
bool settle_start(void); /* before all else; false: this kernel's kfree_rcu cannot be waited for */

/* All that was deferred is free, and no work for it is left: the next subject begins with the same memory. */
void settle(void);

/* For how long CPUs have not been idle, all together. A difference of two is the work done in between. */
u64 busy_ns(void);

/* --- workers.c --- */
struct worker {
    struct task_struct *task;
    unsigned int cpu;
    u64 ns, done, failed, live;
    u64 longest; /* allocation: ticks */
    bool ended, rests;
    const struct subject *subject;
    size_t size;
    int (*body)(struct worker *worker);
};

extern unsigned int worker_count; /* of this run */
extern bool stop;                 /* bodies that go on until they are told read it */

/* Room for all, before the first run and after the last. */
bool workers_make(void);
void workers_forget(void);

/* `each` threads on every CPU that takes part begin `body`; an error, or 0. */
int workers_start(int (*body)(struct worker *worker), const struct subject *subject, size_t size,
                  unsigned int each);
bool workers_rest(void); /* every body has set `rests` */
void workers_wait(void); /* for the end of every body */
void workers_end(void);  /* of their threads; figures stay */

/* A u64 of all workers: worker_sum(offsetof(struct worker, ns)). */
u64 worker_sum(size_t offset);
u64 worker_most(size_t offset);

/* Of the machine's memory. */
u64 used_kb(void);

/* --- one run each: pairs.c, remote.c, endurance.c, mix.c, misses.c --- */
void run_pairs(void);
void run_mixes(void);

/* These return an error, or 0. */
int run_remote(void);
int run_misses(void);
int run_endurance(const struct subject *subject);

/* --- probes.c: SLUB's slow paths, counted for one cache --- */
extern struct kmem_cache *slub_cache; /* this one (mix.c) */

/* False, with nothing watched, where this kernel's SLUB is another one. */
bool slub_watch(void);
void slub_unwatch(void);
void slub_forget_counts(void);
long slub_slabs_now(void);

/* SLUB's counters in our words. */
void slub_stats(struct prudence_cache_stats *stats);

#endif /* PRUDENCE_BENCH_H */
