/* SPDX-License-Identifier: MIT */
/*
 * The list of the process's figures, as slab/figures.h is of a cache's. prudence_stats() gives
 * them, prudence_stats_print() prints them, and watchers read them.
 *
 * A new counter is a row here, a member at the end of struct prudence_stats in <prudence/stats.h>,
 * and the line that counts.
 *
 *   SUM(name)                  sum of the caches' figures of this name
 *   COUNT(name, word, text)    a word of 64 bits that counts, atomic; watchers read the word
 *   OTHER(name)                process/stats.c finds the figure
 */
#ifndef PROCESS_FIGURES_H
#define PROCESS_FIGURES_H

#define TOTAL_FIGURES(SUM, COUNT, OTHER)                                                           \
    OTHER(caches)                                                                                  \
    SUM(allocations)                                                                               \
    SUM(hits)                                                                                      \
    SUM(hits_after_merge)                                                                          \
    SUM(frees)                                                                                     \
    SUM(deferred_frees)                                                                            \
    SUM(object_cache_churns)                                                                       \
    SUM(slab_churns)                                                                               \
    SUM(merges)                                                                                    \
    SUM(slabs_now)                                                                                 \
    OTHER(slab_bytes)                                                                              \
    OTHER(slab_bytes_peak)                                                                         \
    OTHER(retained_bytes)                                                                          \
    OTHER(metadata_bytes)                                                                          \
    SUM(objects_live)                                                                              \
    SUM(objects_latent)                                                                            \
    SUM(bytes_latent)                                                                              \
    OTHER(bytes_latent_peak)                                                                       \
    OTHER(limit)                                                                                   \
    OTHER(latent_limit)                                                                            \
    COUNT(pressure_waits, wait_counts.pressure_waits,                                              \
          "Allocations that waited for a grace period instead of failing.")                        \
    COUNT(throttle_waits, wait_counts.waits, "Deferrals that waited because of latent_limit.")     \
    COUNT(throttle_expiries, wait_counts.expiries, "Waits that were given up after wait_max.")     \
    COUNT(latent_overruns, limit_overruns, "Times that latent memory passed its limit.")           \
    OTHER(call_bytes)                                                                              \
    COUNT(call_waits, call_counts.waits, "Callbacks whose caller was held back.")                  \
    COUNT(call_expiries, call_counts.expiries, "Held back callers that met wait_max.")             \
    COUNT(call_overruns, call_counts.overruns,                                                     \
          "Callbacks past call_limit whose caller could not be held back.")                        \
    OTHER(grace_periods)                                                                           \
    OTHER(grace_period_scans)                                                                      \
    OTHER(membarriers)                                                                             \
    OTHER(mode_switches)                                                                           \
    OTHER(stalls)                                                                                  \
    OTHER(readers)                                                                                 \
    SUM(bytes_cached)                                                                              \
    OTHER(cache_per_cpu)                                                                           \
    OTHER(cache_total)                                                                             \
    OTHER(doubles_passed_over)                                                                     \
    OTHER(latent_ceiling)                                                                          \
    OTHER(latent_limit_in_force)                                                                   \
    COUNT(latent_rises, limit_rises,                                                               \
          "Times that the limit in force rose because a reader waited for a CPU.")                 \
    OTHER(bytes_named)

#define NO_SUM(name)
#define NO_COUNT(name, word, meaning)
#define NO_OTHER(name)

#endif /* PROCESS_FIGURES_H */
