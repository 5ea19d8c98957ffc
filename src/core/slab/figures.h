/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The list of a cache's figures, in the order in which they are printed. From this list come the
 * members that count, their sums, prudence_cache_stats() and prudence_stats_print(), the kernel
 * module's structure and debugfs, and the description that gdb, prudence-top, prudence-stat and
 * Prometheus read (observe/watch_table.c).
 *
 * A new counter is a row here, a member at the end of struct prudence_cache_stats in
 * <prudence/stats.h>, and the line that counts. The word says where the counter is:
 *
 *   CPU     in struct cpu_counts; changed by the owner of the CPU's caches (count_add)
 *   NODE    in struct node_counts; changed under the node's lock
 *   BOTH    in both; the figure is the sum
 *   CACHE   in struct prudence_cache; changed by add_relaxed
 *   OTHER   is no counter; stats.c computes the figure
 *
 * A counter's text is the metric's help, of at most 256 characters.
 *
 * Members are in the order of the rows. A node's counters from overflowed_objects on share a cache
 * line with members that the same operations write (tests/core/heap/test_shared_lines.c).
 */
#ifndef SLAB_FIGURES_H
#define SLAB_FIGURES_H

#define FIGURES_OF_CACHE(CPU, NODE, BOTH, CACHE, OTHER)                                            \
    OTHER(object_size)                                                                             \
    OTHER(object_stride)                                                                           \
    OTHER(slab_size)                                                                               \
    OTHER(object_cache_size)                                                                       \
    OTHER(allocations)                                                                             \
    OTHER(hits)                                                                                    \
    CPU(hits_after_merge, "Hits that a merge at the miss made possible.")                          \
    OTHER(frees)                                                                                   \
    OTHER(deferred_frees)                                                                          \
    CPU(refills, "Times that an object cache was filled from slabs.")                              \
    CPU(refilled_objects, "Objects that refills took from slabs.")                                 \
    OTHER(object_cache_churns)                                                                     \
    NODE(grows, "Slabs that the page source gave.")                                                \
    NODE(shrinks, "Slabs that went back to the page source.")                                      \
    OTHER(slab_churns)                                                                             \
    BOTH(merges, "Times that safe objects were merged.")                                           \
    BOTH(merged_objects, "Objects that were merged.")                                              \
    CACHE(preflushed_objects, "Latent objects that idle time moved to their slabs.")               \
    NODE(premoved_slabs, "Slabs that changed lists because of objects that will be free.")         \
    NODE(overflowed_objects, "Latent objects that a full latent cache moved to their slabs.")      \
    NODE(flushes, "Times that an object cache was emptied into slabs.")                            \
    NODE(flushed_objects, "Objects that flushes put into slabs.")                                  \
    CACHE(busy_bypasses, "Operations past the CPU caches: another owner, or none there yet.")      \
    CACHE(remote_drains, "Quiet CPUs whose caches another CPU drained.")                           \
    CACHE(pressure_waits, "Allocations that waited for a grace period instead of failing.")        \
    OTHER(slabs_now)                                                                               \
    OTHER(slabs_peak)                                                                              \
    OTHER(objects_live)                                                                            \
    OTHER(objects_latent)                                                                          \
    OTHER(objects_cached)                                                                          \
    OTHER(bytes_latent)                                                                            \
    OTHER(bytes_cached)

#define NO_COUNTER(name, meaning)
#define NO_FIGURE(name)

/* Parts of the list. The argument is a macro of a counter's name and text; OTHER one of a name. */
#define CPU_COUNTERS(COUNTER)  FIGURES_OF_CACHE(COUNTER, NO_COUNTER, COUNTER, NO_COUNTER, NO_FIGURE)
#define NODE_COUNTERS(COUNTER) FIGURES_OF_CACHE(NO_COUNTER, COUNTER, COUNTER, NO_COUNTER, NO_FIGURE)
#define CACHE_COUNTERS(COUNTER)                                                                    \
    FIGURES_OF_CACHE(NO_COUNTER, NO_COUNTER, NO_COUNTER, COUNTER, NO_FIGURE)
#define ALL_COUNTERS(COUNTER)       FIGURES_OF_CACHE(COUNTER, COUNTER, COUNTER, COUNTER, NO_FIGURE)
#define ALL_FIGURES(COUNTER, OTHER) FIGURES_OF_CACHE(COUNTER, COUNTER, COUNTER, COUNTER, OTHER)

/* Members of structures. */
#define COUNTER_FIELD(name, meaning) uint64_t name;
#define FIGURE_FIELD(name)           uint64_t name;

#endif /* SLAB_FIGURES_H */
