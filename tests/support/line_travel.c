/* SPDX-License-Identifier: MIT */
/* See line_travel.h. */
#include "support/line_travel.h"

#include <stdlib.h>
#include <string.h>

#define LINES_MAX 65536 /* a power of two; at most half are used */
#define WORDS_MAX 16
#define NOBODY    (-1)

struct cpu_set {
    uint64_t words[TRAVEL_CPUS_MAX / 64];
};

struct line {
    uintptr_t number; /* 0: unused */
    struct cpu_set has, ever;
    int owner; /* the only CPU that has the line, so it may store; or NOBODY */
    struct {
        struct cpu_set touched;
        uint32_t stored_at; /* 0: never */
        int stored_by;
    } words[WORDS_MAX];
    uint32_t lost_at[TRAVEL_CPUS_MAX]; /* time when another CPU's store took the line */
    uint32_t doubtful
        [TRAVEL_CPUS_MAX]; /* step of the CPU's last travel, while that was for nothing; 0: none */
};

static struct line *lines;
static unsigned used, shift;
static uint32_t now;
static unsigned ends_line, ends_cpu;

static bool set_has(const struct cpu_set *set, unsigned cpu)
{
    return set->words[cpu / 64] >> cpu % 64 & 1;
}

static void set_add(struct cpu_set *set, unsigned cpu)
{
    set->words[cpu / 64] |= UINT64_C(1) << cpu % 64;
}

/* Returns whether the set has a CPU other than this one. */
static bool set_has_others(const struct cpu_set *set, unsigned cpu)
{
    uint64_t others = 0;

    for (unsigned i = 0; i < TRAVEL_CPUS_MAX / 64; i++)
        others |= set->words[i] & ~(i == cpu / 64 ? UINT64_C(1) << cpu % 64 : 0);
    return others != 0;
}

void travel_begin(unsigned line_shift)
{
    lines = calloc(LINES_MAX, sizeof *lines);
    if (!lines)
        abort();
    used = 0;
    now = ends_line = ends_cpu = 0;
    shift = line_shift;
}

void travel_end(void)
{
    free(lines);
}

static struct line *line_at(uintptr_t address)
{
    uintptr_t number = address >> shift;
    size_t i = number * UINT64_C(0x9e3779b97f4a7c15) >> 32 & (LINES_MAX - 1);

    while (lines[i].number && lines[i].number != number)
        i = (i + 1) & (LINES_MAX - 1);
    if (!lines[i].number) {
        if (++used > LINES_MAX / 2)
            abort();
        lines[i].number = number;
        lines[i].owner = NOBODY;
    }
    return &lines[i];
}

static bool was_stored(const struct line *line, unsigned word, unsigned cpu)
{
    return line->words[word].stored_at > line->lost_at[cpu] &&
           line->words[word].stored_by != (int)cpu;
}

static bool load_travels(const struct line *line, unsigned cpu)
{
    bool stored = false;

    for (unsigned word = 0; word < WORDS_MAX; word++)
        stored |= was_stored(line, word, cpu);
    return stored && !set_has(&line->has, cpu);
}

static bool store_travels(const struct line *line, unsigned cpu)
{
    return line->owner != (int)cpu && set_has_others(&line->has, cpu);
}

/* Returns whether two CPUs really share this word. */
static bool is_for_something(const struct line *line, const struct memory_access *access,
                             unsigned word)
{
    return access->store ? set_has_others(&line->words[word].touched, access->turn)
                         : was_stored(line, word, access->turn);
}

/* Returns the step with which the line travelled to the CPU for nothing, or 0 if no such travel is
 * open. */
static size_t visit_ends(struct line *line, unsigned cpu)
{
    size_t step = line->doubtful[cpu];

    line->doubtful[cpu] = 0;
    return step;
}

static void take_from_others(struct line *line, unsigned cpu)
{
    for (unsigned other = 0; other < TRAVEL_CPUS_MAX; other++)
        if (other != cpu && set_has(&line->has, other))
            line->lost_at[other] = now - 1; /* just before this store */
    memset(&line->has, 0, sizeof line->has);
    line->owner = (int)cpu;
}

static void note_access(struct line *line, const struct memory_access *access, unsigned word)
{
    unsigned cpu = access->turn;

    if (access->store) {
        take_from_others(line, cpu);
        line->words[word].stored_at = now;
        line->words[word].stored_by = (int)cpu;
    } else if (line->owner != (int)cpu) {
        line->owner = NOBODY;
    }
    set_add(&line->has, cpu);
    set_add(&line->ever, cpu);
    set_add(&line->words[word].touched, cpu);
}

struct travel travel_step(const struct memory_access *access)
{
    struct line *line = line_at(access->address);
    unsigned cpu = access->turn, word = access->address % (1u << shift) / 8;
    struct travel travel = {
        .travels = access->store ? store_travels(line, cpu) : load_travels(line, cpu),
        .shared = access->store && set_has_others(&line->ever, cpu),
    };

    now++;
    /* Otherwise the CPU keeps the line and only becomes its owner. */
    if (travel.travels && !set_has(&line->has, cpu))
        travel.for_nothing = visit_ends(line, cpu);
    if (travel.travels && !line->doubtful[cpu])
        line->doubtful[cpu] = now;
    if (is_for_something(line, access, word))
        line->doubtful[cpu] = 0;
    note_access(line, access, word);
    return travel;
}

size_t travel_for_nothing(void)
{
    for (; ends_line < LINES_MAX; ends_line++, ends_cpu = 0)
        for (; ends_cpu < TRAVEL_CPUS_MAX; ends_cpu++)
            if (lines[ends_line].doubtful[ends_cpu])
                return visit_ends(&lines[ends_line], ends_cpu);
    return 0;
}
