// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * A thread of the lowest priority sleeps until it is kicked, and then searches for CPUs that were
 * idle lately.
 *
 * The idle notifier is not used because modules cannot hook the idle loop. Deferrable work is not
 * used because it runs when its CPU is awake, that is busy, and never while the CPU idles, the
 * reverse of our need. Only the destruction of a cache that this thread is serving waits for the
 * thread, at most for one pool of transfer batches (src/core/slab/preflush.c).
 */

#include "os_kernel.h"

#define LATELY_NS  100000000 /* ns; checks further apart say nothing about the present */
#define IDLE_SHARE 8         /* a CPU has time if it idled for more than 1/8 of the interval */

struct look {
    uint64_t at, idle; /* ns */
    bool was_idle;
};

static struct task_struct *helper;
static struct irq_work wake;
static uint32_t kicked, stopping;
static bool (*idle_work)(void);
static struct look *looks;

/* Leaves the CPU that was served, where another thread may now run for long without being
 * preempted, for any CPU that is not isolated. Copies the kernel's masks, which newer kernels
 * replace at run time. */
static void sleep_anywhere(void)
{
    static struct cpumask allowed;

    rcu_read_lock();
    cpumask_and(&allowed, housekeeping_cpumask(HK_TYPE_DOMAIN),
                housekeeping_cpumask(HK_TYPE_KTHREAD));
    rcu_read_unlock();
    set_cpus_allowed_ptr(current, &allowed);
    schedule_timeout_interruptible(1);
}

static int help(void *unused)
{
    (void)unused;
    while (!kthread_should_stop()) {
        set_current_state(TASK_INTERRUPTIBLE);
        if (!load_acquire(&kicked)) {
            schedule();
            continue;
        }
        __set_current_state(TASK_RUNNING);
        while (!kthread_should_stop() && idle_work())
            sleep_anywhere();
        sleep_anywhere();
        store_release(&kicked, 0u);
    }
    return 0;
}

/* Runs in an irq_work, because the caller of the kick may hold a lock of the scheduler. */
static void wake_helper(struct irq_work *unused)
{
    (void)unused;
    wake_up_process(helper);
}

void os_idle_kick(void)
{
    if (load_relaxed(&kicked) || load_relaxed(&stopping) || !load_acquire(&helper))
        return;
    if (!exchange_relaxed(&kicked, 1u))
        irq_work_queue(&wake);
}

static uint64_t idle_ns(unsigned cpu)
{
    uint64_t us = get_cpu_idle_time_us((int)cpu, NULL);

    return us != ~UINT64_C(0) ? us * 1000 : kcpustat_cpu(cpu).cpustat[CPUTIME_IDLE];
}

/* Isolated CPUs are never idle for us. */
bool os_idle_seen(unsigned cpu)
{
    struct look *look = &looks[cpu];
    uint64_t now = os_clock_ns(), idle;

    if (!cpu_online(cpu) || !os_may_disturb(cpu))
        return false;
    if (now - look->at < NSEC_PER_SEC / HZ)
        return look->was_idle;
    idle = idle_ns(cpu);
    look->was_idle =
        now - look->at < LATELY_NS && (idle - look->idle) * IDLE_SHARE > now - look->at;
    look->at = now;
    look->idle = idle;
    return look->was_idle;
}

bool os_idle_move_to(unsigned cpu)
{
    return set_cpus_allowed_ptr(current, cpumask_of(cpu)) == 0 && raw_smp_processor_id() == cpu;
}

/* Called once, when the module is loaded. Without the thread, nothing is pre-flushed. */
void os_idle_start(bool (*work)(void))
{
    struct task_struct *task;

    looks = os_meta_alloc(os_cpu_count() * sizeof *looks);
    if (!looks)
        return;
    os_irq_work_init(&wake, wake_helper);
    idle_work = work;
    task = kthread_run(help, NULL, "prudence_idle");
    if (IS_ERR(task))
        return;
    sched_set_normal(task, MAX_NICE);
    store_release(&helper, task);
}

void os_idle_stop(void)
{
    store_release(&stopping, 1u);
    if (helper) {
        irq_work_sync(&wake);
        kthread_stop(helper);
    }
    if (looks)
        os_meta_free(looks, os_cpu_count() * sizeof *looks);
}
