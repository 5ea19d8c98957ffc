/* SPDX-License-Identifier: MIT */
/*
 * Prints statistics: the summary, then all figures. A table for each structure serves both formats.
 * Lists of figures make the tables (slab/figures.h, process/figures.h, gp/user/domain.h).
 * Names are the only text from outside and are escaped. Fractions are printed as two integers,
 * because a locale may change the decimal point.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include <prudence/scm.h>
#include <prudence/stats.h>

#include "gp/user/domain.h"
#include "member_parts.h"
#include "observe/output.h"
#include "observe/stats_print.h"
#include "observe/summary.h"
#include "process/figures.h"
#include "process/stats.h"
#include "slab/figures.h"

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

/* A figure of a structure, by name. The tables below serve both formats. */
struct figure {
    const char *name;
    size_t offset;
};

#define CACHE_FIGURE(name)           {#name, offsetof(struct prudence_cache_stats, name)},
#define CACHE_COUNTER(name, meaning) CACHE_FIGURE(name)
static const struct figure cache_figures[] = {ALL_FIGURES(CACHE_COUNTER, CACHE_FIGURE)};

#define DOMAIN_FIGURE(name)           {#name, offsetof(struct prudence_domain_stats, name)},
#define DOMAIN_COUNTED(name, meaning) DOMAIN_FIGURE(name)
static const struct figure domain_figures[] = {
    DOMAIN_FIGURE(users) DOMAIN_FIGURE(readers) DOMAIN_FIGURE(readers_inside)
        DOMAIN_FIGURE(longest_inside_ns) DOMAIN_COUNTERS(DOMAIN_COUNTED)
            DOMAIN_FIGURE(bytes_called)};

#define READER_FIGURE(name)                                                                        \
    {                                                                                              \
#name, offsetof(struct prudence_reader_stats, name)                                        \
    }
static const struct figure reader_figures[] = {
    READER_FIGURE(thread),
    READER_FIGURE(nesting),
    READER_FIGURE(inside_ns),
    READER_FIGURE(grace_periods_begun),
};

#define SCM_FIGURE(name)                                                                           \
    {                                                                                              \
#name, offsetof(struct scm_mem_info, name)                                                 \
    }
static const struct figure scm_figures[] = {
    SCM_FIGURE(num_short_term), SCM_FIGURE(num_dates), SCM_FIGURE(num_expired),
    SCM_FIGURE(num_collected),  SCM_FIGURE(overhead),  SCM_FIGURE(threads),
};

#define TOTAL_FIGURE(name)               {#name, offsetof(struct prudence_stats, name)},
#define TOTAL_COUNT(name, word, meaning) TOTAL_FIGURE(name)
static const struct figure total_figures[] = {
    TOTAL_FIGURES(TOTAL_FIGURE, TOTAL_COUNT, TOTAL_FIGURE)};
_Static_assert(sizeof(size_t) == sizeof(uint64_t) && sizeof(long) == sizeof(uint64_t),
               "figures are read as 64-bit words");

/* Prints all figures of a structure; `margin` comes before each line of text. */
static void print_figures(struct output *output, bool json, const char *margin, const void *base,
                          const struct figure *figures, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t value;

        memcpy(&value, (const char *)base + figures[i].offset, sizeof value);
        if (json)
            output_print(output, ",\"%s\":%llu", figures[i].name, (unsigned long long)value);
        else
            output_print(output, "%s%-*s %llu\n", margin, 24 - (int)strlen(margin), figures[i].name,
                         (unsigned long long)value);
    }
}

static void print_word(struct output *output, bool json, const char *margin, const char *name,
                       const char *word)
{
    if (json)
        output_print(output, ",\"%s\":", name);
    else
        output_print(output, "%s%-*s ", margin, 24 - (int)strlen(margin), name);
    (json ? output_json_string : output_name)(output, word);
    output_text(output, json ? "" : "\n");
}

/* Begins an element of a list. */
static void stats_print_name(struct output *output, bool json, const char *what, const char *name)
{
    if (json) {
        output_text(output, "{\"name\":");
        output_json_string(output, name);
    } else {
        output_print(output, "\n%s ", what);
        output_name(output, name);
        output_text(output, "\n");
    }
}

/* Prints the protection of per-CPU caches. In text, the reason follows the word. */
static void stats_print_percpu(struct output *output, bool json, const struct prudence_stats *stats)
{
    char both[sizeof stats->percpu + sizeof stats->percpu_reason + 4];

    if (json) {
        print_word(output, json, "", "percpu", stats->percpu);
        print_word(output, json, "", "percpu_reason", stats->percpu_reason);
        return;
    }
    snprintf(both, sizeof both, stats->percpu_reason[0] ? "%s (%s)" : "%s", stats->percpu,
             stats->percpu_reason);
    print_word(output, json, "", "percpu", both);
}

static void stats_print_totals(struct output *output, bool json)
{
    struct prudence_stats stats;

    prudence_stats(&stats);
    stats_print_percpu(output, json, &stats);
    print_word(output, json, "", "readers_mode", stats.readers_mode);
    print_word(output, json, "", "membarrier", stats.membarrier);
    print_figures(output, json, "", &stats, total_figures, COUNT_OF(total_figures));
}

static void print_fragmentation(struct output *output, bool json, double value)
{
    uint64_t parts = (uint64_t)(value * 10000 + 0.5);

    output_print(output, json ? ",\"%s\":%llu.%04llu}" : "  %-22s %llu.%04llu\n",
                 "total_fragmentation", (unsigned long long)(parts / 10000),
                 (unsigned long long)(parts % 10000));
}

/* Holds no lock of the library while printing: another thread may hold the stream's lock while it
 * allocates. */
static void print_caches(struct output *output, bool json)
{
    struct prudence_walk walk = PRUDENCE_WALK_INIT;
    struct prudence_cache_stats stats;
    const char *separator = "";

    while (prudence_next_cache(&walk, &stats) == 0) {
        if (!stats.allocations)
            continue;
        output_text(output, json ? separator : "");
        stats_print_name(output, json, "cache", stats.name);
        print_figures(output, json, "  ", &stats, cache_figures, COUNT_OF(cache_figures));
        print_fragmentation(output, json, stats.total_fragmentation);
        separator = ",";
    }
}

static void print_domains(struct output *output, bool json)
{
    struct prudence_walk walk = PRUDENCE_WALK_INIT;
    struct prudence_domain_stats stats;
    const char *separator = "";

    while (prudence_next_domain(&walk, &stats) == 0) {
        output_text(output, json ? separator : "");
        stats_print_name(output, json, "domain", stats.name);
        print_word(output, json, "  ", "kind", stats.kind);
        print_figures(output, json, "  ", &stats, domain_figures, COUNT_OF(domain_figures));
        output_text(output, json ? "}" : "");
        separator = ",";
    }
}

/* Prints readers; as text only those inside, because there may be thousands outside. */
static void print_readers(struct output *output, bool json)
{
    struct prudence_walk walk = PRUDENCE_WALK_INIT;
    struct prudence_reader_stats stats;
    const char *separator = "";

    while (prudence_next_reader(&walk, &stats) == 0) {
        if (!json && !stats.nesting)
            continue;
        output_text(output, json ? separator : "");
        stats_print_name(output, json, "reader", stats.thread_name);
        print_word(output, json, "  ", "domain", stats.domain);
        print_figures(output, json, "  ", &stats, reader_figures, COUNT_OF(reader_figures));
        output_text(output, json ? "}" : "");
        separator = ",";
    }
}

static void print_short_term_memory(struct output *output, bool json)
{
    struct scm_mem_info memory = {.allocated = 0};
    struct scm_region_info regions = {.regions = 0};
    const struct statistics_part *const *at;

    for_each_entered(at, statistics_parts)
    {
        (*at)->memory(&memory);
        (*at)->regions(&regions);
    }
    if (!json && !memory.num_collected && !memory.num_dates)
        return;
    output_print(output,
                 json ? "{\"regions\":%lu,\"region_bytes\":%lu"
                      : "\nshort-term memory\n  regions                %lu\n"
                        "  region_bytes           %lu\n",
                 regions.regions, regions.bytes);
    print_figures(output, json, "  ", &memory, scm_figures, COUNT_OF(scm_figures));
    output_text(output, json ? "}" : "");
}

void stats_print(struct output *output, bool json)
{
    static const struct {
        const char *key;
        void (*print)(struct output *output, bool json);
    } parts[] = {
        {",\"caches_list\":[", print_caches},
        {"],\"domains_list\":[", print_domains},
        {"],\"readers_list\":[", print_readers},
        {"],\"short_term_memory\":", print_short_term_memory},
    };

    output_text(output, json ? "{" : "");
    summary_print(output, json);
    output_text(output, json ? "" : "\n");
    stats_print_totals(output, json);
    for (unsigned i = 0; i < COUNT_OF(parts); i++) {
        output_text(output, json ? parts[i].key : "");
        parts[i].print(output, json);
    }
    output_text(output, json ? "}\n" : "");
}

int prudence_stats_print(FILE *file, enum prudence_stats_format format)
{
    struct output output = {.file = file};
    int cancelable;

    if (!file || (unsigned)format > PRUDENCE_STATS_JSON)
        return EINVAL;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE,
                           &cancelable); /* printing is a cancellation point */
    stats_print(&output, format == PRUDENCE_STATS_JSON);
    pthread_setcancelstate(cancelable, NULL);
    return output_end(&output);
}
