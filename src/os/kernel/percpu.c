// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Taking per-CPU lines (see os_percpu.h). */
#include "os_kernel.h"

void *os_percpu_owned_lines;
uint64_t os_percpu_interrupts;

static struct cpumask dead;

void os_percpu_note_dead(unsigned cpu, bool is_dead)
{
    if (is_dead)
        cpumask_set_cpu(cpu, &dead);
    else
        cpumask_clear_cpu(cpu, &dead);
}

struct os_percpu_line *os_percpu_take(void *lines, const void *token)
{
    struct os_percpu_line *line;
    unsigned long flags;

    local_irq_save(flags);
    line = os_percpu_here(&lines);
    if (load_acquire(&line->owner))
        line = NULL;
    else
        store_relaxed(&line->owner, (uintptr_t)token);
    local_irq_restore(flags);
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

void os_percpu_fence_all(void)
{
    on_each_cpu(nothing, NULL, 1);
    add_relaxed(&os_percpu_interrupts, num_online_cpus());
}

/* After it returns true, no fast path is under way on the CPU that began before. */
static bool interrupt(unsigned cpu)
{
    add_relaxed(&os_percpu_interrupts, 1);
    return smp_call_function_single(cpu, nothing, NULL, 1) == 0 || cpumask_test_cpu(cpu, &dead);
}

bool os_percpu_take_remote(struct os_percpu_line *line, const void *token)
{
    uintptr_t mine = (uintptr_t)token;

    if (!in_task() || irqs_disabled() || !os_percpu_claim(line, token))
        return false;
    if (interrupt(line->cpu))
        return os_percpu_confirm(line, token);
    /* Neither online nor dead: it is just going, and may still run. */
    compare_exchange(&line->owner, &mine, (uintptr_t)0);
    return false;
}
