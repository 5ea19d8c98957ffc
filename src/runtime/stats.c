/* SPDX-License-Identifier: MIT */
/*
 * Statistics: the functions of <prudence/stats.h>.
 *
 * The JSON is written by hand with fprintf: an allocator that prints its state must not allocate, as JSON libraries
 * do. Only names come from outside as text; they are escaped. Nothing is printed in a form that depends on the
 * locale: integers without grouping, and each fraction as two integers.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include <prudence/stats.h>

#include "gp/user/domain.h"
#include "heap/cache_life.h"
#include "heap/heap.h"
#include "rcu/call.h"
#include "runtime/stats.h"
#include "slab/all_caches.h"
#include "slab/budget.h"
#include "slab/latent_account.h"
#include "slab/stats.h"
#include "slab/wait.h"

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void fill_from_sums(struct prudence_cache_stats *stats, const struct cache_sums *sums)
{
    stats->allocations = sums->hits + sums->misses;
    stats->hits = sums->hits;
    stats->hits_after_merge = sums->hits_after_merge;
    stats->frees = sums->frees;
    stats->deferred_frees = sums->deferred;
    stats->refills = sums->refills;
    stats->refilled_objects = sums->refilled_objects;
    stats->flushes = sums->flushes;
    stats->flushed_objects = sums->flushed_objects;
    stats->object_cache_churns = smaller(sums->refills, sums->flushes);
    stats->grows = sums->grows;
    stats->shrinks = sums->shrinks;
    stats->slab_churns = smaller(sums->grows, sums->shrinks);
    stats->merges = sums->merges;
    stats->merged_objects = sums->merged_objects;
    stats->overflowed_objects = sums->overflowed;
    stats->premoved_slabs = sums->premoved_slabs;
    stats->objects_live = stats->allocations - sums->frees - sums->deferred;
    stats->objects_latent = sums->latent;
    stats->objects_cached = sums->cached;
    stats->object_cache_size = sums->object_cache_size;
}

static void fill(const struct prudence_cache *cache, struct prudence_cache_stats *stats)
{
    struct cache_sums sums;

    cache_sum(cache, &sums);
    *stats = (struct prudence_cache_stats){.object_size = cache->object_size};
    memcpy(stats->name, cache->name, sizeof stats->name);
    fill_from_sums(stats, &sums);
    stats->object_stride = cache->stride;
    stats->slab_size = cache->slab_bytes;
    stats->preflushed_objects = load_relaxed(&cache->preflushed);
    stats->busy_bypasses = load_relaxed(&cache->bypasses);
    stats->remote_drains = load_relaxed(&cache->remote_drains);
    stats->pressure_waits = load_relaxed(&cache->pressure_waits);
    stats->slabs_now = load_relaxed(&cache->slabs_now);
    stats->slabs_peak = load_relaxed(&cache->slabs_peak);
    stats->bytes_latent = sums.latent_bytes;
    stats->bytes_cached = sums.cached * cache->stride;
    if (stats->objects_live && cache->percpu)
        stats->total_fragmentation = (double)stats->slabs_now * (double)stats->slab_size /
                                     ((double)stats->objects_live * (double)stats->object_size);
}

int prudence_cache_stats_sized(struct prudence_cache *cache, struct prudence_cache_stats *stats,
                               size_t size)
{
    struct prudence_cache_stats all;

    if (!cache || !stats)
        return EINVAL;
    cache_require(cache, "prudence_cache_stats");
    fill(cache, &all);
    give_sized(stats, size, &all, sizeof all);
    return 0;
}

static void add_cache(struct prudence_stats *total, const struct prudence_cache *cache)
{
    struct prudence_cache_stats stats;

    fill(cache, &stats);
    total->caches++;
    total->allocations += stats.allocations;
    total->hits += stats.hits;
    total->hits_after_merge += stats.hits_after_merge;
    total->frees += stats.frees;
    total->deferred_frees += stats.deferred_frees;
    total->object_cache_churns += stats.object_cache_churns;
    total->slab_churns += stats.slab_churns;
    total->merges += stats.merges;
    total->slabs_now += stats.slabs_now;
    total->objects_live += stats.objects_live;
    total->objects_latent += stats.objects_latent;
    total->bytes_latent += stats.bytes_latent;
    total->bytes_cached += stats.bytes_cached;
}

static void add_memory(struct prudence_stats *total)
{
    struct os_pages_stats pages;

    os_pages_stats(&pages);
    total->slab_bytes = pages.used;
    total->slab_bytes_peak = pages.used_peak;
    total->retained_bytes = pages.retained;
    total->metadata_bytes = pages.metadata;
    total->bytes_latent_peak = latent_bytes_peak();
    total->limit = os_pages_limit();
    total->latent_limit = load_relaxed(&slab_latent_limit);
    total->cache_per_cpu = load_relaxed(&slab_cache_per_cpu);
    total->cache_total = load_relaxed(&slab_cache_total);
    total->pressure_waits = load_relaxed(&wait_counts.pressure_waits);
    total->throttle_waits = load_relaxed(&wait_counts.waits);
    total->throttle_expiries = load_relaxed(&wait_counts.expiries);
    total->latent_overruns = load_relaxed(&latent_overruns);
    total->call_bytes = callback_bytes(callback_queue_of(&prudence_default));
    total->call_waits = load_relaxed(&call_counts.waits);
    total->call_expiries = load_relaxed(&call_counts.expiries);
    total->call_overruns = load_relaxed(&call_counts.overruns);
}

/* Into a field of 16 bytes, zeroed before. */
static void set_text(char field[16], const char *text)
{
    snprintf(field, 16, "%s", text);
}

static void add_grace_periods(struct prudence_stats *total)
{
    struct prudence_domain *domain = &prudence_default;

    total->grace_periods = load_relaxed(&domain->grace_periods);
    total->grace_period_scans = load_relaxed(&domain->scans);
    total->membarriers = load_relaxed(&domain->membarriers);
    total->mode_switches = load_relaxed(&domain->mode_switches);
    total->stalls = load_relaxed(&domain->stalls);
    total->readers = readers_reap(domain, true, READERS_A_FEW);
    set_text(total->percpu, os_percpu_rseq ? "rseq" : "lock");
    set_text(total->readers_mode, load_relaxed(&domain->shared.fenced) ? "fenced" : "fence-free");
    set_text(total->membarrier, os_membarrier_available() ? "available" : "missing");
}

int prudence_stats_sized(struct prudence_stats *stats, size_t size)
{
    struct prudence_stats all = {.caches = 0};
    struct list *item;

    if (!stats)
        return EINVAL;
    process_start();
    os_lock_take(&slab_caches_lock);
    list_for_each(item, &slab_caches)
    {
        add_cache(&all, list_entry(item, struct prudence_cache, link));
    }
    os_lock_release(&slab_caches_lock);
    add_memory(&all);
    add_grace_periods(&all);
    give_sized(stats, size, &all, sizeof all);
    return 0;
}

/* --------------------------------------------------------------------------------- printing */

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

/* The figures of each structure, by name; one table serves both formats. */
struct figure {
    const char *name;
    size_t offset;
};

#define CACHE_FIGURE(name)                                                                         \
    {                                                                                              \
#name, offsetof(struct prudence_cache_stats, name)                                         \
    }
static const struct figure cache_figures[] = {
    CACHE_FIGURE(object_size),
    CACHE_FIGURE(object_stride),
    CACHE_FIGURE(slab_size),
    CACHE_FIGURE(object_cache_size),
    CACHE_FIGURE(allocations),
    CACHE_FIGURE(hits),
    CACHE_FIGURE(hits_after_merge),
    CACHE_FIGURE(frees),
    CACHE_FIGURE(deferred_frees),
    CACHE_FIGURE(refills),
    CACHE_FIGURE(refilled_objects),
    CACHE_FIGURE(flushes),
    CACHE_FIGURE(flushed_objects),
    CACHE_FIGURE(object_cache_churns),
    CACHE_FIGURE(grows),
    CACHE_FIGURE(shrinks),
    CACHE_FIGURE(slab_churns),
    CACHE_FIGURE(merges),
    CACHE_FIGURE(merged_objects),
    CACHE_FIGURE(preflushed_objects),
    CACHE_FIGURE(overflowed_objects),
    CACHE_FIGURE(premoved_slabs),
    CACHE_FIGURE(busy_bypasses),
    CACHE_FIGURE(remote_drains),
    CACHE_FIGURE(pressure_waits),
    CACHE_FIGURE(slabs_now),
    CACHE_FIGURE(slabs_peak),
    CACHE_FIGURE(objects_live),
    CACHE_FIGURE(objects_latent),
    CACHE_FIGURE(objects_cached),
    CACHE_FIGURE(bytes_latent),
    CACHE_FIGURE(bytes_cached),
};

#define TOTAL_FIGURE(name)                                                                         \
    {                                                                                              \
#name, offsetof(struct prudence_stats, name)                                               \
    }
static const struct figure total_figures[] = {
    TOTAL_FIGURE(caches),
    TOTAL_FIGURE(allocations),
    TOTAL_FIGURE(hits),
    TOTAL_FIGURE(hits_after_merge),
    TOTAL_FIGURE(frees),
    TOTAL_FIGURE(deferred_frees),
    TOTAL_FIGURE(object_cache_churns),
    TOTAL_FIGURE(slab_churns),
    TOTAL_FIGURE(merges),
    TOTAL_FIGURE(slabs_now),
    TOTAL_FIGURE(slab_bytes),
    TOTAL_FIGURE(slab_bytes_peak),
    TOTAL_FIGURE(retained_bytes),
    TOTAL_FIGURE(metadata_bytes),
    TOTAL_FIGURE(objects_live),
    TOTAL_FIGURE(objects_latent),
    TOTAL_FIGURE(bytes_latent),
    TOTAL_FIGURE(bytes_latent_peak),
    TOTAL_FIGURE(limit),
    TOTAL_FIGURE(latent_limit),
    TOTAL_FIGURE(pressure_waits),
    TOTAL_FIGURE(throttle_waits),
    TOTAL_FIGURE(throttle_expiries),
    TOTAL_FIGURE(latent_overruns),
    TOTAL_FIGURE(call_bytes),
    TOTAL_FIGURE(call_waits),
    TOTAL_FIGURE(call_expiries),
    TOTAL_FIGURE(call_overruns),
    TOTAL_FIGURE(grace_periods),
    TOTAL_FIGURE(grace_period_scans),
    TOTAL_FIGURE(membarriers),
    TOTAL_FIGURE(mode_switches),
    TOTAL_FIGURE(stalls),
    TOTAL_FIGURE(readers),
    TOTAL_FIGURE(bytes_cached),
    TOTAL_FIGURE(cache_per_cpu),
    TOTAL_FIGURE(cache_total),
};
_Static_assert(sizeof(size_t) == sizeof(uint64_t), "figures are read as 64-bit words");

static void print_figures(FILE *file, const void *base, const struct figure *figures, size_t count,
                          const char *format)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t value;

        memcpy(&value, (const char *)base + figures[i].offset, sizeof value);
        fprintf(file, format, figures[i].name, (unsigned long long)value);
    }
}

/* The bytes of the UTF-8 character that `text` begins with; 0: it begins with none. Neither overlong
 * forms nor surrogates are characters (RFC 3629). */
static unsigned utf8_bytes(const unsigned char *text)
{
    static const struct {
        unsigned char first_least, first_most, second_least, second_most, bytes;
    } forms[] = {
        {0x00, 0x7f, 0x00, 0xff, 1}, {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    unsigned form = 0, bytes = 1;

    while (form < COUNT_OF(forms) && text[0] > forms[form].first_most)
        form++;
    if (form == COUNT_OF(forms) || text[0] < forms[form].first_least)
        return 0;
    if (forms[form].bytes == 1)
        return 1;
    if (text[1] < forms[form].second_least || text[1] > forms[form].second_most)
        return 0;
    while (++bytes < forms[form].bytes)
        if ((text[bytes] & 0xc0) != 0x80)
            return 0;
    return bytes;
}

static void print_json_string(FILE *file, const char *name)
{
    const unsigned char *text = (const unsigned char *)name;

    fputc('"', file);
    while (*text) {
        unsigned bytes = utf8_bytes(text);

        if (*text == '"' || *text == '\\')
            fprintf(file, "\\%c", *text);
        else if (*text < 0x20 || *text == 0x7f)
            fprintf(file, "\\u%04x", *text);
        else if (bytes)
            fwrite(text, 1, bytes, file);
        else
            fputs("\\ufffd", file);
        text += bytes ? bytes : 1;
    }
    fputc('"', file);
}

/* "name" and a value with four decimals, whatever the locale writes between them and the integer. */
static void print_fraction(FILE *file, const char *format, const char *name, double value)
{
    uint64_t parts = (uint64_t)(value * 10000 + 0.5);

    fprintf(file, format, name, (unsigned long long)(parts / 10000),
            (unsigned long long)(parts % 10000));
}

static void print_totals(FILE *file, const struct prudence_stats *stats, bool json)
{
    const char *const text[] = {"percpu",     stats->percpu,    "readers_mode", stats->readers_mode,
                                "membarrier", stats->membarrier};

    for (unsigned i = 0; i < COUNT_OF(text); i += 2)
        fprintf(file, json ? "\"%s\":\"%s\"," : "%-24s %s\n", text[i], text[i + 1]);
    print_figures(file, stats, total_figures, COUNT_OF(total_figures),
                  json ? "\"%s\":%llu," : "%-24s %llu\n");
}

static void print_cache(FILE *file, const struct prudence_cache_stats *stats, bool json)
{
    if (json) {
        fputs("{\"name\":", file);
        print_json_string(file, stats->name);
        fputc(',', file);
        print_figures(file, stats, cache_figures, COUNT_OF(cache_figures), "\"%s\":%llu,");
        print_fraction(file, "\"%s\":%llu.%04llu}", "total_fragmentation",
                       stats->total_fragmentation);
        return;
    }
    fprintf(file, "\ncache %s\n", stats->name);
    print_figures(file, stats, cache_figures, COUNT_OF(cache_figures), "  %-22s %llu\n");
    print_fraction(file, "  %-22s %llu.%04llu\n", "total_fragmentation",
                   stats->total_fragmentation);
}

bool stats_of_nth_cache(unsigned place, struct prudence_cache_stats *stats)
{
    struct list *item;
    bool found = false;

    os_lock_take(&slab_caches_lock);
    list_for_each(item, &slab_caches)
    {
        if (place-- == 0) {
            fill(list_entry(item, struct prudence_cache, link), stats);
            found = true;
            break;
        }
    }
    os_lock_release(&slab_caches_lock);
    return found;
}

/* No lock of the library is held while the stream's is taken: another thread may hold that one while it allocates. */
static void print_caches(FILE *file, bool json)
{
    const char *separator = "";
    struct prudence_cache_stats stats;

    for (unsigned place = 0; stats_of_nth_cache(place, &stats); place++) {
        if (!stats.allocations)
            continue;
        fputs(json ? separator : "", file);
        print_cache(file, &stats, json);
        separator = ",";
    }
}

int prudence_stats_print(FILE *file, enum prudence_stats_format format)
{
    bool json = format == PRUDENCE_STATS_JSON;
    struct prudence_stats stats;
    int cancelable;

    if (!file || (unsigned)format > PRUDENCE_STATS_JSON)
        return EINVAL;
    prudence_stats(&stats);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE,
                           &cancelable); /* printing is a cancellation point */
    fputs(json ? "{" : "", file);
    print_totals(file, &stats, json);
    fputs(json ? "\"caches_list\":[" : "", file);
    print_caches(file, json);
    fputs(json ? "]}\n" : "", file);
    pthread_setcancelstate(cancelable, NULL);
    return ferror(file) ? EIO : 0;
}
