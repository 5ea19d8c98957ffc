// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Takes per-CPU lines (os_percpu.h). */
#include "os_kernel.h"

void *os_percpu_owned_lines;
DEFINE_PER_CPU(unsigned long, os_percpu_offset);
uint64_t os_percpu_interrupts;
void (*os_percpu_claims)(unsigned cpu);

static struct cpumask dead;

/*
 * A thread that finds a CPU dead keeps preemption off until it has claimed the CPU's line
 * (cpu_cache_visit_remote, cpu_cache_take_remote). os_percpu_note_dead() clears the mark and waits
 * for a grace period before the CPU runs again, so all such threads have claimed by then. The CPU's
 * fast paths find those lines owned until the release, and none is half done at the time of the
 * claim.
 */
void os_percpu_note_dead(unsigned cpu, bool is_dead)
{
    if (is_dead)
        cpumask_set_cpu(cpu, &dead);
    else if (cpumask_test_and_clear_cpu(cpu, &dead))
        synchronize_rcu();
}

static bool is_dead(const struct os_percpu_line *line)
{
    void (*claims)(unsigned cpu) = READ_ONCE(os_percpu_claims);

    lockdep_assert_preemption_disabled();
    if (!cpumask_test_cpu((int)line->cpu, &dead))
        return false;
    if (unlikely(claims != NULL))
        claims(line->cpu);
    return true;
}

/* Lasts until the owner releases the line. */
static void interrupts_off(struct os_percpu_line *line)
{
    unsigned long flags;

    local_irq_save(flags);
    line->irq_off = true;
    line->irq_flags = flags;
}

struct os_percpu_line *os_percpu_take(void *lines, const void *token)
{
    struct os_percpu_line *line;
    unsigned long flags;

    local_irq_save(flags);
    line = os_percpu_here(&lines);
    if (load_acquire(&line->owner)) {
        local_irq_restore(flags);
        return NULL;
    }
    store_relaxed(&line->owner, (uintptr_t)token);
    line->irq_off = true;
    line->irq_flags = flags;
    return line;
}

void *os_percpu_remove(void *const *lines, unsigned cpu, uint64_t expected_head)
{
    struct os_percpu_line *line;
    unsigned long flags;
    void *object = NULL;

    local_irq_save(flags);
    line = os_percpu_here(lines);
    if (line->cpu == cpu && !load_acquire(&line->owner) && line->ring_head == expected_head) {
        object = line->ring[expected_head & line->ring_mask];
        store_release(&line->ring_head, expected_head + 1);
    }
    local_irq_restore(flags);
    return object;
}

bool os_percpu_claim(struct os_percpu_line *line, const void *token)
{
    uintptr_t nobody = 0;

    return load_relaxed(&line->owner) == 0 &&
           compare_exchange(&line->owner, &nobody, (uintptr_t)token);
}

bool os_percpu_confirm(const struct os_percpu_line *line, const void *token)
{
    return load_acquire(&line->owner) == (uintptr_t)token;
}

static void nothing(void *unused)
{
    (void)unused;
}

bool os_percpu_fence_all(void)
{
    on_each_cpu(nothing, NULL, 1);
    add_relaxed(&os_percpu_interrupts, num_online_cpus());
    return true;
}

struct remote_take {
    struct os_percpu_line *line;
    const void *token;
    void (*visit)(struct os_percpu_line *line, void *data); /* NULL if the line stays taken */
    void *data;
    bool taken;
};

/* Runs in an interrupt on the line's CPU. */
static void take_there(void *data)
{
    struct remote_take *take = data;

    if (load_acquire(&take->line->owner))
        return;
    store_relaxed(&take->line->owner, (uintptr_t)take->token);
    take->taken = true;
    if (take->visit) {
        take->visit(take->line, take->data);
        os_percpu_release(take->line);
    }
}

static bool may_take_remote(const struct os_percpu_line *line)
{
    return in_task() && !irqs_disabled() && !load_relaxed(&line->owner);
}

/* Fails for a CPU that is going offline, neither online nor dead yet, because it may still run. */
static bool take_by_interrupt(struct remote_take *take)
{
    add_relaxed(&os_percpu_interrupts, 1);
    smp_call_function_single((int)take->line->cpu, take_there, take, 1);
    return take->taken;
}

bool os_percpu_visit_remote(struct os_percpu_line *line, const void *token,
                            void (*visit)(struct os_percpu_line *line, void *data), void *data)
{
    struct remote_take take = {.line = line, .token = token, .visit = visit, .data = data};

    if (!may_take_remote(line))
        return false;
    if (is_dead(line)) {
        if (!os_percpu_claim(line, token))
            return false;
        visit(line, data);
        os_percpu_release(line);
        return true;
    }
    return take_by_interrupt(&take);
}

bool os_percpu_take_remote(struct os_percpu_line *line, const void *token)
{
    struct remote_take take = {.line = line, .token = token};

    if (!may_take_remote(line))
        return false;
    if (is_dead(line))
        return os_percpu_claim(line, token);
    if (!take_by_interrupt(&take))
        return false;
    interrupts_off(line); /* an interrupt here would keep the line from its CPU */
    return true;
}
