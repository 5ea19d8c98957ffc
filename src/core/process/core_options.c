/* SPDX-License-Identifier: MIT */
/* The options of the core: memory, deferred objects, grace periods, what is asked of the system. */
#include "gp/user/mode.h"
#include "gp/user/process_life.h"
#include "gp/user/stall.h"
#include "gp/user/wait_request.h"
#include "heap/background.h"
#include "heap/harmless.h"
#include "posix.h"
#include "process/option.h"
#include "process/options.h"
#include "process/sandbox.h"
#include "slab/node.h"
#include "slab/preflush.h"
#include "slab/reclaim/budget.h"
#include "slab/reclaim/decay.h"
#include "slab/reclaim/limit.h"
#include "slab/reclaim/wait.h"

bool option_rseq = true, option_slices = true, option_membarrier = true,
     option_drop_deepbind = true;

static const char *const reader_modes[] = {"auto", "fenced", "free", NULL}; /* enum reader_mode */
enum background { BACKGROUND_NEVER, BACKGROUND_ALWAYS, BACKGROUND_IDLE };
static const char *const backgrounds[] = {"0", "1", "idle", NULL};
static const char *const sandboxes[] = {"auto", "0", "1", NULL};         /* enum sandbox */
static const char *const harmless[] = {"auto", "report", "abort", NULL}; /* enum harmless */

static void set_decay(uint64_t time)
{
    store_relaxed(&slab_decay, time);
    os_pages_set_decay(time);
}

static void set_wait_max(uint64_t time)
{
    store_relaxed(&slab_wait_max, time);
    store_relaxed(&gp_wait_max, time);
}

/* The environment may name latent_limit and latent_ceiling in either order. They are compared when
 * all of it was read. */
static bool limit_is_possible_now(uint64_t value)
{
    return !options_environment_is_read || limit_is_possible(value);
}

static bool ceiling_is_possible_now(uint64_t value)
{
    return !options_environment_is_read || limit_ceiling_is_possible(value);
}

static void set_huge_pages(uint64_t wanted)
{
    os_pages_set_huge(wanted);
}

static void set_reader_mode(uint64_t mode)
{
    store_relaxed(&gp_reader_mode, (enum reader_mode)mode);
}

static bool preflush_wanted = true;

/* Pre-flush needs the helper. */
static void apply_preflush(void)
{
    store_relaxed(&preflush_enabled, decay_helper && preflush_wanted);
}

static void set_background(uint64_t choice)
{
    if (sandbox_keeps_from(SANDBOX_AUTO)) {
        if (choice == BACKGROUND_ALWAYS)
            os_report("option 'background': there is no helper with sandbox=1");
        return;
    }
    store_relaxed(&decay_helper, choice == BACKGROUND_ALWAYS);
    apply_preflush();
    background_set(choice == BACKGROUND_IDLE);
}

static void set_preflush(uint64_t wanted)
{
    preflush_wanted = wanted;
    apply_preflush();
}

static void apply_rseq(void)
{
    posix_percpu_start(option_rseq && !sandbox_is_wanted());
}

static void apply_slices(void)
{
    posix_slices_start(option_slices && !sandbox_is_wanted());
}

static void apply_membarrier(void)
{
    posix_membarrier_start(option_membarrier && !sandbox_is_wanted());
    gp_follow_options();
}

const struct option core_options[] = {
    {ROW_BYTES("limit", OPTION_LIMIT), .set = os_pages_set_limit},
    {ROW_BYTES("latent_limit", "bytes (K, M, G), at most latent_ceiling if that is set; 0: none"),
     .set = limit_set_by_user, .possible = limit_is_possible_now},
    {ROW_BYTES("latent_ceiling", "bytes (K, M, G), at least latent_limit"),
     .set = limit_set_ceiling, .possible = ceiling_is_possible_now},
    {ROW_BYTES("cache_per_cpu", OPTION_BYTES), .word = &slab_cache_per_cpu},
    {ROW_BYTES("cache_total", OPTION_BYTES), .word = &slab_cache_total},
    {ROW_TIME("wait_max", "a time (us, ms, s)"), .set = set_wait_max},
    {ROW_TIME("stall_timeout", "a time (us, ms, s); 0: never"), .word = &gp_stall_timeout},
    {ROW_SWITCH("stall_trace"), .flag = &gp_stall_trace},
    {ROW_BYTES("retain", OPTION_BYTES), .set = os_pages_set_retain},
    {ROW_TIME("decay", "a time (us, ms, s); 0: at once"), .set = set_decay},
    {ROW_SWITCH("huge_pages"), .set = set_huge_pages},
    {ROW_CHOICE("background", "idle, 0 or 1", backgrounds), .set = set_background},
    {ROW_SWITCH("preflush"), .set = set_preflush},
    {ROW_CHOICE("sandbox", "auto, 0 or 1", sandboxes), .set = sandbox_set,
     .keeps_from = sandbox_keeps_from},
    {ROW_CHOICE("harmless_misuse", "auto, report or abort", harmless), .word = &harmless_choice},
    {ROW_SWITCH("drop_deepbind"), .flag = &option_drop_deepbind},
    {ROW_CHOICE("reader_mode", "auto, fenced or free", reader_modes), .set = set_reader_mode,
     .at_start = true, .apply = gp_follow_options},
    {ROW_BYTES("page_size", "a power of two, from the size of the system's pages to 64K"),
     .possible = posix_page_size_possible, .set = posix_page_size_set, .at_load = true},
    {ROW_SWITCH("rseq"), .flag = &option_rseq, .at_start = true, .apply = apply_rseq},
    {ROW_SWITCH("slice_extension"), .flag = &option_slices, .at_start = true,
     .apply = apply_slices},
    {ROW_SWITCH("membarrier"), .flag = &option_membarrier, .at_start = true,
     .apply = apply_membarrier},
    {ROW_TEXT("help", "no value", options_print)},
    {.name = NULL},
};
