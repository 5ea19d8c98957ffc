// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Replaces list entries for some seconds and samples the memory in use, like the paper's Figure
 * 3. */
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <linux/vmstat.h>

#include "torture/long_reader.h"
#include "bench.h"

#define ENTRIES 256

/* Retries a failed allocation after a tick, until memory is available or the run ends. Each attempt
 * already waits for memory. */
static char *alloc_at_last(struct worker *worker)
{
    unsigned long began = jiffies;
    char *new = worker->subject->alloc(worker->size);

    while (!new && !READ_ONCE(stop)) {
        WRITE_ONCE(worker->failed, worker->failed + 1);
        schedule_timeout_uninterruptible(1);
        new = worker->subject->alloc(worker->size);
    }
    worker->longest = max_t(u64, worker->longest, jiffies - began);
    return new;
}

/* Replaces entries of the worker's own list without giving up, like the paper's updaters. */
static int do_endurance(struct worker *worker)
{
    const struct subject *subject = worker->subject;
    void **list = kvcalloc(ENTRIES, sizeof(*list), GFP_KERNEL);
    unsigned int i;

    while (list && !READ_ONCE(stop)) {
        for (i = 0; i < ENTRIES; i++) {
            char *new = alloc_at_last(worker);

            if (!new)
                break;
            WRITE_ONCE(*new, (char)i);
            if (list[i])
                subject->release(list[i]);
            list[i] = new;
            WRITE_ONCE(worker->done, worker->done + 1);
        }
        cond_resched();
    }
    for (i = 0; list && i < ENTRIES; i++)
        if (list[i])
            subject->release(list[i]);
    kvfree(list);
    return 0;
}

struct sample {
    u32 ms;
    u32 used_kb;
    u64 done;
};

/* Samples taken every 10 ms, and the state before the run. */
struct history {
    struct sample *samples;
    unsigned int most, count;
    u64 before, peak, area; /* KB; `area` in KB x ms */
    u64 kills;              /* by the OOM killer, before the run */
    u32 failed_ms;          /* time of the first failed allocation, or 0 */
};

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
            "{\"run\":\"sample\",\"subject\":\"%s\",\"ms\":%u,\"used_kb\":%u,\"updates\":%llu}\n",
            subject->name, history->samples[i].ms, history->samples[i].used_kb,
            history->samples[i].done);
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
    size_t size = max_t(size_t, only_size ? only_size : 512, subject->least);
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
