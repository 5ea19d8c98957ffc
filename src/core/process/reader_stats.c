/* SPDX-License-Identifier: MIT */
/*
 * Figures of readers and of their domains.
 *
 * A reader does not record the begin of a section, because each section would then read a clock. A
 * driver records the section that is blocking (gp/user/stall.c), so the time reported is the time
 * since then.
 *
 * The walk visits a domain while reading it, so the domain's destruction waits. Slots are read
 * without a lock, as drivers read them; if another thread takes a slot over at that moment, the
 * figures may mix both threads.
 */
#include <errno.h>
#include <string.h>

#include <prudence/stats.h>

#include "base/name.h"
#include "gp/user/domain.h"
#include "gp/user/slots.h"
#include "gp/user/stall.h"
#include "process.h"
#include "process/reader_stats.h"
#include "process/stats.h"

_Static_assert(sizeof((struct prudence_reader_stats *)0)->frames == OS_TRACE_MAX * sizeof(void *),
               "a trace fits");

static uint64_t section_of(const struct reader_slot *slot)
{
    return load_relaxed(&slot->reader.word) & ~PRUDENCE_NESTING_MASK;
}

static uint64_t inside_ns(const struct reader_slot *slot)
{
    uint64_t section = section_of(slot);
    int64_t stayed;

    if (!section || load_relaxed(&slot->stall_word) != section)
        return 0;
    stayed = (int64_t)(os_clock_ns() - load_relaxed(&slot->stall_since));
    return stayed > 0 ? (uint64_t)stayed : 0;
}

static uint64_t grace_periods_begun(const struct prudence_domain *domain,
                                    const struct reader_slot *slot)
{
    uint64_t section = section_of(slot), now = load_relaxed(&domain->shared.sequence);

    return section && sequence_before(section, now) ? (now - section) / GP_STEP : 0;
}

static void reader_stats_fill(const struct prudence_domain *domain, const struct reader_slot *slot,
                              struct prudence_reader_stats *stats)
{
    uint64_t word = load_relaxed(&slot->reader.word);

    *stats = (struct prudence_reader_stats){
        .thread = load_relaxed(&slot->thread),
        .nesting = word ? max_size(word & PRUDENCE_NESTING_MASK, 1) : 0,
        .inside_ns = inside_ns(slot),
        .grace_periods_begun = grace_periods_begun(domain, slot),
    };
    name_copy(stats->domain, sizeof stats->domain, domain->name);
}

void reader_stats_look_up(struct prudence_reader_stats *stats)
{
    char name[OS_THREAD_NAME_MAX];

    os_thread_name((int)stats->thread, name);
    name_copy(stats->thread_name, sizeof stats->thread_name, name);
    if (stats->nesting && load_relaxed(&gp_stall_trace))
        stats->frame_count = os_thread_trace((int)stats->thread, stats->frames, OS_TRACE_MAX,
                                             STALL_TRACE_PATIENCE_NS);
}

/* --------------------------------------------------------------------------------------- walks */

/* Returns chunk `n` of a domain, counted from the oldest, or NULL if there are fewer. The list has
 * the newest first. */
static struct reader_chunk *nth_chunk(const struct prudence_domain *domain, uint64_t n)
{
    struct reader_chunk *chunks = load_acquire(&domain->chunks);
    uint64_t count = 0;

    for (struct reader_chunk *chunk = chunks; chunk; chunk = chunk->next)
        count++;
    if (n >= count)
        return NULL;
    while (++n < count)
        chunks = chunks->next;
    return chunks;
}

bool reader_stats_next(const struct prudence_domain *domain, uint64_t *place,
                       struct prudence_reader_stats *stats)
{
    struct reader_chunk *chunk;

    while ((chunk = nth_chunk(domain, *place / SLOTS_IN_CHUNK))) {
        uint64_t first = *place - *place % SLOTS_IN_CHUNK;

        while (*place - first < load_acquire(&chunk->used)) {
            const struct reader_slot *slot = &chunk->slots[(*place)++ - first];

            if (load_acquire(&slot->thread) > 0) {
                reader_stats_fill(domain, slot, stats);
                return true;
            }
        }
        *place = first + SLOTS_IN_CHUNK;
    }
    return false;
}

/* Visits the next domain of a walk; NULL at the end. */
static struct prudence_domain *visit_next(uint64_t *after)
{
    struct prudence_domain *domain;

    return domains_visit(&domain, 1, after, false) ? domain : NULL;
}

/* Continues a walk. after[0] is the generation of the last domain that is done, after[1] the number
 * of slots done in the next domain, and after[2] the generation of that domain. */
static bool walk_to_reader(struct prudence_walk *walk, struct prudence_reader_stats *stats)
{
    struct prudence_domain *domain;
    uint64_t after = walk->after[0];
    bool found = false;

    while (!found && (domain = visit_next(&after))) {
        if (walk->after[2] != domain->generation) {
            walk->after[1] = 0;
            walk->after[2] = domain->generation;
        }
        found = reader_stats_next(domain, &walk->after[1], stats);
        if (!found)
            walk->after[0] = after;
        gp_domain_leave(domain);
    }
    return found;
}

int prudence_next_reader_sized(struct prudence_walk *walk, struct prudence_reader_stats *stats,
                               size_t size)
{
    struct prudence_reader_stats all;

    if (!walk || !stats)
        return EINVAL;
    process_start();
    if (!walk_to_reader(walk, &all))
        return ENOENT;
    reader_stats_look_up(&all);
    give_sized(stats, size, &all, sizeof all);
    return 0;
}

/* ------------------------------------------------------------------------------------- domains */

static void add_readers(const struct prudence_domain *domain, struct prudence_domain_stats *stats)
{
    struct reader_chunk *chunk;
    struct reader_slot *slot;

    for_each_slot(chunk, slot, domain)
    {
        stats->readers_inside += load_relaxed(&slot->reader.word) != 0;
        stats->longest_inside_ns = max_size(stats->longest_inside_ns, inside_ns(slot));
    }
}

#define TAKE_COUNTER(name, meaning) stats->name = load_relaxed(&domain->name);

static void stats_of_domain(struct prudence_domain *domain, struct prudence_domain_stats *stats)
{
    *stats = (struct prudence_domain_stats){
        .users = load_relaxed(&domain->users),
        .readers = slots_reap(domain, true, READERS_A_FEW),
        .bytes_called = stats_bytes_called(domain),
    };
    DOMAIN_COUNTERS(TAKE_COUNTER)
    add_readers(domain, stats);
    name_copy(stats->name, sizeof stats->name, domain->name);
    name_copy(stats->kind, sizeof stats->kind,
              domain->kind == PRUDENCE_DOMAIN_QSBR ? "qsbr" : domain->scheme->name);
}

int prudence_domain_stats_sized(struct prudence_domain *domain, struct prudence_domain_stats *stats,
                                size_t size)
{
    struct prudence_domain_stats all;

    if (!domain || !stats)
        return EINVAL;
    gp_domain_check(domain, "prudence_domain_stats", __builtin_return_address(0));
    stats_of_domain(domain, &all);
    give_sized(stats, size, &all, sizeof all);
    return 0;
}

int prudence_next_domain_sized(struct prudence_walk *walk, struct prudence_domain_stats *stats,
                               size_t size)
{
    struct prudence_domain_stats all;
    struct prudence_domain *domain;

    if (!walk || !stats)
        return EINVAL;
    process_start();
    domain = visit_next(&walk->after[0]);
    if (!domain)
        return ENOENT;
    stats_of_domain(domain, &all);
    gp_domain_leave(domain);
    give_sized(stats, size, &all, sizeof all);
    return 0;
}
