// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Lets a CPU on which much is deferred do its part of the normal grace period under way now, rather
 * than at the next ticks (ADR 110). Only in a kernel that has Prudence built in, and with that
 * rcu_hasten() (kernel/tree/patches).
 *
 * No locks. A CPU writes its own counters, and the owner of a CPU's caches has interrupts off. The
 * counters are hints, because at the end of a cache a CPU may count batches of another.
 */
#include <linux/moduleparam.h>
#include <linux/rcupdate.h>

#include "gp_kernel.h"

/*
 * Bytes closed on a CPU between two times that it hastens. A grace period costs some thousand
 * instructions, so this should be memory worth having, and more than a hundred objects; a larger
 * object counts as HASTEN_OBJECT_BYTES.
 */
#define HASTEN_BYTES        ((size_t)32 << 10)
#define HASTEN_OBJECT_BYTES ((size_t)256)

/* Times in a grace period: once to notice the beginning and pass a quiescent state, once to report
 * that. */
#define HASTEN_TIMES 2

static bool enabled = true;
module_param_named(hasten, enabled, bool, 0644);
MODULE_PARM_DESC(
    hasten,
    "a CPU on which much is deferred does not wait for ticks with its part of a grace period");

struct hurry {
    size_t bytes;         /* closed since this CPU last hastened */
    unsigned long number; /* the grace period in which this CPU last hastened */
    unsigned times;       /* number of times in that grace period */
    struct irq_work irq_work;
};

static DEFINE_PER_CPU(struct hurry, hurries);
static uint64_t hastened; /* atomic */

/* Runs in an interrupt, because a deferral may hold locks that the scheduler needs. */
static void hasten(struct irq_work *irq_work)
{
    (void)irq_work;
    rcu_hasten();
    add_relaxed(&hastened, 1);
}

static bool is_under_way(unsigned long newest)
{
    return newest & 3; /* a state, 0 between two grace periods */
}

/* Limits the times in a grace period, so that grace periods do not take all of a CPU's time. */
static bool may_hasten(struct hurry *hurry, unsigned long newest)
{
    if (hurry->number != newest)
        hurry->times = 0;
    hurry->number = newest;
    return hurry->times++ < HASTEN_TIMES;
}

void gp_note_closed(unsigned count, size_t stride)
{
    struct hurry *hurry = get_cpu_ptr(&hurries);
    unsigned long newest = rcu_get_gp_seq();

    hurry->bytes += count * min(stride, HASTEN_OBJECT_BYTES);
    if (hurry->bytes >= HASTEN_BYTES && load_relaxed(&enabled) && is_under_way(newest) &&
        may_hasten(hurry, newest)) {
        hurry->bytes = 0;
        irq_work_queue(&hurry->irq_work);
    }
    put_cpu_ptr(&hurries);
}

uint64_t gp_hastened(void)
{
    return load_relaxed(&hastened);
}

void gp_hasten_start(void)
{
    int cpu;

    for_each_possible_cpu(cpu)
        os_irq_work_init(&per_cpu(hurries, cpu).irq_work, hasten);
}
