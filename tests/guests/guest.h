/* SPDX-License-Identifier: MIT */
/* Shared by the guest programs: exit statuses, pinning to CPUs, and the library's report on its
 * per-CPU caches. */
#ifndef TESTS_GUESTS_GUEST_H
#define TESTS_GUESTS_GUEST_H

#include <prudence/prudence.h>
#include <prudence/stats.h>

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUEST_RIGHT = 0, GUEST_WRONG = 1, GUEST_SKIPPED = 77 };

/* Restricts the calling thread to `count` CPUs from `first` on. */
static inline bool guest_pin(unsigned first, unsigned count)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    for (unsigned cpu = first; cpu < first + count; cpu++)
        CPU_SET(cpu, &set);
    return sched_setaffinity(0, sizeof set, &set) == 0;
}

static inline uint64_t guest_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 32;
}

/* Copies the value of `percpu` in the statistics, "sequences" or "locks (reason)", or "" if the
 * statistics have none. Returns `text`. */
static inline char *guest_percpu(char *text, size_t size)
{
    char *statistics = NULL, *value;
    size_t length = 0;
    FILE *file = open_memstream(&statistics, &length);

    text[0] = '\0';
    if (!file || prudence_stats_print(file, PRUDENCE_STATS_TEXT) != 0 || fclose(file) != 0)
        return text;
    value = strstr(statistics, "\npercpu");
    if (value) {
        value += strlen("\npercpu");
        value += strspn(value, " =");
        snprintf(text, size, "%.*s", (int)strcspn(value, "\n"), value);
    }
    free(statistics);
    return text;
}

static inline bool guest_begins_with(const char *text, const char *word)
{
    return strncmp(text, word, strlen(word)) == 0;
}

#endif /* TESTS_GUESTS_GUEST_H */
