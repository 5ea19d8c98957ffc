/* SPDX-License-Identifier: MIT */
#include "settings.h"

#include <stdarg.h>
#include <stdio.h>

#include "draw.h"

void settings_defaults(struct settings *settings)
{
    *settings = (struct settings){
        .model = MODEL_PERSISTENT,
        .reclaimer = RECLAIMER_PRUDENCE,
        .collection = COLLECTION_LAZY,
        .deferred_share = 100,
        .threads = 1,
        .duration = 100,
        .time_quantum = 1 << 18,
        .min_size = 4,
        .max_size = 8,
        .min_liveness = 1,
        .max_liveness = 10,
        .max_drift = 10,
        .multiplier = 1,
        .write_ratio = 10,
        .write_iterations = 1,
        .share_ratio = 10,
        .receiver_ratio = 100,
        .seed = 1,
        .timed = 16,
        .samples = 1000,
    };
}

const char *model_text(unsigned model)
{
    static const char *const text[] = {"persistent", "short-term", "deferred", "none", NULL};

    return text[model];
}

const char *reclaimer_text(unsigned reclaimer)
{
    static const char *const text[] = {"prudence", "liburcu", NULL};

    return text[reclaimer];
}

const char *collection_text(unsigned collection)
{
    static const char *const text[] = {"lazy", "eager", NULL};

    return text[collection];
}

__attribute__((format(printf, 3, 4))) static bool refuse(char *why, size_t size, const char *format,
                                                         ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(why, size, format, arguments);
    va_end(arguments);
    return false;
}

bool settings_check(const struct settings *settings, char *why, size_t size)
{
    struct draw best = {.size_class = settings->min_size, .liveness = settings->min_liveness};

    if (settings->min_size > settings->max_size)
        return refuse(why, size, "--min-size %u is above --max-size %u", settings->min_size,
                      settings->max_size);
    if (settings->min_liveness > settings->max_liveness)
        return refuse(why, size, "--min-liveness %llu is above --max-liveness %llu",
                      (unsigned long long)settings->min_liveness,
                      (unsigned long long)settings->max_liveness);
    if (!objects_of(settings, &best))
        return refuse(why, size,
                      "--multiplier %llu is too small for --threads %u and --max-liveness %llu: no "
                      "draw would make an object",
                      (unsigned long long)settings->multiplier, settings->threads,
                      (unsigned long long)settings->max_liveness);
    if (objects_of(settings, &best) > MOST_OBJECTS)
        return refuse(
            why, size,
            "--multiplier %llu is too large: a round could make %llu objects, more than %d",
            (unsigned long long)settings->multiplier,
            (unsigned long long)objects_of(settings, &best), MOST_OBJECTS);
    return true;
}
