/* SPDX-License-Identifier: MIT */
#include "report.h"

#include <stddef.h>

#include "host.h"

static json_t *whole(uint64_t number)
{
    return json_integer((json_int_t)number);
}

static json_t *known(uint64_t number)
{
    return number == HELD_UNKNOWN ? json_null() : whole(number);
}

static json_t *settings_json(const struct settings *settings)
{
    json_t *json = json_pack(
        "{s:s, s:i, s:I, s:I, s:i, s:i, s:I, s:I, s:I, s:o, s:I, s:I, s:i, s:b, s:b, s:I}", "model",
        model_text(settings->model), "threads", settings->threads, "duration",
        (json_int_t)settings->duration, "time_quantum", (json_int_t)settings->time_quantum,
        "min_size", settings->min_size, "max_size", settings->max_size, "min_liveness",
        (json_int_t)settings->min_liveness, "max_liveness", (json_int_t)settings->max_liveness,
        "deallocation_delay", (json_int_t)settings->deallocation_delay, "max_drift",
        settings->max_drift == ANY_DRIFT ? json_null() : whole(settings->max_drift), "multiplier",
        (json_int_t)settings->multiplier, "objects", (json_int_t)settings->objects, "tree_share",
        settings->tree_share, "access", settings->access, "shared", settings->shared, "seed",
        (json_int_t)settings->seed);
    json_t *more = json_pack(
        "{s:i, s:i, s:b, s:i, s:i, s:I, s:I, s:b, s:b}", "write_ratio", settings->write_ratio,
        "write_iterations", settings->write_iterations, "false_sharing", settings->false_sharing,
        "share_ratio", settings->shared ? settings->share_ratio : 0, "receiver_ratio",
        settings->receiver_ratio, "think", (json_int_t)settings->think, "timed",
        (json_int_t)settings->timed, "pinned", settings->pinned, "original", settings->original);

    json_object_update_new(json, more);
    if (settings->label)
        json_object_set_new(json, "label", json_string(settings->label));
    if (settings->model == MODEL_DEFERRED)
        json_object_update_new(json, json_pack("{s:s, s:i}", "reclaimer",
                                               reclaimer_text(settings->reclaimer),
                                               "deferred_share", settings->deferred_share));
    if (settings->model == MODEL_SHORT_TERM)
        json_object_set_new(json, "collection", json_string(collection_text(settings->collection)));
    return json;
}

static json_t *times_json(const struct times *times, double ticks_per_ns)
{
    static const struct {
        const char *name;
        double quantile;
    } quantiles[] = {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99_9", 0.999}};
    json_t *json = json_pack("{s:I, s:I}", "count", (json_int_t)times->count, "timed",
                             (json_int_t)times->timed);
    json_t *cycles;

    if (!times->timed)
        return json;
    json_object_set_new(json, "mean_ns", json_real(times_mean(times) / ticks_per_ns));
    json_object_set_new(json, "deviation_ns", json_real(times_deviation(times) / ticks_per_ns));
    cycles = json_pack("{s:f, s:f, s:I, s:I}", "mean", times_mean(times), "deviation",
                       times_deviation(times), "min", (json_int_t)times->smallest, "max",
                       (json_int_t)times->largest);
    json_object_set_new(cycles, "mean_99_9", json_real(times_trimmed_mean(times, 0.999)));
    json_object_set_new(cycles, "mean_99", json_real(times_trimmed_mean(times, 0.99)));
    for (unsigned i = 0; i < sizeof quantiles / sizeof *quantiles; i++)
        json_object_set_new(cycles, quantiles[i].name,
                            whole(times_quantile(times, quantiles[i].quantile)));
    json_object_set_new(json, TICKS_ARE_CYCLES ? "cycles" : "nanoseconds", cycles);
    return json;
}

static json_t *operations_json(const struct result *result)
{
    json_t *json = json_object();

    for (unsigned i = 0; i < OPERATIONS; i++) {
        if (result->times[i].count)
            json_object_set_new(json, operation_names[i],
                                times_json(&result->times[i], result->ticks_per_ns));
    }
    return json;
}

static json_t *sizes_json(const struct outcome *outcome)
{
    const struct settings *settings = outcome->run->settings;
    const struct result *result = outcome->result;
    json_t *json = json_array();

    for (unsigned i = settings->min_size; i <= settings->max_size; i++)
        json_array_append_new(json, json_pack("{s:i, s:I, s:I}", "size_class", i, "objects",
                                              (json_int_t)result->class_objects[i], "bytes",
                                              (json_int_t)result->class_bytes[i]));
    return json;
}

static json_t *livenesses_json(const struct outcome *outcome)
{
    const struct settings *settings = outcome->run->settings;
    json_t *json = json_array();

    for (uint64_t i = settings->min_liveness; i <= settings->max_liveness; i++)
        json_array_append_new(
            json,
            json_pack("{s:I, s:I}", "liveness", (json_int_t)i, "objects",
                      (json_int_t)outcome->result->liveness_objects[i - settings->min_liveness]));
    return json;
}

static json_t *samples_json(const struct trace *trace)
{
    json_t *json = json_array();

    for (uint64_t i = 0; i < trace->count; i++) {
        const struct sample *sample = &trace->sample[i];

        json_array_append_new(
            json, json_pack("{s:I, s:f, s:I, s:I, s:o, s:I}", "time", (json_int_t)sample->time,
                            "seconds", (double)sample->ns / 1e9, "live_objects",
                            (json_int_t)sample->live_objects, "live_bytes",
                            (json_int_t)sample->live_bytes, "held_bytes", known(sample->held_bytes),
                            "resident_bytes", (json_int_t)sample->resident_bytes));
    }
    return json;
}

static void set_steady(json_t *json, const struct outcome *outcome, const char *name, size_t offset)
{
    double mean;

    json_object_set_new(json, name,
                        outcome_steady(outcome, offset, &mean) ? json_real(mean) : json_null());
}

static json_t *memory_json(const struct outcome *outcome)
{
    const struct result *result = outcome->result;
    json_t *json = json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "live_objects", (json_int_t)result->live_objects,
        "live_bytes", (json_int_t)result->live_bytes, "base_resident_bytes",
        (json_int_t)result->base_resident_bytes, "end_resident_bytes",
        (json_int_t)result->end_resident_bytes, "peak_resident_bytes",
        (json_int_t)result->peak_resident_bytes, "drained_resident_bytes",
        (json_int_t)result->drained_resident_bytes, "books_bytes", (json_int_t)result->books_bytes);

    set_steady(json, outcome, "steady_live_objects", offsetof(struct sample, live_objects));
    set_steady(json, outcome, "steady_live_bytes", offsetof(struct sample, live_bytes));
    set_steady(json, outcome, "steady_held_bytes", offsetof(struct sample, held_bytes));
    set_steady(json, outcome, "steady_resident_bytes", offsetof(struct sample, resident_bytes));
    return json;
}

static json_t *counts_json(const struct result *result)
{
    return json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "rounds", (json_int_t)result->rounds,
        "allocated_objects", (json_int_t)result->allocated_objects, "allocated_bytes",
        (json_int_t)result->allocated_bytes, "freed_objects", (json_int_t)result->freed_objects,
        "freed_bytes", (json_int_t)result->freed_bytes, "shared_objects",
        (json_int_t)result->shared_objects, "received_objects",
        (json_int_t)result->received_objects, "deferred_objects",
        (json_int_t)result->deferred_objects, "reads", (json_int_t)result->reads, "writes",
        (json_int_t)result->writes);
}

json_t *report_json(const struct outcome *outcome)
{
    const struct result *result = outcome->result;

    return json_pack(
        "{s:s, s:o, s:o, s:o, s:b, s:f, s:f, s:f, s:o, s:o, s:o, s:o, s:o, s:o, s:f, s:I}",
        "program", "acdc", "host", host_description(), "allocator", host_allocator(), "settings",
        settings_json(outcome->run->settings), "out_of_memory", result->out_of_memory, "seconds",
        result->seconds, "cpu_seconds", result->cpu_seconds, "bytes_per_second",
        outcome_throughput(outcome), "counts", counts_json(result), "memory", memory_json(outcome),
        "operations", operations_json(result), "sizes", sizes_json(outcome), "livenesses",
        livenesses_json(outcome), "samples", samples_json(&outcome->run->trace), "ticks_per_ns",
        result->ticks_per_ns, "timer_overhead", (json_int_t)times_overhead());
}
