// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * A CPU on which much is deferred does its part of the normal grace period that is under way, rather than at its next
 * ticks (ADR 110). Only in a kernel that has Prudence built in, and with that rcu_hasten() (kernel/tree/patches).
 *
 * No locks. What is noted of a CPU is written there; its owner's interrupts are off, but at the end of a cache it may be
 * what another CPU has closed: hints.
 */
#include <linux/moduleparam.h>
#include <linux/rcupdate.h>

#include "gp_kernel.h"

/*
 * What is closed on a CPU between two times that it hastens. A grace period costs some thousand instructions, so that
 * should be memory worth having, and hundreds of objects: of a larger one so many bytes count.
 */
#define HASTEN_BYTES        ((size_t)64 << 10)
#define HASTEN_OBJECT_BYTES ((size_t)256)

/* Times in a grace period: to notice that it has begun and pass a quiescent state, and to report that. */
#define HASTEN_TIMES 2

static bool enabled = true;
module_param_named(hasten, enabled, bool, 0644);
MODULE_PARM_DESC(
    hasten,
    "a CPU on which much is deferred does not wait for ticks with its part of a grace period");

struct hurry {
    size_t bytes;         /* closed since it hastened last */
    unsigned long number; /* the grace period in which it did */
    unsigned times;       /* ... so many times */
    struct irq_work irq_work;
};

static DEFINE_PER_CPU(struct hurry, hurries);
static uint64_t hastened; /* atomic */

/* In an interrupt: a deferral may hold locks that the scheduler wants. */
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

/* Not so often that all of a CPU's time goes into grace periods. */
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
