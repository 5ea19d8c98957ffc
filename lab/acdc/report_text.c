/* SPDX-License-Identifier: MIT */
#include "report.h"

#include <stddef.h>
#include <string.h>

#include "host.h"

#define BAR 40

bool outcome_steady(const struct outcome *outcome, size_t offset, double *mean)
{
    uint64_t settled = longest_lifetime(outcome->run->settings);

    return trace_mean(&outcome->run->trace, settled, outcome->run->settings->duration, offset,
                      mean);
}

double outcome_throughput(const struct outcome *outcome)
{
    const struct result *result = outcome->result;

    return result->seconds > 0 ? (double)result->allocated_bytes / result->seconds : 0;
}

static void print_settings(const struct settings *settings, FILE *file)
{
    fprintf(file,
            "%u thread%s, %llu ticks of %llu bytes; sizes 2^%u to 2^%u, liveness %llu to %llu",
            settings->threads, settings->threads == 1 ? "" : "s",
            (unsigned long long)settings->duration, (unsigned long long)settings->time_quantum,
            settings->min_size, settings->max_size, (unsigned long long)settings->min_liveness,
            (unsigned long long)settings->max_liveness);
    if (settings->deallocation_delay)
        fprintf(file, ", delay %llu", (unsigned long long)settings->deallocation_delay);
    if (settings->original)
        fputs("; rules of the public tool", file);
    if (settings->shared)
        fprintf(file, "; %u %% shared by %u of %u", settings->share_ratio, receivers(settings),
                settings->threads);
    fprintf(file, "; seed %llu\n", (unsigned long long)settings->seed);
}

static void print_work(const struct outcome *outcome, FILE *file)
{
    const struct result *result = outcome->result;

    fprintf(file,
            "\n%.3f s, %.3f s of CPU; %llu objects, %llu bytes in %llu rounds\n"
            "%.1f MB/s, %.2f million objects/s\n",
            result->seconds, result->cpu_seconds, (unsigned long long)result->allocated_objects,
            (unsigned long long)result->allocated_bytes, (unsigned long long)result->rounds,
            outcome_throughput(outcome) / 1e6,
            result->seconds > 0 ? (double)result->allocated_objects / result->seconds / 1e6 : 0.0);
    if (result->shared_objects)
        fprintf(file, "%llu objects shared, %llu references received\n",
                (unsigned long long)result->shared_objects,
                (unsigned long long)result->received_objects);
    if (result->reads)
        fprintf(file, "%llu accesses, %llu of them writes\n", (unsigned long long)result->reads,
                (unsigned long long)result->writes);
}

static void print_operations(const struct result *result, FILE *file)
{
    fprintf(file, "\n%-15s %14s %10s %10s %10s %10s %10s %10s\n", "operation", "count", "mean, ns",
            TICKS_ARE_CYCLES ? "cycles" : "mean", "p50", "p99", "p99.9", "max");
    for (unsigned i = 0; i < OPERATIONS; i++) {
        const struct times *times = &result->times[i];

        if (!times->count)
            continue;
        fprintf(file, "%-15s %14llu", operation_names[i], (unsigned long long)times->count);
        if (times->timed)
            fprintf(file, " %10.1f %10.1f %10llu %10llu %10llu %10llu",
                    times_mean(times) / result->ticks_per_ns, times_mean(times),
                    (unsigned long long)times_quantile(times, 0.5),
                    (unsigned long long)times_quantile(times, 0.99),
                    (unsigned long long)times_quantile(times, 0.999),
                    (unsigned long long)times->largest);
        fputc('\n', file);
    }
}

static void print_megabytes(const char *name, double bytes, FILE *file)
{
    fprintf(file, "  %-24s %10.2f MB\n", name, bytes / 1e6);
}

static void print_steady(const struct outcome *outcome, const char *name, size_t offset, FILE *file)
{
    double mean;

    if (outcome_steady(outcome, offset, &mean))
        print_megabytes(name, mean, file);
}

static void print_memory(const struct outcome *outcome, FILE *file)
{
    const struct result *result = outcome->result;

    fprintf(file, "\nmemory\n");
    print_steady(outcome, "live, on average", offsetof(struct sample, live_bytes), file);
    if (outcome->run->model->held)
        print_steady(outcome, "held, on average", offsetof(struct sample, held_bytes), file);
    print_steady(outcome, "resident, on average", offsetof(struct sample, resident_bytes), file);
    print_megabytes("resident at the start", (double)result->base_resident_bytes, file);
    print_megabytes("resident, peak", (double)result->peak_resident_bytes, file);
    print_megabytes("resident, all freed", (double)result->drained_resident_bytes, file);
    print_megabytes("of these, acdc's books", (double)result->books_bytes, file);
}

static void print_bar(const char *name, uint64_t value, uint64_t largest, FILE *file)
{
    static const char bar[] = "########################################";

    _Static_assert(sizeof bar == BAR + 1, "the bar has its length");
    fprintf(file, "  %-10s %14llu %.*s\n", name, (unsigned long long)value,
            (int)(largest ? value * BAR / largest : 0), bar);
}

static void print_sizes(const struct outcome *outcome, FILE *file)
{
    const struct settings *settings = outcome->run->settings;
    const struct result *result = outcome->result;
    uint64_t largest = 0;
    char name[16];

    for (unsigned i = settings->min_size; i <= settings->max_size; i++)
        largest = result->class_objects[i] > largest ? result->class_objects[i] : largest;
    fprintf(file, "\nobjects by size\n");
    for (unsigned i = settings->min_size; i <= settings->max_size; i++) {
        snprintf(name, sizeof name, "2^%u", i);
        print_bar(name, result->class_objects[i], largest, file);
    }
}

/* Prints several livenesses in a line. */
static void print_livenesses(const struct outcome *outcome, FILE *file)
{
    const struct settings *settings = outcome->run->settings;
    uint64_t count = settings->max_liveness - settings->min_liveness + 1;
    uint64_t together = (count + 19) / 20, line[20] = {0}, largest = 0;
    char name[48];

    for (uint64_t i = 0; i < count; i++) {
        line[i / together] += outcome->result->liveness_objects[i];
        if (line[i / together] > largest)
            largest = line[i / together];
    }
    fprintf(file, "\nobjects by liveness\n");
    for (uint64_t i = 0; i * together < count; i++) {
        uint64_t from = settings->min_liveness + i * together;

        snprintf(name, sizeof name, together > 1 ? "from %llu" : "%llu", (unsigned long long)from);
        print_bar(name, line[i], largest, file);
    }
}

void report_text(const struct outcome *outcome, FILE *file)
{
    json_t *allocator = host_allocator();

    fprintf(file, "acdc: %s memory: %s; malloc is that of %s\n",
            model_text(outcome->run->settings->model), outcome->run->model->description,
            json_string_value(json_object_get(allocator, "name")));
    json_decref(allocator);
    if (outcome->run->settings->label)
        fprintf(file, "%s: ", outcome->run->settings->label);
    print_settings(outcome->run->settings, file);
    if (outcome->result->out_of_memory)
        fprintf(file, "\nOUT OF MEMORY after %llu bytes\n",
                (unsigned long long)outcome->result->allocated_bytes);
    print_work(outcome, file);
    print_operations(outcome->result, file);
    print_memory(outcome, file);
    print_sizes(outcome, file);
    print_livenesses(outcome, file);
}
