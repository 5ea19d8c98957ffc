/* SPDX-License-Identifier: MIT */
/*
 * Large blocks consist of whole pages, and are found and counted like other objects. They go back
 * at once when freed, or a grace period later when deferred, under latent_limit.
 */
#include "support/gp_reader.h"
#include "support/slab_test.h"
#include "support/stats.h"

static uint64_t used(void)
{
    struct os_pages_stats stats;

    os_pages_stats(&stats);
    return stats.used;
}

TEST(freed_ones_go_back_at_once)
{
    static const size_t sizes[] = {131073, 140960, 200000, 1 << 20, (2 << 20) + 1, 9 << 20};

    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        uint64_t before = used();
        char *block = prudence_malloc(sizes[i]);

        assert_non_null(block);
        assert_int_equal(used() - before, round_up(sizes[i], os_page_size));
        assert_int_equal(prudence_usable_size(block), round_up(sizes[i], os_page_size));
        memset(block, 1, sizes[i]);
        prudence_free(block);
        assert_int_equal(used(), before);
    }
}

/* Blocks have all sizes, so the latent bytes of the cache of large blocks are their sum. */
TEST(latent_bytes_are_those_of_the_blocks)
{
    static const size_t sizes[] = {140960, 200000, 1 << 20};
    struct prudence_cache *large = NULL;
    uint64_t expected = 0;

    prudence_read_lock();
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        void *block = prudence_malloc(sizes[i]);

        assert_non_null(block);
        large = slab_of(block)->cache;
        prudence_free_deferred(block);
        expected += round_up(sizes[i], os_page_size);
        assert_int_equal(stats_of(large).objects_latent, i + 1);
        assert_int_equal(stats_of(large).bytes_latent, expected);
    }
    prudence_read_unlock();
    prudence_synchronize();
    prudence_trim();
    assert_int_equal(stats_of(large).bytes_latent, 0);
}

TEST(deferred_ones_stay_for_their_readers)
{
    uint64_t before = used();
    unsigned char *block = prudence_malloc(200000), *again;
    struct prudence_stats stats;

    memset(block, 0x5a, 200000);
    prudence_read_lock();
    prudence_free_deferred(block);
    again = prudence_malloc(200000);
    assert_ptr_not_equal(again, block);
    prudence_free(again);
    prudence_trim();
    for (unsigned i = 0; i < 200000; i++)
        assert_int_equal(block[i], 0x5a);
    prudence_stats(&stats);
    assert_true(stats.bytes_latent >= 200000);
    prudence_read_unlock();
    prudence_synchronize();
    prudence_trim();
    assert_true(used() <= before);
    prudence_stats(&stats);
    assert_int_equal(stats.objects_latent, 0);
    assert_int_equal(stats.bytes_latent, 0);
}

/* Each deferral visits the node, so a storm of deferrals stays flat without other help. */
TEST(a_storm_of_deferred_ones_stays_flat)
{
    uint64_t before = used(), most = 0;

    assert_int_equal(prudence_option_set("latent_limit", "16M"), 0);
    for (unsigned i = 0; i < 2000; i++) {
        prudence_free_deferred(prudence_malloc(200000));
        most = max_size(most, used() - before);
    }
    assert_true(most <= 17 << 20);
    prudence_synchronize();
    prudence_trim();
    assert_true(used() <= before);
}

/* Starts without latent objects; no wait meets its deadline. */
static void limit_of_4m(void)
{
    prudence_synchronize();
    prudence_trim();
    assert_int_equal(stats_now().bytes_latent, 0);
    assert_int_equal(prudence_option_set("latent_limit", "4M"), 0);
    assert_int_equal(prudence_option_set("wait_max", "10s"), 0);
}

static void *defer_block(void *block)
{
    prudence_free_deferred(block);
    return NULL;
}

/* Each block fits into the limit, but not both, so the second one waits until the first is no
 * longer garbage. */
TEST(a_second_one_waits_for_room)
{
    struct held_reader reader = {.domain = NULL};
    struct prudence_stats before;
    pthread_t other;

    limit_of_4m();
    held_reader_start(&reader);
    prudence_free_deferred(prudence_malloc(3 << 20));
    assert_int_equal(stats_now().bytes_latent, 3 << 20);
    before = stats_now();
    pthread_create(&other, NULL, defer_block, prudence_malloc(3 << 20));
    while (stats_now().throttle_waits == before.throttle_waits)
        pause_ms(1);
    for (unsigned i = 0; i < 20; i++, pause_ms(1))
        assert_int_equal(stats_now().bytes_latent, 3 << 20);
    held_reader_end(&reader);
    pthread_join(other, NULL);
    assert_true(stats_now().bytes_latent <= 3 << 20);
    assert_int_equal(stats_now().throttle_expiries, before.throttle_expiries);
    assert_int_equal(stats_now().latent_overruns, before.latent_overruns);
}

/* The block exceeds the limit, so the deferral waits for a grace period instead. */
TEST(one_larger_than_the_limit_is_waited_for)
{
    uint64_t before = used();
    uint64_t overruns;

    limit_of_4m();
    overruns = stats_now().latent_overruns;
    prudence_free_deferred(prudence_malloc(6 << 20));
    assert_int_equal(stats_now().bytes_latent, 0);
    assert_true(used() <= before);
    assert_int_equal(stats_now().latent_overruns, overruns);

    /* If no wait is allowed, the block is garbage, and is counted. */
    prudence_read_lock();
    prudence_free_deferred(prudence_malloc(6 << 20));
    assert_int_equal(stats_now().bytes_latent, 6 << 20);
    assert_int_equal(stats_now().latent_overruns, overruns + 1);
    prudence_read_unlock();
    prudence_synchronize();
    prudence_trim();
    assert_int_equal(stats_now().bytes_latent, 0);
    assert_true(used() <= before);
}

/* No margins. */
SUITE(pin_thread(), assert_int_equal(prudence_option_set("guard_first", "0"), 0))
