/* SPDX-License-Identifier: MIT */
/*
 * Options: one table, read from PRUDENCE_OPTIONS at start and by prudence_option_set().
 *
 * Each row says how to parse a value and where to store it: in a word or a flag of the layer that
 * reads the option, by an atomic store, or through a function.
 *
 * Locks: one (OS_RANK_OPTIONS) for threads that set options, because setters change several words
 * that belong together, and signal handlers. Text is published by one store, without the lock. At
 * start there is one thread and no lock. process_act() runs without the lock.
 */
#define _GNU_SOURCE /* secure_getenv */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <prudence/prudence.h>

#include "base/checked.h"
#include "debug/instruments.h"
#include "debug/large_guard.h"
#include "debug/profile.h"
#include "debug/settings.h"
#include "gp/user/domain.h"
#include "gp/user/hazard_slots.h"
#include "gp/user/mode.h"
#include "gp/user/process_life.h"
#include "gp/user/stall.h"
#include "heap/background.h"
#include "heap/harmless.h"
#include "heap/heap.h"
#include "heap/size_class.h"
#include "posix.h"
#include "process.h"
#include "rcu/call.h"
#include "runtime/options.h"
#include "runtime/report_file.h"
#include "runtime/sandbox.h"
#include "runtime/signals.h"
#include "runtime/spelling.h"
#include "scm/settings.h"
#include "slab/all_caches.h"
#include "slab/node.h"
#include "slab/preflush.h"
#include "slab/reclaim/budget.h"
#include "slab/reclaim/ceiling.h"
#include "slab/reclaim/limit.h"
#include "slab/reclaim/wait.h"

bool option_rseq = true, option_slices = true, option_membarrier = true,
     option_drop_deepbind = true;

/* ------------------------------------------------------------------------------ parsing values */

static const char bytes[] = "bytes (K, M, G)", limit[] = "bytes (K, M, G); 0: none";
static const char latent_limit[] =
    "bytes (K, M, G), at most latent_ceiling if that is set; 0: none",
                  latent_ceiling[] = "bytes (K, M, G), at least latent_limit";
static const char time_or_never[] = "a time (us, ms, s); 0: never";
static const char time_or_at_once[] = "a time (us, ms, s); 0: at once",
                  a_time[] = "a time (us, ms, s)";

static const char *const switches[] = {"0", "1", NULL};
static const char *const reader_modes[] = {"auto", "fenced", "free", NULL}; /* enum reader_mode */
static const char *const collections[] = {"lazy", "eager", NULL};
static const char *const expired[] = {"free", "deferred", NULL};
enum background { BACKGROUND_NEVER, BACKGROUND_ALWAYS, BACKGROUND_IDLE };
static const char *const backgrounds[] = {"0", "1", "idle", NULL};
static const char *const dumps[] = {"0", SIGNAL_NAMES, NULL};
static const char *const sandboxes[] = {"auto", "0", "1", NULL};         /* enum sandbox */
static const char *const harmless[] = {"auto", "report", "abort", NULL}; /* enum harmless */
static const char *const exports[] = {"0", SIGNAL_NAMES, "1", NULL};

/* `most` limits a number. `choices` are the words allowed; the value is an index. Options with text
 * have `keep` instead of `parse`. */
struct option {
    const char *name;
    const char *values; /* expected values, for messages */
    bool (*parse)(const struct option *option, const char *text, uint64_t *value);
    bool (*keep)(const char *text);
    uint64_t most;
    const char *const *choices;
    bool (*possible)(uint64_t value); /* NULL if every value that parses is possible */
    bool (*keeps_from)(
        uint64_t
            value); /* an earlier setting rules the value out at run time; NULL if nothing does */

    uint64_t *word; /* the value goes to one of these three */
    bool *flag;
    void (*set)(uint64_t value);

    bool at_start; /* may change at start, and until the first cache is made */
    bool at_load;  /* environment only, because nothing may be mapped yet */
    void (*apply)(
        void); /* with at_start: makes a change after the start effective; called under heap_lock */
    void (*begin)(void); /* the same when there are caches; NULL: it is too late then */
};

/* Parses a number with one of the suffixes. */
static bool parse_number(const char *text, const char *const *suffixes, const uint64_t *units,
                         uint64_t *value)
{
    char *end;
    unsigned long long number;

    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    number = strtoull(text, &end, 10);
    if (errno)
        return false;
    for (unsigned i = 0; suffixes[i]; i++)
        if (strcmp(end, suffixes[i]) == 0)
            return checked_multiply(number, units[i], value);
    return false;
}

static bool parse_bytes(const struct option *option, const char *text, uint64_t *value)
{
    static const char *const suffixes[] = {"", "K", "M", "G", NULL};
    static const uint64_t units[] = {1, 1 << 10, 1 << 20, 1 << 30};

    (void)option;
    return parse_number(text, suffixes, units, value) && *value <= INT64_MAX;
}

static bool parse_time(const struct option *option, const char *text, uint64_t *value)
{
    static const char *const suffixes[] = {"ms", "us", "s", "", NULL};
    static const uint64_t units[] = {1000000, 1000, 1000000000, 1000000};

    (void)option;
    return parse_number(text, suffixes, units, value) && *value <= INT64_MAX;
}

static bool parse_count(const struct option *option, const char *text, uint64_t *value)
{
    static const char *const suffixes[] = {"", NULL};
    static const uint64_t units[] = {1};

    return parse_number(text, suffixes, units, value) && *value <= option->most;
}

static bool parse_choice(const struct option *option, const char *text, uint64_t *value)
{
    for (unsigned i = 0; option->choices[i]; i++) {
        if (strcmp(text, option->choices[i]) == 0) {
            *value = i;
            return true;
        }
    }
    return false;
}

/* ------------------------------------------------------------------------------ storing values */

static void set_decay(uint64_t time)
{
    store_relaxed(&slab_decay, time);
    os_pages_set_decay(time);
}

/* The environment may name latent_limit and latent_ceiling in either order. They are compared when
 * all of it was read. */
static bool environment_is_read;

static bool limit_is_possible(uint64_t value)
{
    return !environment_is_read || ceiling_allows_limit(value);
}

static bool ceiling_is_possible_now(uint64_t value)
{
    return !environment_is_read || ceiling_is_possible(value);
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
    store_relaxed(&preflush_enabled, preflush_helper && preflush_wanted);
}

static void set_background(uint64_t choice)
{
    if (sandbox_keeps_from(SANDBOX_AUTO)) {
        if (choice == BACKGROUND_ALWAYS)
            os_report("option 'background': there is no helper with sandbox=1");
        return;
    }
    store_relaxed(&preflush_helper, choice == BACKGROUND_ALWAYS);
    apply_preflush();
    background_set(choice == BACKGROUND_IDLE);
}

static void set_preflush(uint64_t wanted)
{
    preflush_wanted = wanted;
    apply_preflush();
}

static void set_dump(uint64_t choice)
{
    signal_choose(SIGNAL_DUMP, choice);
}

static void set_profile_signal(uint64_t choice)
{
    signal_choose(SIGNAL_PROFILE, choice);
}

/* Takes 1 for the default, because sampling each byte tells no more than sampling each object. */
static uint64_t rate_of(uint64_t value)
{
    return value == 1 ? SAMPLING_RATE_DEFAULT : min_size(value, SAMPLING_RATE_MOST);
}

static void set_profile(uint64_t value)
{
    store_relaxed(&sampling_rate, rate_of(value));
}

static bool profile_is_kept_from(uint64_t value)
{
    return profile_keeps_from(rate_of(value));
}

static void begin_profile(void)
{
    if (profile_begin())
        size_classes_begin_counting();
}

/* Every process can be watched (watch_table.c). Programs and scripts of earlier versions ask for
 * it. */
static void set_export(uint64_t choice)
{
    (void)choice;
}

static void set_check(uint64_t wanted)
{
    store_relaxed(&check_wanted, wanted != 0);
    store_relaxed(&hazard_slots_check, wanted != 0);
    if (wanted)
        store_relaxed(&gp_check, true); /* debug builds always do */
}

/* Sets every part of the option; a later option in the list may change one of them. */
static void set_hardened(uint64_t wanted)
{
    zero_on_free = red_zones_wanted = shuffle_wanted = wanted;
    large_guard_wanted = size_class_of_empty = hardened_wanted = wanted;
}

static void set_max_extension(uint64_t units)
{
    store_relaxed(&scm_max_extension, narrow(uint32_t, units));
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

static bool print_options(const char *value);

#define BYTES(name, values)        name, values, parse_bytes
#define TIME(name, values)         name, values, parse_time
#define COUNT(name, values, n)     name, values, parse_count, .most = (n)
#define CHOICE(name, values, list) name, values, parse_choice, .choices = (list)
#define TEXT(name, values, f)      name, values, .keep = (f)
#define SWITCH(name)               CHOICE(name, "0 or 1", switches)

/* docs/reference/options.md describes each option. Actions that need no lock, and may allocate or
 * make threads, are left to process_act(). */
static const struct option options[] = {
    {BYTES("limit", limit), .set = os_pages_set_limit},
    {BYTES("latent_limit", latent_limit), .set = limit_set_by_user, .possible = limit_is_possible},
    {BYTES("latent_ceiling", latent_ceiling), .set = ceiling_set,
     .possible = ceiling_is_possible_now},
    {BYTES("cache_per_cpu", bytes), .word = &slab_cache_per_cpu},
    {BYTES("cache_total", bytes), .word = &slab_cache_total},
    {BYTES("call_limit", limit), .word = &call_limit},
    {TIME("wait_max", a_time), .word = &slab_wait_max},
    {TIME("stall_timeout", time_or_never), .word = &gp_stall_timeout},
    {SWITCH("stall_trace"), .flag = &gp_stall_trace},
    {BYTES("retain", bytes), .set = os_pages_set_retain},
    {TIME("decay", time_or_at_once), .set = set_decay},
    {SWITCH("huge_pages"), .set = set_huge_pages},
    {CHOICE("background", "idle, 0 or 1", backgrounds), .set = set_background},
    {SWITCH("preflush"), .set = set_preflush},
    {CHOICE("sandbox", "auto, 0 or 1", sandboxes), .set = sandbox_set,
     .keeps_from = sandbox_keeps_from},
    {CHOICE("harmless_misuse", "auto, report or abort", harmless), .word = &harmless_choice},
    {SWITCH("stats"), .set = exit_stats_set},
    {CHOICE("dump", "0, SIGUSR1, SIGUSR2, SIGHUP or SIGQUIT", dumps), .set = set_dump},
    {TEXT("dump_file", "a path of at most 127 bytes; %p: the process's id", dump_set_file)},
    {TEXT("report_file", "a path of at most 127 bytes; %p: the process's id", report_file_set)},
    {CHOICE("export", "0, 1, SIGUSR1, SIGUSR2, SIGHUP or SIGQUIT", exports), .set = set_export},
    {TEXT("profile_file", "a path of at most 127 bytes; %p: the process's id",
          profile_dump_set_file)},
    {CHOICE("profile_signal", "0, SIGUSR1, SIGUSR2, SIGHUP or SIGQUIT", dumps),
     .set = set_profile_signal},
    {SWITCH("drop_deepbind"), .flag = &option_drop_deepbind},
    {COUNT("scm_max_extension", "a number of ticks, 0 to 1048576", SCM_EXTENSION_MOST),
     .set = set_max_extension},
    {CHOICE("scm_collection", "lazy or eager", collections), .flag = &scm_eager},
    {CHOICE("scm_expired", "free or deferred", expired), .flag = &scm_deferred},

    {CHOICE("reader_mode", "auto, fenced or free", reader_modes), .set = set_reader_mode,
     .at_start = true, .apply = gp_follow_options},
    {SWITCH("check"), .set = set_check, .at_start = true, .apply = instruments_start},
    {COUNT("trace", "0 to 32 calls", OS_TRACE_MAX), .word = &stack_depot_frames, .at_start = true,
     .apply = instruments_start},
    {SWITCH("zero_on_free"), .flag = &zero_on_free, .at_start = true, .apply = instruments_start},
    {SWITCH("hardened"), .set = set_hardened, .at_start = true, .apply = instruments_start},
    {SWITCH("red_zones"), .flag = &red_zones_wanted, .at_start = true, .apply = instruments_start},
    {SWITCH("shuffle"), .flag = &shuffle_wanted, .at_start = true, .apply = instruments_start},
    {SWITCH("guard_large"), .flag = &large_guard_wanted, .at_start = true,
     .apply = instruments_start},
    {COUNT("guard_first", "a number of large blocks, 0 to 16", LARGE_GUARD_FIRST_MOST),
     .word = &large_guard_first, .at_start = true, .apply = instruments_start},
    {SWITCH("guard_empty"), .flag = &size_class_of_empty, .at_start = true,
     .apply = instruments_start},
    {COUNT("guard", "0, or N to guard one allocation in N", UINT32_MAX), .word = &guard_interval,
     .at_start = true, .apply = instruments_start},
    {BYTES("profile", "bytes from one sample to the next (K, M, G), 1: 512K, 0: none"),
     .keeps_from = profile_is_kept_from, .set = set_profile, .at_start = true,
     .apply = instruments_start, .begin = begin_profile},
    {BYTES("quarantine", limit), .word = &quarantine_limit, .at_start = true,
     .apply = instruments_start},
    {SWITCH("annotate"), .flag = &annotate_wanted, .at_start = true, .apply = instruments_start},
    {BYTES("page_size", "a power of two, from the size of the system's pages to 64K"),
     .possible = posix_page_size_possible, .set = posix_page_size_set, .at_load = true},
    {SWITCH("rseq"), .flag = &option_rseq, .at_start = true, .apply = apply_rseq},
    {SWITCH("slice_extension"), .flag = &option_slices, .at_start = true, .apply = apply_slices},
    {SWITCH("membarrier"), .flag = &option_membarrier, .at_start = true, .apply = apply_membarrier},
    {TEXT("help", "no value", print_options)},
};

#define OPTIONS (sizeof options / sizeof options[0])

/* Prints a line for each option. */
static bool print_options(const char *value)
{
    if (*value)
        return false;
    os_report(
        " PRUDENCE_OPTIONS=name=value,name=value (defaults and effects: "
        "docs/reference/options.md, man libprudence-malloc)");
    for (unsigned i = 0; i < OPTIONS; i++)
        os_report(" %-17s  %s%s", options[i].name, options[i].values,
                  options[i].at_load    ? " (environment only)"
                  : options[i].at_start ? " (start only)"
                                        : "");
    return true;
}

static bool option_store(const struct option *option, const char *text)
{
    uint64_t value;

    if (option->keep)
        return option->keep(text);
    if (!option->parse(option, text, &value) || (option->possible && !option->possible(value)))
        return false;
    if (option->word)
        store_relaxed(option->word, value);
    else if (option->flag)
        store_relaxed(option->flag, value != 0);
    else
        option->set(value);
    return true;
}

/* ------------------------------------------------------------------------------------- setting */

static struct os_lock options_lock = OS_LOCK_INIT(OS_RANK_OPTIONS);

static const struct option *option_find(const char *name)
{
    for (unsigned i = 0; i < OPTIONS; i++)
        if (strcmp(options[i].name, name) == 0)
            return &options[i];
    return NULL;
}

/* Returns the name of the option that was probably meant, or NULL if none is like `name`. */
static const char *option_like(const char *name)
{
    const char *best = NULL;
    unsigned distance, least = SPELLING_FAR;

    for (unsigned i = 0; i < OPTIONS; i++) {
        distance = spelling_distance(name, options[i].name);
        if (distance < least) {
            least = distance;
            best = options[i].name;
        }
    }
    return best;
}

static bool caches_are_none(void)
{
    bool none;

    os_lock_take(&slab_caches_lock);
    none = list_is_empty(&slab_caches);
    os_lock_release(&slab_caches_lock);
    return none;
}

static int bad_value(const struct option *option, const char *value)
{
    os_report("option '%s': bad value '%s' (expected: %s)", option->name, value, option->values);
    return EINVAL;
}

static int unknown(const char *name, const char *value)
{
    const char *meant = option_like(name);

    if (meant)
        os_report("unknown option '%s' (value '%s'): did you mean '%s'?", name, value, meant);
    else
        os_report("unknown option '%s' (value '%s'): PRUDENCE_OPTIONS=help lists all", name, value);
    return ENOENT;
}

/* Sets an option, under the lock unless the value is text, which `keep` copies and publishes by one
 * store. */
static bool set_one_at_a_time(const struct option *option, const char *value)
{
    bool done;

    if (option->keep)
        return option->keep(value);
    os_lock_take(&options_lock);
    done = option_store(option, value);
    os_lock_release(&options_lock);
    return done;
}

static bool is_kept_from(const struct option *option, const char *text)
{
    uint64_t value;

    if (!option->keeps_from || !option->parse(option, text, &value) || !option->keeps_from(value))
        return false;
    os_report("option '%s': the value set before cannot be taken back (value '%s')", option->name,
              text);
    return true;
}

/* Sets an option when there are caches. Returns an error; EINVAL is still to be reported. */
static int set_beside_caches(const struct option *option, const char *value)
{
    if (!option->begin) {
        os_report("option '%s' can be set only before the first cache is made (value '%s')",
                  option->name, value);
        return EBUSY;
    }
    if (is_kept_from(option, value))
        return EBUSY;
    if (!option_store(option, value))
        return EINVAL;
    option->begin();
    return 0;
}

static int set_before_caches(const struct option *option, const char *value)
{
    if (!option_store(option, value))
        return EINVAL;
    if (option->apply)
        option->apply();
    return 0;
}

/*
 * Sets an option of the start. heap_lock keeps threads from making a cache. So `check` and `rseq`,
 * which must not change in a cache's life, have no user yet, and an option that may begin later
 * misses no cache. Threads may already read, drive grace periods and make domains; reader_mode and
 * membarrier follow the protocol of mode switches.
 */
static int set_at_start(const struct option *option, const char *value)
{
    int error;

    os_lock_take(&options_lock);
    os_lock_take(&heap_lock);
    error = caches_are_none() ? set_before_caches(option, value) : set_beside_caches(option, value);
    os_lock_release(&heap_lock);
    os_lock_release(&options_lock);
    return error == EINVAL ? bad_value(option, value) : error;
}

int prudence_option_set(const char *name, const char *value)
{
    const struct option *option;
    int error;

    if (!name || !value) {
        os_report("prudence_option_set: option name or value is NULL");
        return EINVAL;
    }
    if (os_busy > os_busy_of_fork) {
        os_report("option '%s' cannot be set: this thread was interrupted inside the library",
                  name);
        return EBUSY;
    }
    process_start();
    option = option_find(name);
    if (!option)
        return unknown(name, value);
    if (option->at_load) {
        os_report("option '%s' can be set only in PRUDENCE_OPTIONS (value '%s')", name, value);
        return EBUSY;
    }
    if (option->at_start) {
        if (option->begin)
            os_trace_prime(); /* before the first sample, which needs a trace */
        error = set_at_start(option, value);
        process_act();
        return error;
    }
    if (is_kept_from(option, value))
        return EBUSY;
    if (!set_one_at_a_time(option, value))
        return bad_value(option, value);
    process_act();
    return 0;
}

/* Sets an option at start, when `apply` has nothing to change yet. `cut` marks a value longer than
 * the buffer. */
static void set_from_environment(const char *name, const char *value, bool cut)
{
    const struct option *option = option_find(name);

    if (!option)
        unknown(name, value);
    else if (cut || !option_store(option, value))
        bad_value(option, value);
}

void options_fork_prepare(void)
{
    os_lock_take_for_fork(&options_lock);
}

void options_fork_done(void)
{
    os_lock_release_from_fork(&options_lock);
}

void options_read_environment(void)
{
    /* Runs before any thread could change the environment. A setuid program ignores the variable,
     * because its caller must not choose its output or its memory limits. */
    const char *text = secure_getenv("PRUDENCE_OPTIONS"); /* NOLINT(concurrency-mt-unsafe) */
    char entry[128];

    while (text && *text) {
        size_t length = strcspn(text, ",");
        char *equals;

        snprintf(entry, sizeof entry, "%.*s", (int)min_size(length, sizeof entry - 1), text);
        equals = strchr(entry, '=');
        if (equals)
            *equals = '\0';
        if (length)
            set_from_environment(entry, equals ? equals + 1 : "", length >= sizeof entry);
        text += length + (text[length] == ',');
    }
    environment_is_read = true;
    if (!ceiling_check())
        os_report(
            "option 'latent_ceiling': the value is below latent_limit, so latent_limit is the "
            "ceiling");
}
