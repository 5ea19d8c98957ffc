// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Replaces list entries for some seconds and samples the memory in use and RCU's grace periods, as
 * in the paper's Figure 3. */
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/rculist.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <linux/vmstat.h>

#include "torture/long_reader.h"
#include "bench.h"
#include "gp_numbers.h"

#define ENTRIES 256

struct entry {
    struct headed headed; /* a reclaimer may write it while readers follow `link` */
    struct list_head link;
};

/* Retries a failed allocation after a tick, until memory is available or the run ends. Each attempt
 * already waits for memory. */
static struct entry *alloc_at_last(struct worker *worker)
{
    unsigned long began = jiffies;
    struct entry *new = worker->subject->alloc(worker->size);

    while (!new && !READ_ONCE(stop)) {
        WRITE_ONCE(worker->failed, worker->failed + 1);
        schedule_timeout_uninterruptible(1);
        new = worker->subject->alloc(worker->size);
    }
    worker->longest = max_t(u64, worker->longest, jiffies - began);
    return new;
}

static void fill(struct worker *worker, struct list_head *list)
{
    struct entry *new;
    unsigned int i;

    for (i = 0; i < ENTRIES && (new = alloc_at_last(worker)); i++)
        list_add_tail_rcu(&new->link, list);
}

/* Replaces each entry once, unless the run ends. Publishes the new one by rcu_assign_pointer(), as
 * list_replace_rcu() does. */
static void replace_all(struct worker *worker, struct list_head *list)
{
    struct entry *old, *next;

    list_for_each_entry_safe(old, next, list, link) {
        struct entry *new = alloc_at_last(worker);

        if (!new)
            return;
        list_replace_rcu(&old->link, &new->link);
        worker->subject->release(old);
        WRITE_ONCE(worker->done, worker->done + 1);
    }
}

/* Updates the worker's own list without giving up, like the paper's updaters. */
static int do_endurance(struct worker *worker)
{
    struct entry *old, *next;
    LIST_HEAD(list);

    fill(worker, &list);
    while (!READ_ONCE(stop)) {
        replace_all(worker, &list);
        cond_resched();
    }
    list_for_each_entry_safe(old, next, &list, link)
        worker->subject->release(old);
    return 0;
}

struct sample {
    u32 ms;
    u32 used_kb;
    u32 normal, expedited; /* grace periods since the run began */
    u64 done;
};

/* Samples taken every 10 ms, and the state before the run. */
struct history {
    struct sample *samples;
    unsigned int most, count;
    u64 before, peak, area; /* KB; `area` in KB x ms */
    u64 kills;              /* by the OOM killer, before the run */
    u32 failed_ms;          /* time of the first failed allocation, or 0 */
    struct rcu_gp_seq began;
};

/* Returns the number of grace periods between two snapshots of RCU's counters. */
static u32 grace_periods(unsigned long before, unsigned long after)
{
    return (u32)((after - before) >> 2); /* the lowest two bits are the state */
}

static u64 oom_kills(void)
{
    static unsigned long events[NR_VM_EVENT_ITEMS];

    all_vm_events(events);
    return events[OOM_KILL];
}

/* Records a sample. The area counts the memory seen now for the whole time since the last
 * sample. */
static void note_sample(struct history *history, u64 start)
{
    struct sample *sample = &history->samples[history->count++];
    u32 before = history->count > 1 ? sample[-1].ms : 0;
    struct rcu_gp_seq periods;

    get_state_synchronize_rcu_full(&periods);
    sample->normal = grace_periods(history->began.GP_NORM, periods.GP_NORM);
    sample->expedited = grace_periods(history->began.GP_EXP, periods.GP_EXP);
    sample->ms = (u32)div_u64(ktime_get_ns() - start, NSEC_PER_MSEC);
    sample->used_kb = (u32)used_kb();
    sample->done = worker_sum(offsetof(struct worker, done));
    history->area += (u64)sample->used_kb * (sample->ms - before);
    history->peak = max_t(u64, history->peak, sample->used_kb);
    if (!history->failed_ms && worker_sum(offsetof(struct worker, failed)))
        history->failed_ms = max(sample->ms, 1u);
}

static void endurance_watch(struct history *history)
{
    u64 start = ktime_get_ns();

    get_state_synchronize_rcu_full(&history->began);
    while (history->count < history->most && ktime_get_ns() - start < (u64)seconds * NSEC_PER_SEC) {
        note_sample(history, start);
        usleep_range(9000, 11000);
    }
}

static void endurance_print(const struct subject *subject, const struct history *history)
{
    unsigned int step = max(history->count / 200, 1u), i;
    const struct sample *last = &history->samples[history->count - 1];

    for (i = 0; i < history->count; i += step)
        pr_info(
            "BENCH "
            "{\"run\":\"sample\",\"subject\":\"%s\",\"ms\":%u,\"used_kb\":%u,\"updates\":%llu,"
            "\"grace_periods\":%u,\"expedited\":%u}\n",
            subject->name, history->samples[i].ms, history->samples[i].used_kb,
            history->samples[i].done, history->samples[i].normal, history->samples[i].expedited);
    pr_info(
        "BENCH "
        "{\"run\":\"endurance\",\"subject\":\"%s\",\"cpus\":%u,\"tasks\":%u,\"reader_ms\":%u,"
        "\"ms\":%u,\"updates\":%llu,\"before_kb\":%llu,\"mean_kb\":%llu,\"peak_kb\":%llu,"
        "\"after_kb\":%llu,\"failures\":%llu,\"failed_ms\":%u,\"longest_ms\":%u,\"kills\":%llu,"
        "\"total_kb\":%lu}\n",
        subject->name, worker_count / max(tasks, 1u), tasks, reader_ms, last->ms, last->done,
        history->before, div64_u64(history->area, max(last->ms, 1u)), history->peak, used_kb(),
        worker_sum(offsetof(struct worker, failed)), history->failed_ms,
        jiffies_to_msecs(worker_most(offsetof(struct worker, longest))),
        oom_kills() - history->kills, totalram_pages() << (PAGE_SHIFT - 10));
}

static int endure(const struct subject *subject, struct history *history)
{
    size_t size = max_t(size_t, only_size ? only_size : 512, sizeof(struct entry));
    int error = workers_start(do_endurance, subject, size, tasks);

    if (error)
        return error;
    endurance_watch(history);
    WRITE_ONCE(stop, true);
    workers_wait();
    workers_end();
    settle();
    endurance_print(subject, history);
    return 0;
}

int run_endurance(const struct subject *subject)
{
    struct history history = {.most = seconds * 100 + 100, .before = used_kb(),
                              .kills = oom_kills()};
    struct task_struct *reader = NULL;
    int error;

    history.samples = vmalloc(array_size(history.most, sizeof(*history.samples)));
    if (!history.samples)
        return -ENOMEM;
    if (reader_ms)
        reader = kthread_run(read_long, &reader_ms, "prudence_reader");
    error = PTR_ERR_OR_ZERO(reader);
    if (!error)
        error = endure(subject, &history);
    if (!IS_ERR_OR_NULL(reader))
        kthread_stop(reader);
    vfree(history.samples);
    return error;
}
