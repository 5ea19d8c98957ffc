/* SPDX-License-Identifier: MIT */
/*
 * All of the library: the tables by which the core, which knows no other part, calls them. A
 * program with the core alone has those of core/alone/tables.c. Grace periods: domains.c.
 *
 * Extensions of the slab layer are in the order of their calls (slab/extension.h). Expiry counts
 * come first, so that a short-term object freed by hand is reported before anything else happens to
 * the object. Profile comes before guard, which serves only allocations that were not sampled.
 * Check comes before all extensions that act on an object that may have been freed before. Red
 * zones come after instruments, which read a new object before anything is written there.
 * Shuffle and quarantine come last, because to all others a resting object is free. A cache that
 * one of these wants is never cold, except for instruments without red zones.
 */
#include "guard/annotate.h"
#include "guard/check.h"
#include "guard/closed.h"
#include "guard/guard.h"
#include "guard/instruments.h"
#include "guard/large_guard.h"
#include "guard/page_jobs.h"
#include "guard/quarantine.h"
#include "guard/red_zones.h"
#include "guard/settings.h"
#include "guard/shuffle.h"
#include "guard/stack_depot.h"
#include "heap/cold.h"
#include "heap/upcalls.h"
#include "member_parts.h"
#include "observe/options.h"
#include "observe/profile.h"
#include "observe/request.h"
#include "process.h"
#include "process/options.h"
#include "shortterm/expiry_counts.h"
#include "shortterm/settings.h"
#include "toolkit/callbacks/call.h"
#include "toolkit/callbacks/callback_queue.h"
#include "toolkit/callbacks/destruct.h"
#include "toolkit/callbacks/destruct_barrier.h"
#include "toolkit/callbacks/destruct_worker.h"
#include "toolkit/callbacks/may_wait.h"
#include "toolkit/domains/named.h"
#include "toolkit/domains/schemes.h"

/* --------------------------------------------------------------- extensions of the slab layer */

/* Has no function in a program without short-term memory. */
static struct slab_extension expiry_counts;

/* Places of extensions that enter themselves. */
static struct slab_extension *const extension_places[OS_EXTENSIONS] = {
    [EXPIRY_COUNTS_EXTENSION] = &expiry_counts,
};

COLD static void extensions_enter(void)
{
    const struct extension_part *const *at;

    for_each_entered(at, extension_parts)
    {
        if (!extension_places[(*at)->number])
            os_panic("extension %u has no place for an entry", (*at)->number);
        *extension_places[(*at)->number] = *(*at)->extension;
    }
}

/* Blocks that are closed stay. */
COLD static void extensions_flush_all(void)
{
    quarantine_flush();
    shuffle_flush_all();
}

/* ThreadSanitizer and zeroing know the objects of common slabs as well. Tools that search for leaks
 * do not, and only they distinguish the library's own objects (CACHE_OWN) from others. Red zones
 * would move the objects off the alignment that the size of a common cache gives. */
const struct heap_upcalls heap_upcalls = {
    .of_cold = EXTENSION_BIT(INSTRUMENTS_EXTENSION),
    .flush = extensions_flush_all,
    .may_wait = may_wait_for_code,
    .barrier = destruct_barrier,
    .empty = destruct_barrier_until_empty,
    .named_by_this_thread = named_by_this_thread,
    .wait_for_names = named_wait,
    .unknown = guard_report_freed,
    .resizes = check_resizes,
    .trace = check_trace,
    .print_trace = stack_depot_print,
    .explain_live = check_live_explain,
};

const struct reuse_upcalls reuse_upcalls = {.may_reuse = destruct_may_run,
                                            .apart = destruct_apart,
                                            .put_off = destruct_put_off,
                                            .to_slabs = destruct_to_slabs,
                                            .to_reuse = destruct_to_reuse,
                                            .sort = destruct_sort,
                                            .make_fit = destruct_make_fit};

const struct slab_extension *const slab_extensions[OS_EXTENSIONS] = {
    [EXPIRY_COUNTS_EXTENSION] = &expiry_counts,
    [PROFILE_EXTENSION] = &profile_extension,
    [GUARD_EXTENSION] = &guard_extension,
    [CHECK_EXTENSION] = &check_extension,
    [DESTRUCT_EXTENSION] = &destruct_extension,
    [INSTRUMENTS_EXTENSION] = &instruments_extension,
    [RED_ZONES_EXTENSION] = &red_zones_extension,
    [LARGE_GUARD_EXTENSION] = &large_guard_extension,
    [CLOSED_EXTENSION] = &closed_extension,
    [SHUFFLE_EXTENSION] = &shuffle_extension,
    [QUARANTINE_EXTENSION] = &quarantine_extension,
    [COLD_EXTENSION] = &cold_extension,
};

/* --------------------------------------------------------------------------------- the process */

const struct process_part other_parts[] = {
    {"instruments", .start = instruments_start, .act = instruments_prime},
    {"profile", .start = profile_start, .act = profile_prime},
    {"callbacks", .start = call_start},
    {"destructors", .start = destruct_worker_start},
    {"extensions", .start = extensions_enter},
    {"requests", .obey = request_obey},
    {.name = NULL},
};

const struct fork_part *const other_fork_parts[] = {
    &external_fork_part,    &callback_fork_part,
    &call_fork_part,        &destruct_fork_part,
    &quarantine_fork_part,  &guard_fork_part,
    &large_guard_fork_part, &page_jobs_fork_part,
    &annotate_fork_part,    NULL,
};

const struct option *const option_tables[] = {
    core_options, callback_options, shortterm_options, observe_options, guard_options, NULL,
};
