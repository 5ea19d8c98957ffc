/* SPDX-License-Identifier: MIT */
/*
 * A cache line between two CPUs (the thesis' Table 2.1, L943-948). In a blind transfer neither CPU
 * reads the word before the compare-and-swap, so the line moves once per turn. If the word is read
 * first, the line is shared, and must then be taken away from the other CPU.
 */
#include "calibrate.h"

#include "measure.h"

static struct {
    uint64_t word __attribute__((aligned(LINES_APART)));
} line;

static inline void wait_a_little(void)
{
#if defined(__x86_64__)
    __asm__ __volatile__("pause");
#else
    __asm__ __volatile__("" ::: "memory");
#endif
}

static bool swap(uint64_t from)
{
    return __atomic_compare_exchange_n(&line.word, &from, from + 1, false, __ATOMIC_SEQ_CST,
                                       __ATOMIC_RELAXED);
}

/* Makes `count` turns, on even or on odd values. Returns false if the partner had to stop
 * before. */
static bool take_turns(uint64_t first, uint64_t count, bool read_first)
{
    for (uint64_t value = first; value < first + 2 * count; value += 2)
        for (;;) {
            if (read_first)
                while (__atomic_load_n(&line.word, __ATOMIC_RELAXED) != value && !partner_over())
                    wait_a_little();
            if (swap(value))
                break;
            if (partner_over())
                return false;
            wait_a_little();
        }
    return true;
}

static void answer_blindly(void *unused)
{
    (void)unused;
    take_turns(1, UINT64_MAX / 4, false);
}

static void answer_after_reading(void *unused)
{
    (void)unused;
    take_turns(1, UINT64_MAX / 4, true);
}

/* Times transfers: there and back takes two turns, so each turn is one. */
static double time_turns(const struct measurement *measurement, uint64_t count, bool read_first)
{
    uint64_t start;
    double took;

    pin(measurement->a);
    __atomic_store_n(&line.word, 1, __ATOMIC_SEQ_CST);
    start_partner(measurement->b, read_first ? answer_after_reading : answer_blindly, NULL);
    take_turns(2, 16, read_first);
    start = now_ns();
    take_turns(34, count / 2, read_first);
    took = (double)(now_ns() - start);
    stop_partner();
    pin(cpus[0]);
    return took;
}

double time_blind_transfer(const struct measurement *measurement, uint64_t count)
{
    return time_turns(measurement, count, false);
}

double time_read_transfer(const struct measurement *measurement, uint64_t count)
{
    return time_turns(measurement, count, true);
}

static void increment(void *unused)
{
    (void)unused;
    while (!partner_over())
        __atomic_fetch_add(&line.word, 1, __ATOMIC_SEQ_CST);
}

/* Times increments of this CPU while both CPUs increment. A CPU may make several before the line
 * leaves. */
double time_atomic_transfer(const struct measurement *measurement, uint64_t count)
{
    uint64_t start;
    double took;

    pin(measurement->a);
    start_partner(measurement->b, increment, NULL);
    start = now_ns();
    for (uint64_t i = 0; i < count; i++)
        __atomic_fetch_add(&line.word, 1, __ATOMIC_SEQ_CST);
    took = (double)(now_ns() - start);
    stop_partner();
    pin(cpus[0]);
    return took;
}
