// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Runs a function on all CPUs, in bound threads that begin together and stay until their figures
 * have been read. Only the thread that loads the module starts runs, one at a time.
 */
#include <linux/atomic.h>
#include <linux/cpumask.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "bench.h"

static struct worker *workers;
unsigned int worker_count;
static atomic_t waiting;
static bool go, called_off;
bool stop;

bool workers_make(void)
{
    workers = kvcalloc(array_size(nr_cpu_ids, max(tasks, 1u)), sizeof(*workers), GFP_KERNEL);
    return workers;
}

void workers_forget(void)
{
    kvfree(workers);
}

/* Waits until all workers have arrived. */
static void wait_for_start(void)
{
    atomic_inc(&waiting);
    while (!READ_ONCE(go))
        cond_resched();
}

static int work_main(void *data)
{
    struct worker *worker = data;
    u64 start;

    wait_for_start();
    start = ktime_get_ns();
    if (!READ_ONCE(called_off))
        worker->body(worker);
    worker->ns = ktime_get_ns() - start;
    smp_store_release(&worker->ended, true); /* publishes the figures */
    while (!kthread_should_stop())
        schedule_timeout_interruptible(1);
    return 0;
}

static int worker_start(struct worker *worker, unsigned int cpu)
{
    worker->task = kthread_create(work_main, worker, "prudence_bench");
    if (IS_ERR(worker->task))
        return PTR_ERR(worker->task);
    kthread_bind(worker->task, cpu);
    wake_up_process(worker->task);
    return 0;
}

int workers_start(int (*body)(struct worker *worker), const struct subject *subject, size_t size,
                  unsigned int each)
{
    unsigned int cpu = cpumask_first(cpu_online_mask);
    unsigned int most = each * (cpus ? cpus : num_online_cpus());

    worker_count = 0;
    atomic_set(&waiting, 0);
    WRITE_ONCE(go, false);
    WRITE_ONCE(called_off, false);
    WRITE_ONCE(stop, false);
    while (worker_count < most) {
        struct worker *worker = &workers[worker_count];
        int error;

        *worker =
            (struct worker){.cpu = worker_count, .subject = subject, .size = size, .body = body};
        error = worker_start(worker, cpu);
        if (error) {
            WRITE_ONCE(called_off, true);
            WRITE_ONCE(go, true);
            workers_end();
            return error;
        }
        worker_count++;
        cpu = cpumask_next(cpu, cpu_online_mask);
        if (cpu >= nr_cpu_ids) /* wrap around; each CPU gets another task */
            cpu = cpumask_first(cpu_online_mask);
    }
    while (atomic_read(&waiting) < (int)worker_count)
        schedule_timeout_uninterruptible(1);
    WRITE_ONCE(go, true);
    return 0;
}

static bool workers_run(void)
{
    unsigned int i;

    for (i = 0; i < worker_count; i++)
        if (!smp_load_acquire(&workers[i].ended)) /* pairs with work_main */
            return true;
    return false;
}

bool workers_rest(void)
{
    unsigned int i;

    for (i = 0; i < worker_count; i++)
        if (!smp_load_acquire(&workers[i].rests)) /* pairs with do_mix */
            return false;
    return true;
}

void workers_wait(void)
{
    while (workers_run())
        schedule_timeout_uninterruptible(1);
}

void workers_end(void)
{
    unsigned int i;

    for (i = 0; i < worker_count; i++)
        kthread_stop(workers[i].task);
}

u64 worker_sum(size_t offset)
{
    u64 sum = 0;
    unsigned int i;

    for (i = 0; i < worker_count; i++)
        sum += *(u64 *)((char *)&workers[i] + offset);
    return sum;
}

u64 worker_most(size_t offset)
{
    u64 most = 0;
    unsigned int i;

    for (i = 0; i < worker_count; i++)
        most = max(most, *(u64 *)((char *)&workers[i] + offset));
    return most;
}

u64 used_kb(void)
{
    struct sysinfo info;

    si_meminfo(&info);
    return ((u64)(info.totalram - info.freeram) << PAGE_SHIFT) >> 10;
}
