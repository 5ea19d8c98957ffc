// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* CPUs, nodes, clock and messages; start and stop of src/core/os/kernel. */

#include "os_kernel.h"

unsigned os_cpu_count(void)
{
    return nr_cpu_ids;
}

unsigned os_cpu_current(void)
{
    return raw_smp_processor_id();
}

unsigned os_node_count(void)
{
    return (unsigned)nr_node_ids;
}

/* Returns the CPU's node or, if that has no memory, the nearest node with some. */
unsigned os_node_of_cpu(unsigned cpu)
{
    int node = cpu_to_mem((int)cpu);

    return node >= 0 ? (unsigned)node : 0;
}

uint64_t os_clock_ns(void)
{
    return ktime_get_mono_fast_ns();
}

uint64_t os_clock_coarse_ns(void)
{
    return ktime_get_mono_fast_ns();
}

#define WORD_WAIT_NS 1000000

void os_sleep_ns(uint64_t nanoseconds)
{
    unsigned long us = (unsigned long)(nanoseconds >> 10) + 1;

    usleep_range(us, 2 * us);
}

/* Wakers do not know which threads sleep, so sleeps are short. */
void os_word_wait(uint32_t *word, uint32_t value, uint64_t nanoseconds)
{
    if (load_relaxed(word) == value)
        os_sleep_ns(min_size(nanoseconds, WORD_WAIT_NS));
}

void os_word_wake_some(uint32_t *word, unsigned count)
{
    (void)word;
    (void)count;
}

void os_word_wake(uint32_t *word)
{
    (void)word;
}

void os_report(const char *format, ...)
{
    struct va_format text = {.fmt = format};
    va_list arguments;

    va_start(arguments, format);
    text.va = &arguments;
    pr_err("prudence: %pV\n", &text);
    va_end(arguments);
}

/* Makes the permanently owned lines of caches whose fast paths are closed. */
static bool owned_lines_make(void)
{
    char *lines = os_meta_alloc_as(os_cpu_count() * OS_PERCPU_STRIDE, OS_ALLOC_DEFAULT);

    for (unsigned cpu = 0; lines && cpu < os_cpu_count(); cpu++)
        ((struct os_percpu_line *)(lines + cpu * OS_PERCPU_STRIDE))->owner = (uintptr_t)lines;
    os_percpu_owned_lines = lines;
    return lines;
}

bool os_kernel_start(void)
{
    unsigned cpu;

    os_deferred_work_start();
    for_each_possible_cpu(cpu)
        per_cpu(os_percpu_offset, cpu) = cpu * OS_PERCPU_STRIDE;
    return owned_lines_make() && os_page_map_cover();
}

void os_kernel_stop(void)
{
    os_idle_stop();
    if (os_percpu_owned_lines)
        os_meta_free(os_percpu_owned_lines, os_cpu_count() * OS_PERCPU_STRIDE);
    os_deferred_work_stop();
    os_page_map_release();
}
