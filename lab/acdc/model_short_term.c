/* SPDX-License-Identifier: MIT */
/*
 * Short-term memory: no thread frees anything. A thread refreshes the objects that it still needs,
 * and ticks; the rest expires. Objects of one thread live by its local clock, shared ones by global
 * time.
 */
#include <prudence/scm.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

static bool set(const char *name, const char *value, char *why, size_t size)
{
    int error = prudence_option_set(name, value);

    if (error)
        snprintf(why, size, "Prudence's option %s=%s: %s", name, value, strerror(error));
    return !error;
}

static bool start(const struct settings *settings, char *why, size_t size)
{
    char extension[32];

    snprintf(extension, sizeof extension, "%llu", (unsigned long long)longest_lifetime(settings));
    return set("scm_collection", collection_text(settings->collection), why, size) &&
           set("scm_max_extension", extension, why, size);
}

static bool thread_start(const struct settings *settings, unsigned thread)
{
    (void)settings, (void)thread;
    return !scm_register_thread();
}

/* The only possible error here is a lack of memory; any other is a mistake of ACDC. */
static bool done(int error)
{
    if (error && error != ENOMEM) {
        fprintf(stderr, "acdc: short-term memory: %s\n", strerror(error));
        abort();
    }
    return !error;
}

static void thread_stop(void)
{
    done(scm_unregister_thread());
}

static void pause_thread(void)
{
    done(scm_block_thread());
}

static void resume(void)
{
    done(scm_resume_thread());
}

static void *allocate(size_t size)
{
    return scm_malloc(size);
}

static bool refresh(void *object, unsigned extension)
{
    return done(scm_refresh(object, extension));
}

static bool global_refresh(void *object, unsigned extension)
{
    return done(scm_global_refresh(object, extension));
}

static void tick(void)
{
    done(scm_tick());
}

static void global_tick(void)
{
    done(scm_global_tick());
}

static void collect(void)
{
    done(scm_collect());
}

static uint64_t held(uint64_t live_bytes)
{
    struct scm_mem_info info;

    (void)live_bytes;
    scm_get_mem_info(&info);
    return info.allocated - info.freed;
}

const struct model model_short_term = {
    .description = "scm_malloc, scm_refresh and scm_tick",
    .start = start,
    .thread_start = thread_start,
    .thread_stop = thread_stop,
    .pause = pause_thread,
    .resume = resume,
    .allocate = allocate,
    .expires = true,
    .refresh = refresh,
    .global_refresh = global_refresh,
    .tick = tick,
    .global_tick = global_tick,
    .collect = collect,
    .held = held,
};
