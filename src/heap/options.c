/* SPDX-License-Identifier: MIT */
/*
 * Options: one table, read from PRUDENCE_OPTIONS at start and by prudence_option_set().
 */
#define _GNU_SOURCE /* secure_getenv */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <prudence/prudence.h>

#include "base/checked.h"
#include "gp/domain.h"
#include "heap/annotate.h"
#include "heap/background.h"
#include "heap/call.h"
#include "heap/check.h"
#include "heap/depot.h"
#include "heap/guard.h"
#include "heap/heap.h"
#include "heap/options.h"
#include "heap/quarantine.h"
#include "heap/watch.h"
#include "posix.h"

bool option_rseq = true, option_membarrier = true, option_drop_deepbind = true;
uint32_t option_scm_max_extension = 4095;
bool option_scm_eager, option_scm_deferred;

/* A number with an optional suffix, of at most `max`. */
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

static bool parse_bytes(const char *text, uint64_t *value)
{
    static const char *const suffixes[] = {"", "K", "M", "G", NULL};
    static const uint64_t units[] = {1, 1 << 10, 1 << 20, 1 << 30};

    return parse_number(text, suffixes, units, value) && *value <= INT64_MAX;
}

static bool parse_time(const char *text, uint64_t *value)
{
    static const char *const suffixes[] = {"ms", "us", "s", "", NULL};
    static const uint64_t units[] = {1000000, 1000, 1000000000, 1000000};

    return parse_number(text, suffixes, units, value) && *value <= INT64_MAX;
}

static bool parse_count(const char *text, uint64_t most, uint64_t *value)
{
    static const char *const suffixes[] = {"", NULL};
    static const uint64_t units[] = {1};
    uint64_t count;

    if (!parse_number(text, suffixes, units, &count) || count > most)
        return false;
    *value = count;
    return true;
}

static bool parse_switch(const char *text, bool *value)
{
    bool on = strcmp(text, "1") == 0;

    if (!on && strcmp(text, "0") != 0)
        return false;
    *value = on;
    return true;
}

static bool set_limit(const char *text)
{
    uint64_t bytes;

    if (!parse_bytes(text, &bytes))
        return false;
    os_pages_set_limit(bytes);
    return true;
}

static bool set_retain(const char *text)
{
    uint64_t bytes;

    if (!parse_bytes(text, &bytes))
        return false;
    os_pages_set_retain(bytes);
    return true;
}

static bool set_latent_limit(const char *text)
{
    uint64_t bytes;

    if (!parse_bytes(text, &bytes))
        return false;
    latent_limit_set(bytes);
    return true;
}

static bool set_cache_per_cpu(const char *text)
{
    uint64_t bytes;

    if (!parse_bytes(text, &bytes))
        return false;
    store_relaxed(&slab_cache_per_cpu, bytes);
    return true;
}

static bool set_cache_total(const char *text)
{
    uint64_t bytes;

    if (!parse_bytes(text, &bytes))
        return false;
    store_relaxed(&slab_cache_total, bytes);
    return true;
}

static bool set_call_limit(const char *text)
{
    uint64_t bytes;

    if (!parse_bytes(text, &bytes))
        return false;
    store_relaxed(&call_limit, bytes);
    return true;
}

static bool set_wait_max(const char *text)
{
    uint64_t time;

    if (!parse_time(text, &time))
        return false;
    store_relaxed(&slab_wait_max, time);
    return true;
}

static bool set_stall_timeout(const char *text)
{
    uint64_t time;

    if (!parse_time(text, &time))
        return false;
    store_relaxed(&gp_stall_timeout, time);
    return true;
}

static bool set_stall_trace(const char *text)
{
    bool wanted;

    if (!parse_switch(text, &wanted))
        return false;
    store_relaxed(&gp_stall_trace, wanted);
    return true;
}

static bool set_decay(const char *text)
{
    uint64_t time;

    if (!parse_time(text, &time))
        return false;
    store_relaxed(&slab_decay, time);
    os_pages_set_decay(time);
    return true;
}

static bool set_huge_pages(const char *text)
{
    bool wanted;

    if (!parse_switch(text, &wanted))
        return false;
    os_pages_set_huge(wanted);
    return true;
}

static bool set_reader_mode(const char *text)
{
    static const char *const names[] = {"auto", "fenced", "free", NULL};

    for (unsigned i = 0; names[i]; i++) {
        if (strcmp(text, names[i]) == 0) {
            store_relaxed(&gp_reader_mode, (enum reader_mode)i);
            return true;
        }
    }
    return false;
}

static bool set_background(const char *text)
{
    bool idle = strcmp(text, "idle") == 0;

    if (!idle && !parse_switch(text, &preflush_enabled))
        return false;
    if (idle)
        preflush_enabled = false;
    background_set(idle);
    return true;
}

static bool set_check(const char *text)
{
    if (!parse_switch(text, &check_wanted))
        return false;
    if (check_wanted)
        store_relaxed(&gp_check, true); /* debug builds always do */
    return true;
}

static bool set_trace(const char *text)
{
    return parse_count(text, OS_TRACE_MAX, &depot_frames);
}

static bool set_zero_on_free(const char *text)
{
    return parse_switch(text, &zero_on_free);
}

static bool set_guard(const char *text)
{
    return parse_count(text, UINT32_MAX, &guard_interval);
}

static bool set_quarantine(const char *text)
{
    uint64_t bytes;

    if (!parse_bytes(text, &bytes))
        return false;
    quarantine_limit = bytes;
    return true;
}

static bool set_annotate(const char *text)
{
    return parse_switch(text, &annotate_wanted);
}

static bool set_rseq(const char *text)
{
    return parse_switch(text, &option_rseq);
}

static bool set_membarrier(const char *text)
{
    return parse_switch(text, &option_membarrier);
}

static bool set_stats(const char *text)
{
    bool wanted;

    if (!parse_switch(text, &wanted))
        return false;
    exit_stats_set(wanted);
    return true;
}

static bool set_scm_max_extension(const char *text)
{
    uint64_t units;

    if (!parse_count(text, SCM_EXTENSION_MOST, &units))
        return false;
    store_relaxed(&option_scm_max_extension, (uint32_t)units);
    return true;
}

/* `names`: for false and for true. */
static bool parse_choice(const char *text, const char *const names[2], bool *value)
{
    for (unsigned i = 0; i < 2; i++) {
        if (strcmp(text, names[i]) == 0) {
            store_relaxed(value, i == 1);
            return true;
        }
    }
    return false;
}

static bool set_scm_collection(const char *text)
{
    static const char *const names[2] = {"lazy", "eager"};

    return parse_choice(text, names, &option_scm_eager);
}

static bool set_scm_expired(const char *text)
{
    static const char *const names[2] = {"free", "deferred"};

    return parse_choice(text, names, &option_scm_deferred);
}

static bool set_drop_deepbind(const char *text)
{
    bool wanted;

    if (!parse_switch(text, &wanted))
        return false;
    store_relaxed(&option_drop_deepbind, wanted);
    return true;
}

static void apply_rseq(void)
{
    posix_percpu_start(option_rseq);
}

static void apply_membarrier(void)
{
    posix_membarrier_start(option_membarrier);
    gp_follow_options();
}

/*
 * docs/reference/options.md says what each is for. `set` records the value: it is called at the very start too, when
 * the heap is not ready (process.c). `apply`, of an option of the start, makes a later change effective,
 * under heap_lock. What needs no lock, and may allocate or make threads, is done by process_act().
 */
static const struct option {
    const char *name;
    const char *values;
    bool (*set)(const char *text);
    bool at_start; /* only before the first cache is made, or at start */
    void (*apply)(void);
} options[] = {
    {"limit", "bytes (K, M, G); 0: none", set_limit, false, NULL},
    {"latent_limit", "bytes (K, M, G); 0: none", set_latent_limit, false, NULL},
    {"cache_per_cpu", "bytes (K, M, G)", set_cache_per_cpu, false, NULL},
    {"cache_total", "bytes (K, M, G)", set_cache_total, false, NULL},
    {"call_limit", "bytes (K, M, G); 0: none", set_call_limit, false, NULL},
    {"wait_max", "a time (us, ms, s)", set_wait_max, false, NULL},
    {"stall_timeout", "a time (us, ms, s); 0: never", set_stall_timeout, false, NULL},
    {"stall_trace", "0 or 1", set_stall_trace, false, NULL},
    {"retain", "bytes (K, M, G)", set_retain, false, NULL},
    {"decay", "a time (us, ms, s); 0: at once", set_decay, false, NULL},
    {"huge_pages", "0 or 1", set_huge_pages, false, NULL},
    {"background", "idle, 0 or 1", set_background, false, NULL},
    {"stats", "0 or 1", set_stats, false, NULL},
    {"drop_deepbind", "0 or 1", set_drop_deepbind, false, NULL},
    {"scm_max_extension", "a number of ticks, 0 to 1048576", set_scm_max_extension, false, NULL},
    {"scm_collection", "lazy or eager", set_scm_collection, false, NULL},
    {"scm_expired", "free or deferred", set_scm_expired, false, NULL},
    {"reader_mode", "auto, fenced or free", set_reader_mode, true, gp_follow_options},
    {"check", "0 or 1", set_check, true, watch_start},
    {"trace", "0 to 32 calls", set_trace, true, watch_start},
    {"zero_on_free", "0 or 1", set_zero_on_free, true, watch_start},
    {"guard", "0, or one allocation in so many", set_guard, true, watch_start},
    {"quarantine", "bytes (K, M, G); 0: none", set_quarantine, true, watch_start},
    {"annotate", "0 or 1", set_annotate, true, watch_start},
    {"rseq", "0 or 1", set_rseq, true, apply_rseq},
    {"membarrier", "0 or 1", set_membarrier, true, apply_membarrier},
};

static const struct option *find(const char *name)
{
    for (unsigned i = 0; i < sizeof options / sizeof options[0]; i++)
        if (strcmp(options[i].name, name) == 0)
            return &options[i];
    return NULL;
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
    os_report("unknown option '%s' (value '%s')", name, value);
    return ENOENT;
}

/*
 * No cache is, or is being made: that takes the same lock. So `check` and `rseq`, which a cache must
 * find the same throughout its life, have no user yet. What may have happened: threads read, drive
 * grace periods and make domains; reader_mode and membarrier follow the protocol of mode switches.
 */
static int set_at_start(const struct option *option, const char *value)
{
    int error = 0;

    os_lock_take(&heap_lock);
    if (!caches_are_none())
        error = EBUSY;
    else if (!option->set(value))
        error = EINVAL;
    else if (option->apply)
        option->apply();
    os_lock_release(&heap_lock);
    if (error == EBUSY)
        os_report("option '%s' can be set only before the first cache is made (value '%s')",
                  option->name, value);
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
    process_start();
    option = find(name);
    if (!option)
        return unknown(name, value);
    if (option->at_start) {
        error = set_at_start(option, value);
        process_act();
        return error;
    }
    if (!option->set(value))
        return bad_value(option, value);
    process_act();
    return 0;
}

/* At start: nothing is yet what `apply` would change. `cut`: there is more of the value. */
static void set_from_environment(const char *name, const char *value, bool cut)
{
    const struct option *option = find(name);

    if (!option)
        unknown(name, value);
    else if (cut || !option->set(value))
        bad_value(option, value);
}

void options_read_environment(void)
{
    /* At start, before any thread of ours could change it. Nothing in a setuid program: what it
     * prints, and how much memory it may use, is not for its caller to say. */
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
}
