// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Shared by many tests: caches and their statistics, objects by the thousand, readers. */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/rcupdate.h>
#include <linux/workqueue.h>

#include "test.h"

void **objects;

struct prudence_cache *cache_of(size_t size)
{
    return prudence_cache_create("test", size, 0, 0, NULL);
}

struct prudence_cache_stats stats_of(struct prudence_cache *cache)
{
    struct prudence_cache_stats stats;

    prudence_cache_stats(cache, &stats);
    return stats;
}

struct prudence_stats totals(void)
{
    struct prudence_stats stats;

    prudence_stats(&stats);
    return stats;
}

noinline u64 stat_at(struct prudence_cache *cache, size_t offset)
{
    struct prudence_cache_stats stats = stats_of(cache);

    return *(u64 *)((char *)&stats + offset);
}

unsigned int fill(struct prudence_cache *cache, unsigned int count)
{
    unsigned int i;

    for (i = 0; i < count; i++) {
        objects[i] = prudence_cache_alloc(cache, GFP_KERNEL);
        if (!objects[i])
            break;
        memset(objects[i], 0x5a, SIZE);
    }
    return i;
}

void defer(struct prudence_cache *cache, unsigned int count)
{
    unsigned int i;

    for (i = 0; i < count; i++)
        prudence_cache_free_deferred(cache, objects[i]);
}

bool is_untouched(const u8 *object)
{
    return !memchr_inv(object, 0x5a, SIZE);
}

struct prudence_cache *marked;
static atomic_t twice; /* objects handed out while in use */

static void construct_unused(void *object)
{
    *(u32 *)object = 0;
}

void marked_begin(void)
{
    atomic_set(&twice, 0);
    marked = prudence_cache_create("test", SIZE, 0, 0, construct_unused);
    EXPECT(marked != NULL);
}

u32 *marked_alloc(gfp_t gfp)
{
    u32 *object = prudence_cache_alloc(marked, gfp);

    if (object && xchg(object, 1))
        atomic_inc(&twice);
    return object;
}

void marked_free(u32 *object, bool deferred)
{
    if (!object)
        return;
    WRITE_ONCE(*object, 0);
    if (deferred)
        prudence_cache_free_deferred(marked, object);
    else
        prudence_cache_free(marked, object);
}

void marked_end(void)
{
    EXPECT_EQ(atomic_read(&twice), 0);
    EXPECT_EQ(STAT(marked, objects_live), 0);
    EXPECT_EQ(prudence_cache_destroy(marked), 0);
}

static struct reader {
    struct task_struct *task;
    unsigned int cpu;
    bool inside, may_leave;
} readers[2];
static unsigned int newest; /* index of the reader that entered last */

static int read_on(void *data)
{
    struct reader *reader = data;

    rcu_read_lock();
    WRITE_ONCE(reader->inside, true);
    while (!READ_ONCE(reader->may_leave))
        cpu_relax();
    rcu_read_unlock();
    WRITE_ONCE(reader->inside, false);
    while (!kthread_should_stop())
        schedule_timeout_interruptible(1);
    return 0;
}

static void enter(struct reader *reader, unsigned int cpu)
{
    WRITE_ONCE(reader->inside, false);
    WRITE_ONCE(reader->may_leave, false);
    reader->cpu = cpu;
    reader->task = kthread_create(read_on, reader, "prudence_reader");
    kthread_bind(reader->task, cpu);
    wake_up_process(reader->task);
    while (!READ_ONCE(reader->inside))
        schedule_timeout_uninterruptible(1);
}

static void leave(struct reader *reader)
{
    WRITE_ONCE(reader->may_leave, true);
    kthread_stop(reader->task);
}

/* Moves the caller, unless work_on_cpu has bound the thread to a CPU for good. */
static void may_run_on(const struct cpumask *cpus)
{
    if (!(current->flags & PF_NO_SETAFFINITY))
        set_cpus_allowed_ptr(current, cpus);
}

/* On PREEMPT_RT a reader that stays is boosted, and then no other thread runs on that CPU, not even
 * the timers' thread. A thread sleeping there would never wake up. */
static void stay_away_from(unsigned int cpu)
{
    static struct cpumask others;

    cpumask_copy(&others, cpu_possible_mask);
    cpumask_clear_cpu(cpu, &others);
    may_run_on(&others);
}

/* Picks another CPU than the caller's, because a bound caller would never run again with a
 * reader. */
void reader_enters(void)
{
    unsigned int cpu;

    migrate_disable();
    cpu = cpumask_last(cpu_online_mask);
    if (cpu == raw_smp_processor_id())
        cpu = cpumask_first(cpu_online_mask);
    enter(&readers[newest], cpu);
    stay_away_from(cpu);
    migrate_enable();
}

void reader_leaves(void)
{
    leave(&readers[newest]);
    may_run_on(cpu_possible_mask);
    synchronize_rcu();
}

void reader_steps_out(void)
{
    struct reader *reader = &readers[newest];

    WRITE_ONCE(reader->may_leave, true);
    while (READ_ONCE(reader->inside))
        schedule_timeout_uninterruptible(1);
}

void next_reader_enters(void)
{
    unsigned int cpu;

    for_each_online_cpu(cpu)
        if (cpu != raw_smp_processor_id() && cpu != readers[newest].cpu)
            break;
    newest = !newest;
    enter(&readers[newest], cpu);
}

void reader_before_leaves(void)
{
    leave(&readers[!newest]);
}

static long stay_awake(void *unused)
{
    mdelay(2 * MSEC_PER_SEC / HZ);
    return 0;
}

void wake_all_cpus(void)
{
    unsigned int cpu;

    for_each_online_cpu(cpu)
        work_on_cpu(cpu, stay_awake, NULL);
}
