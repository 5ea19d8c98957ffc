/* SPDX-License-Identifier: MIT */
/*
 * Signal handlers between any two instructions of a thread that steps into a line (bias.c), when
 * the thread has lost its number. The first handler notices, and takes another number, or none. A
 * second one, later, takes the number again. No other thread can claim a line that the thread then
 * owns.
 *
 * ctest: needs steps
 */
#define _GNU_SOURCE
#include "os/posix/bias.h"
#include "support/slab_test.h"
#include "support/step.h"
#include "support/threads.h"

#define NONE UINT32_MAX /* no number, or at no instruction */

static struct prudence_cache *cache;
static struct os_percpu_line *line; /* that the thread owns after the steps, or NULL */
static unsigned first, second, at;  /* instructions: of the handlers, and this one */
static unsigned other, changes; /* number that the first handler takes; count of numbers taken */

static void *takes(void *number)
{
    bias_take((unsigned)(uintptr_t)number, true);
    return NULL;
}

static void *claims(void *of)
{
    const char token = 0;
    const bool claimed = os_percpu_take_remote(of, &token);

    if (claimed)
        os_percpu_release(of);
    return (void *)(uintptr_t)claimed;
}

/* Does what a handler does that allocates, after another thread has taken the number. */
static void lose(unsigned lost, unsigned taken)
{
    in_thread(takes, (void *)(uintptr_t)lost);
    if (os_percpu_bias && bias_step_in(cache->percpu))
        os_percpu_leave();
    if (os_percpu_bias || taken == NONE)
        return;
    bias_take(taken, true);
    changes++;
}

static void handle(const greg_t *registers)
{
    if (at == first)
        lose(0, other);
    else if (at == second)
        lose(1, 0);
    at++;
}

/* Makes this thread the holder of number 0, and another one that of number 1. */
static void hold(void)
{
    in_thread(takes, (void *)0);
    in_thread(takes, (void *)1);
    assert_null(os_percpu_bias ? bias_step_in(cache->percpu) : NULL);
    bias_take(0, true);
    assert_ptr_equal(os_percpu_step_in(cache->percpu), &cpu_cache_of(cache, 0)->line);
    os_percpu_step_out();
}

static void inlined(void *unused)
{
    line = os_percpu_step_in(cache->percpu);
}

static void called(void *unused)
{
    line = os_percpu_bias ? bias_step_in(cache->percpu) : NULL;
}

static void step(void (*steps_in)(void *unused))
{
    hold();
    at = 0;
    step_through(steps_in, NULL, handle);
    if (!line)
        return;
    if (in_thread(claims, line))
        fail_msg("two threads own line %u, with handlers before instructions %u and %u", line->cpu,
                 first, second);
    os_percpu_release(line);
    os_busy = 0;
}

static void step_with_handlers(void (*steps_in)(void *unused), unsigned number)
{
    unsigned total;

    other = number;
    first = second = NONE;
    step(steps_in);
    assert_non_null(line);
    total = at;
    for (first = 0; first < total; first++)
        for (second = first + 1; second <= total; second++)
            step(steps_in);
}

TEST(a_thread_whose_number_changes_owns_no_line_of_the_old_one)
{
    if (!os_membarrier_available() || os_cpu_count() < 2)
        skip();
    cache = fixed_cache(64, 16, manual_domain());
    for (unsigned i = 0; i < 4; i++)
        step_with_handlers(i & 1 ? called : inlined, i & 2 ? NONE : 1);
    assert_true(changes > 0);
    destroy_empty(cache);
}

SUITE(prudence_option_set("rseq", "0"))
