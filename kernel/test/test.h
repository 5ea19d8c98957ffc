/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * prudence_test.ko. A test is a function; EXPECT records a failure and continues. Each test has a
 * cache of its own. ALL_TESTS lists them in the order in which they run.
 */
#ifndef PRUDENCE_TEST_H
#define PRUDENCE_TEST_H

#include <linux/kernel.h>
#include <linux/prudence.h>

#ifdef CONFIG_KASAN_GENERIC
#define KASAN_TESTS(TEST) TEST(kasan_knows_deferred_objects)
#else
#define KASAN_TESTS(TEST)
#endif

#ifdef CONFIG_DEBUG_ATOMIC_SLEEP
#define SLEEP_TESTS(TEST) TEST(allocation_that_may_sleep_is_reported_where_sleeping_is_not_allowed)
#else
#define SLEEP_TESTS(TEST)
#endif

#define ALL_TESTS(TEST)                                                                            \
    TEST(freed_object_comes_back_first)                                                            \
    TEST(deferred_memory_is_not_written_or_reused_under_a_reader)                                  \
    TEST(deferred_objects_share_grace_periods)                                                     \
    TEST(deferred_objects_come_back_after_one_grace_period)                                        \
    TEST(grace_period_is_asked_for)                                                                \
    TEST(grace_period_is_not_lost_during_an_expedited_one)                                         \
    TEST(nothing_comes_back_in_the_section_it_was_deferred_in)                                     \
    TEST(refill_leaves_room_for_latent_objects)                                                    \
    TEST(refill_brings_half_with_many_latent_objects)                                            \
    TEST(flush_grows_with_latent_objects)                                                          \
    TEST(latent_objects_are_preflushed_in_idle_time)                                               \
    TEST(preflushing_does_not_wait_for_the_cpu_it_served_last)                                     \
    TEST(preflush_merges_what_is_safe)                                                             \
    TEST(object_cache_grows_with_demand)                                                           \
    TEST(full_latent_cache_overflows_into_latent_slabs)                                            \
    TEST(overflowing_objects_wait_for_their_own_grace_period)                                      \
    TEST(latent_objects_do_not_count_when_a_slab_is_chosen)                                        \
    TEST(shrink_never_takes_a_latent_slab)                                                         \
    TEST(allocation_waits_for_latent_memory_before_it_fails)                                       \
    TEST(allocation_that_is_not_to_be_retried_does_not_wait)                                       \
    TEST(allocation_past_the_latent_limit_waits_before_its_cache_grows)                            \
    TEST(latent_objects_of_a_quiet_cache_are_merged)                                               \
    TEST(deferred_blocks_are_given_back_unasked)                                                   \
    TEST(latent_memory_beyond_its_budget_is_expedited)                                             \
    TEST(a_busy_cpu_is_not_drained_for_ever)                                                       \
    TEST(decay_interrupts_no_other_cpu)                                                            \
    TEST(decay_goes_on_when_cpus_go)                                                               \
    TEST(shrinking_gives_arrays_back)                                                              \
    TEST(isolated_cpus_are_left_alone)                                                             \
    TEST(shrinker_gives_what_is_asked_for)                                                         \
    TEST(live_blocks_do_not_count_as_free)                                                         \
    TEST(larger_slabs_cost_nobody_anything)                                                        \
    TEST(blocks_are_zeroed_by_the_page_allocator_only)                                             \
    TEST(objects_freed_on_another_cpu_go_home)                                                     \
    TEST(figures_are_exact)                                                                        \
    TEST(objects_are_replaced_under_their_readers)                                                 \
    TEST(every_size_is_aligned_and_apart)                                                          \
    TEST(small_alignments_are_raised)                                                              \
    TEST(zeroed_memory_is_zero_after_any_owner)                                                    \
    TEST(plain_objects_are_zero_if_the_kernel_wants_that)                                          \
    TEST(type_safe_memory_keeps_its_contents)                                                      \
    TEST(constructed_objects_keep_their_contents)                                                  \
    TEST(type_safe_constructed_objects_keep_their_contents)                                        \
    TEST(allocation_that_must_not_fail_does_not)                                                   \
    TEST(zones_are_refused)                                                                        \
    TEST(hard_interrupts_may_do_everything)                                                        \
    TEST(interrupts_find_nothing_half_done)                                                        \
    TEST(pages_that_an_interrupt_frees_are_given_back)                                             \
    SLEEP_TESTS(TEST)                                                                              \
    KASAN_TESTS(TEST)                                                                              \
    TEST(dead_cpu_leaves_nothing_behind)                                                           \
    TEST(dying_cpu_keeps_no_request_to_itself)                                                     \
    TEST(coming_cpu_waits_for_threads_that_found_it_dead)                                          \
    TEST(destroy_waits_for_its_own_deferred_objects)                                               \
    TEST(destroy_waits_for_nobody_else)                                                            \
    TEST(invalid_caches_are_refused)                                                               \
    TEST(objects_of_others_are_told_apart)                                                         \
    TEST(pointers_that_are_no_objects_are_refused)                                                 \
    TEST(replacing_defers_and_allocates)                                                           \
    TEST(double_deferral_is_reported_and_all_goes_on)

#define TEST_DECLARED(name) void name(void);
ALL_TESTS(TEST_DECLARED)

extern int test_failures; /* of the running test */

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition) && ++test_failures <= 5)                                                  \
            pr_err("# %s:%d: not true: %s\n", __func__, __LINE__, #condition);                     \
    } while (0)

#define EXPECT_EQ(left, right)                                                                     \
    do {                                                                                           \
        s64 l_ = (s64)(left), r_ = (s64)(right);                                                   \
                                                                                                   \
        if (l_ != r_ && ++test_failures <= 5)                                                      \
            pr_err("# %s:%d: %s is %lld, not %lld (%s)\n", __func__, __LINE__, #left, l_, r_,      \
                   #right);                                                                        \
    } while (0)

#define SIZE 64
#define MANY 2000
#define RING 8192

/* RING + MANY entries for the running test. */
extern void **objects;

struct prudence_cache *cache_of(size_t size);
struct prudence_cache_stats stats_of(struct prudence_cache *cache);
struct prudence_stats totals(void);

/* Returns one of a cache's statistics without placing all of them on the caller's stack. */
u64 stat_at(struct prudence_cache *cache, size_t offset);
#define STAT(cache, member) stat_at(cache, offsetof(struct prudence_cache_stats, member))

/* fill() allocates the first `count` of `objects`, writes SIZE bytes to each, and returns the
 * number allocated. defer() defers them. */
unsigned int fill(struct prudence_cache *cache, unsigned int count);
void defer(struct prudence_cache *cache, unsigned int count);
bool is_untouched(const u8 *object);

/* A cache whose objects record whether they are in use. marked_end() checks that no object was
 * handed out twice and none is missing. */
extern struct prudence_cache *marked;
void marked_begin(void);
u32 *marked_alloc(gfp_t gfp);
void marked_free(u32 *object, bool deferred);
void marked_end(void);

/* A reader enters on another CPU than the caller's and stays until asked to leave. reader_leaves()
 * waits for a grace period. */
void reader_enters(void);
void reader_leaves(void);

/* Lets the reader leave without waiting for a grace period. reader_leaves() must still follow. */
void reader_steps_out(void);

/* Relieves the reader. The next one enters on a third CPU before the previous one leaves, without
 * waiting. Needs three CPUs and a caller that stays on one. */
void next_reader_enters(void);
void reader_before_leaves(void);

/* Keeps each CPU busy for two ticks, one after the other. */
void wake_all_cpus(void);

/* Allocates 300 objects of a cache and frees or defers them, in an interrupt or by work_on_cpu. */
void use_in_interrupt(void *cache);
long use_in_task(void *cache);

#endif /* PRUDENCE_TEST_H */
