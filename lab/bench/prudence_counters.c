/* SPDX-License-Identifier: MIT */
#include "prudence_counters.h"

#include <stdio.h>
#include <stdlib.h>

#include <prudence/prudence.h>
#include <prudence/stats.h>

struct prudence_cache *prudence_counted_cache(size_t object_size, struct prudence_domain *domain)
{
    struct prudence_cache_attr attr = {.size = sizeof attr, .domain = domain};
    struct prudence_cache *cache = prudence_cache_create("bench", object_size, &attr);

    if (!cache) {
        perror("prudence-bench: prudence_cache_create");
        exit(EXIT_FAILURE);
    }
    return cache;
}

uint64_t prudence_latent(uint64_t retired)
{
    struct prudence_stats stats;

    (void)retired;
    return prudence_stats(&stats) ? 0 : stats.objects_latent;
}

static void set_number(json_t *object, const char *key, uint64_t value)
{
    json_object_set_new(object, key, json_integer((json_int_t)value));
}

#define SET(field) set_number(json, #field, stats.field)

static json_t *cache_counters(struct prudence_cache *cache)
{
    struct prudence_cache_stats stats;
    json_t *json = json_object();

    if (prudence_cache_stats(cache, &stats))
        return json;
    SET(object_stride), SET(slab_size), SET(object_cache_size);
    SET(allocations), SET(hits), SET(hits_after_merge), SET(frees), SET(deferred_frees);
    SET(refills), SET(refilled_objects), SET(flushes), SET(flushed_objects);
    SET(object_cache_churns), SET(grows), SET(shrinks), SET(slab_churns);
    SET(merges), SET(merged_objects), SET(preflushed_objects), SET(overflowed_objects);
    SET(premoved_slabs), SET(busy_bypasses), SET(remote_drains), SET(pressure_waits);
    SET(slabs_now), SET(slabs_peak), SET(objects_live), SET(objects_latent);
    SET(objects_cached), SET(bytes_latent);
    json_object_set_new(json, "total_fragmentation", json_real(stats.total_fragmentation));
    return json;
}

static json_t *total_counters(const struct prudence_stats *totals)
{
    struct prudence_stats stats = *totals;
    json_t *json = json_object();

    SET(allocations), SET(hits), SET(hits_after_merge), SET(frees), SET(deferred_frees);
    SET(object_cache_churns), SET(slab_churns), SET(merges), SET(slabs_now), SET(slab_bytes);
    SET(slab_bytes_peak), SET(retained_bytes), SET(metadata_bytes), SET(objects_live);
    SET(objects_latent), SET(bytes_latent), SET(bytes_latent_peak), SET(limit);
    SET(latent_limit), SET(pressure_waits), SET(throttle_waits), SET(throttle_expiries);
    SET(latent_overruns), SET(latent_ceiling), SET(latent_rises);
    SET(grace_periods), SET(grace_period_scans), SET(membarriers), SET(mode_switches);
    SET(stalls), SET(readers);
    return json;
}

void prudence_report_totals(struct run *run, json_t *result)
{
    struct prudence_stats stats;

    (void)run;
    if (prudence_stats(&stats))
        return;
    json_object_set_new(result, "totals", total_counters(&stats));
    json_object_set_new(result, "reader_mode", json_string(stats.readers_mode));
    json_object_set_new(result, "percpu", json_string(stats.percpu));
    json_object_set_new(result, "membarrier", json_string(stats.membarrier));
    set_number(result, "latent_peak_bytes", stats.bytes_latent_peak);
}

void prudence_report(struct run *run, json_t *result)
{
    prudence_report_totals(run, result);
    json_object_set_new(result, "counters", cache_counters(run->pool.cache));
}
