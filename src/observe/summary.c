/* SPDX-License-Identifier: MIT */
/*
 * The summary shows in some ten lines which objects hold memory: the amounts live, latent and
 * cached; the caches with the most latent bytes, each with the reader that has blocked grace
 * periods the longest; and the caches with the most live bytes.
 *
 * A summary is asked for when something is already wrong, also in signal handlers (dump.c), so
 * printing needs no memory. The code checks the list of caches under slab_caches_lock, and at
 * domains that it visits. A thread that a handler interrupted inside the library may hold any lock,
 * and gets only the figures that need none.
 *
 * A handler's stack may have 8 KB, of which the system takes 3. So functions that need much stack
 * are separate and not inlined (SEPARATE).
 */
#define _GNU_SOURCE /* program_invocation_short_name */
#include "observe/summary.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <prudence/stats.h>

#include "gp/user/domain.h"
#include "process.h"
#include "process/reader_stats.h"
#include "process/stats.h"
#include "report.h"
#include "slab/all_caches.h"
#include "slab/reclaim/limit.h"

#define SEPARATE     __attribute__((noinline))
#define LATENT_SHOWN 5
#define LIVE_SHOWN   3

struct holder {
    char name[CACHE_NAME_SIZE];
    uint64_t bytes;
    struct prudence_domain *domain; /* visited, if among the latent ones */
};

/* The largest holders first; entries without bytes are not shown. */
struct holders {
    struct holder latent[LATENT_SHOWN], live[LIVE_SHOWN];
    uint64_t bytes_live;
};

/* -------------------------------------------------------------------------------------- caches */

static void summary_insert(struct holder *most, unsigned count, const struct holder *holder)
{
    unsigned place = count;

    while (place > 0 && most[place - 1].bytes < holder->bytes)
        place--;
    if (place == count)
        return;
    memmove(&most[place + 1], &most[place], (count - place - 1) * sizeof *most);
    most[place] = *holder;
}

/* Returns a cache's live bytes. Large blocks differ in size, so theirs are the pages that are not
 * latent. */
static uint64_t live_bytes(const struct prudence_cache *cache,
                           const struct prudence_cache_stats *stats)
{
    uint64_t grown, gone;

    if (cache->percpu)
        return stats->objects_live * stats->object_stride;
    grown = load_relaxed(&cache->body->large_grown);
    gone = load_relaxed(&cache->body->large_shrunk);
    gone += stats->bytes_latent;
    return grown > gone ? grown - gone : 0;
}

static SEPARATE void look_at(struct prudence_cache *cache, struct holders *holders)
{
    struct prudence_cache_stats stats;
    struct holder holder = {.domain = cache->domain};

    stats_of_cache(cache, &stats);
    memcpy(holder.name, stats.name, sizeof holder.name);
    holder.bytes = stats.bytes_latent;
    summary_insert(holders->latent, LATENT_SHOWN, &holder);
    holder.bytes = live_bytes(cache, &stats);
    holders->bytes_live += holder.bytes;
    summary_insert(holders->live, LIVE_SHOWN, &holder);
}

static void look_at_list(const struct list *caches, struct holders *holders)
{
    struct list *item;

    list_for_each(item, caches)
    {
        look_at(list_entry(item, struct prudence_cache, link), holders);
    }
}

/* Fills in the holders, and visits the domains of the latent ones. A domain lives at least as long
 * as the caches that name it, and these stay while the list is locked. */
static void find_holders(struct holders *holders)
{
    memset(holders, 0, sizeof *holders);
    os_lock_take(&slab_caches_lock);
    look_at_list(&slab_caches, holders);
    look_at_list(&slab_cold_caches, holders);
    for (unsigned i = 0; i < LATENT_SHOWN && holders->latent[i].bytes; i++)
        domain_visit(holders->latent[i].domain);
    os_lock_release(&slab_caches_lock);
}

static void let_holders_go(struct holders *holders)
{
    for (unsigned i = 0; i < LATENT_SHOWN && holders->latent[i].bytes; i++)
        gp_domain_leave(holders->latent[i].domain);
}

/* ------------------------------------------------------------------------------------- readers */

static bool is_longer(const struct prudence_reader_stats *a, const struct prudence_reader_stats *b)
{
    if (!a->nesting || !b->nesting)
        return a->nesting > b->nesting;
    return a->inside_ns != b->inside_ns ? a->inside_ns > b->inside_ns
                                        : a->grace_periods_begun > b->grace_periods_begun;
}

/* Finds the reader that has been inside the longest, in the domain and in its members. If there is
 * none, `longest->nesting` is 0. */
static SEPARATE void find_reader(const struct prudence_domain *domain,
                                 struct prudence_reader_stats *longest)
{
    struct prudence_domain *member;
    uint64_t after = 0;

    longest->nesting = 0;
    while (domains_visit(&member, 1, &after, false)) {
        struct prudence_reader_stats reader;
        uint64_t place = 0;

        while ((member == domain || domain_has(domain, member)) &&
               reader_stats_next(member, &place, &reader))
            if (is_longer(&reader, longest))
                *longest = reader;
        gp_domain_leave(member);
    }
    if (longest->nesting)
        reader_stats_look_up(longest);
}

/* ---------------------------------------------------------------------------------------- text */

static SEPARATE void print_frames(struct output *output, const struct prudence_reader_stats *reader)
{
    for (unsigned i = 0; i < reader->frame_count; i++) {
        char line[OS_TRACE_LINE];

        os_trace_describe(i, reader->frames[i], line);
        output_print(output, "  %s\n", line);
    }
}

static void print_named(struct output *output, const char *what, const char *name)
{
    output_print(output, "%s '", what);
    output_name(output, name);
    output_text(output, "'");
}

static void print_reader(struct output *output, const struct prudence_domain *domain,
                         const struct prudence_reader_stats *reader)
{
    if (!reader->nesting) {
        output_text(output, domain->kind == PRUDENCE_DOMAIN_EXTERNAL
                                ? "another library ends its grace periods\n"
                                : "no thread is inside; the next grace periods free them\n");
        return;
    }
    print_named(output, "thread", reader->thread_name);
    output_print(output, " (tid %d) is inside a read-side critical section", (int)reader->thread);
    if (strcmp(reader->domain, domain->name) != 0)
        print_named(output, " of", reader->domain);
    if (reader->inside_ns) {
        output_text(output, ", blocking for ");
        output_duration(output, reader->inside_ns);
    }
    output_text(output, "\n");
    print_frames(output, reader);
}

static SEPARATE void print_holders(struct output *output, const struct holders *holders)
{
    for (unsigned i = 0; i < LATENT_SHOWN && holders->latent[i].bytes; i++) {
        const struct holder *holder = &holders->latent[i];
        struct prudence_reader_stats reader;

        find_reader(holder->domain, &reader);
        output_text(output, "latent: ");
        output_bytes(output, holder->bytes);
        print_named(output, " of cache", holder->name);
        print_named(output, ", domain", holder->domain->name);
        output_text(output, ": ");
        print_reader(output, holder->domain, &reader);
    }
    for (unsigned i = 0; i < LIVE_SHOWN && holders->live[i].bytes; i++) {
        output_text(output, "live: ");
        output_bytes(output, holders->live[i].bytes);
        print_named(output, " of cache", holders->live[i].name);
        output_text(output, "\n");
    }
}

static void print_amount(struct output *output, const char *before, uint64_t bytes,
                         const char *after)
{
    output_text(output, before);
    output_bytes(output, bytes);
    output_text(output, after);
}

/* Prints figures of pages, and of caches if `holders` is not NULL. */
static void print_pages(struct output *output, const struct prudence_stats *totals,
                        const struct holders *holders)
{
    print_amount(output, "slabs and large blocks: ", totals->slab_bytes, "");
    print_amount(output, " (most: ", totals->slab_bytes_peak, ")");
    if (holders) {
        print_amount(output, "; live ", holders->bytes_live, "");
        print_amount(output, ", latent ", totals->bytes_latent, "");
        print_amount(output, ", cached ", totals->bytes_cached, "");
    }
    print_amount(output, "; retained ", totals->retained_bytes, "");
    print_amount(output, ", metadata ", totals->metadata_bytes, " reserved");
    print_amount(output, " and at most ", os_meta_touched(), " resident\n");
}

static void print_waits(struct output *output, const struct prudence_stats *totals)
{
    print_amount(output, "latent_limit: ", totals->latent_limit, "");
    if (totals->latent_limit) {
        print_amount(output, ", in force ", totals->latent_limit_in_force, "");
        print_amount(output, " of latent_ceiling ", totals->latent_ceiling, "");
        output_print(output, " (%s)", limit_why());
    }
    output_print(output, "; waits because of it: %llu, given up %llu; callbacks wait with ",
                 (unsigned long long)totals->throttle_waits,
                 (unsigned long long)totals->throttle_expiries);
    print_amount(output, "", totals->call_bytes, "\n");
}

static void summary_print_head(struct output *output, uint64_t now)
{
    output_print(output, "prudence " PRUDENCE_VERSION ": process %d (", os_process_id());
    output_name(output, program_invocation_short_name);
    output_text(output, "), ");
    output_time(output, now);
    output_text(output, "\n");
}

/* ---------------------------------------------------------------------------------------- JSON */

static void print_json_holder(struct output *output, const struct holder *holder)
{
    output_print(output, "{\"bytes\":%llu,\"cache\":", (unsigned long long)holder->bytes);
    output_json_string(output, holder->name);
}

static void print_json_latent(struct output *output, const struct holder *holder)
{
    struct prudence_reader_stats reader;

    find_reader(holder->domain, &reader);
    print_json_holder(output, holder);
    output_text(output, ",\"domain\":");
    output_json_string(output, holder->domain->name);
    if (reader.nesting) {
        output_print(output, ",\"reader\":{\"thread\":%lld,\"inside_ns\":%llu,\"name\":",
                     (long long)reader.thread, (unsigned long long)reader.inside_ns);
        output_json_string(output, reader.thread_name);
        output_text(output, "}");
    }
    output_text(output, "}");
}

static SEPARATE void print_json(struct output *output, const struct holders *holders, uint64_t now)
{
    output_print(output,
                 "\"version\":\"" PRUDENCE_VERSION "\",\"pid\":%d,\"program\":", os_process_id());
    output_json_string(output, program_invocation_short_name);
    output_text(output, ",\"time\":\"");
    output_time(output, now);
    output_print(output, "\",\"bytes_live\":%llu,\"most_latent\":[",
                 (unsigned long long)holders->bytes_live);
    for (unsigned i = 0; i < LATENT_SHOWN && holders->latent[i].bytes; i++) {
        output_text(output, i ? "," : "");
        print_json_latent(output, &holders->latent[i]);
    }
    output_text(output, "],\"most_live\":[");
    for (unsigned i = 0; i < LIVE_SHOWN && holders->live[i].bytes; i++) {
        output_text(output, i ? "," : "");
        print_json_holder(output, &holders->live[i]);
        output_text(output, "}");
    }
    output_text(output, "]");
}

/* ----------------------------------------------------------------------------------------- all */

static uint64_t seconds_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec;
}

static void summary_print_percpu(struct output *output)
{
    if (os_percpu_why_not)
        output_print(output, "per-CPU caches: locks instead of restartable sequences (%s)\n",
                     os_percpu_why_not);
}

static void print_losses(struct output *output)
{
    uint64_t too_many = load_relaxed(&posix_report_losses.too_many);
    uint64_t no_place = load_relaxed(&posix_report_losses.no_place);

    if (too_many || no_place)
        output_print(output,
                     "messages not written: %llu because there were too many of a kind, %llu "
                     "because descriptor 2 is no place for them (option report_file names one)\n",
                     (unsigned long long)too_many, (unsigned long long)no_place);
}

static SEPARATE void summary_print_totals(struct output *output, const struct holders *holders)
{
    struct prudence_stats totals;

    prudence_stats(&totals);
    summary_print_head(output, seconds_now());
    summary_print_percpu(output);
    print_pages(output, &totals, holders);
    print_waits(output, &totals);
    print_losses(output);
}

void summary_print(struct output *output, bool json)
{
    struct holders holders;

    process_start();
    find_holders(&holders);
    if (json) {
        print_json(output, &holders, seconds_now());
    } else {
        summary_print_totals(output, &holders);
        print_holders(output, &holders);
    }
    let_holders_go(&holders);
}

void summary_print_without_locks(struct output *output)
{
    struct prudence_stats totals = {.caches = 0};

    summary_print_head(output, seconds_now());
    summary_print_percpu(output);
    if (stats_of_memory_without_locks(&totals))
        print_pages(output, &totals, NULL);
    print_waits(output, &totals);
    print_losses(output);
    output_text(
        output,
        "caches are not named: this thread was interrupted inside the library, and may hold "
        "the locks that are needed; ask again\n");
}
