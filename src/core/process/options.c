/* SPDX-License-Identifier: MIT */
/*
 * Options are read from PRUDENCE_OPTIONS at start, and set by prudence_option_set(). Each part of
 * the library has a table (option.h).
 *
 * Each row says how to parse a value and where to store it: in a word or a flag of the layer that
 * reads the option, by an atomic store, or through a function.
 *
 * Locks: one (OS_RANK_OPTIONS) for threads that set options, because setters change several words
 * that belong together, and signal handlers. Text is published by one store, without the lock. At
 * start there is one thread and no lock. process_act() runs without the lock.
 */
#define _GNU_SOURCE /* secure_getenv */
#include "process/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <prudence/prudence.h>

#include "base/checked.h"
#include "heap/heap.h"
#include "process.h"
#include "process/spelling.h"
#include "report.h"
#include "slab/all_caches.h"
#include "slab/reclaim/limit.h"

bool options_environment_is_read READ_MOSTLY = false;

/* Visits the rows of all parts. */
#define for_each_option(option)                                                                    \
    for (const struct option *const *table_ = option_tables; *table_; table_++)                    \
        for ((option) = *table_; (option)->name; (option)++)

bool options_print(const char *value)
{
    const struct option *option;

    if (*value)
        return false;
    os_report(
        " PRUDENCE_OPTIONS=name=value,name=value (defaults and effects: "
        "docs/reference/options.md, man libprudence-malloc)");
    for_each_option(option)
    {
        os_report(" %-17s  %s%s", option->name, option->values,
                  option->at_load    ? " (environment only)"
                  : option->at_start ? " (start only)"
                                     : "");
    }
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
    const struct option *option;

    for_each_option(option)
    {
        if (strcmp(option->name, name) == 0)
            return option;
    }
    return NULL;
}

/* Returns the name of the option that was probably meant, or NULL if none is like `name`. */
static const char *option_like(const char *name)
{
    const struct option *option;
    const char *best = NULL;
    unsigned distance, least = SPELLING_FAR;

    for_each_option(option)
    {
        distance = spelling_distance(name, option->name);
        if (distance < least) {
            least = distance;
            best = option->name;
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
    options_environment_is_read = true;
    if (!limit_check_ceiling())
        os_report(
            "option 'latent_ceiling': the value is below latent_limit, so latent_limit is the "
            "ceiling");
}
