/* SPDX-License-Identifier: MIT */
/* Each value has one bucket, which is as exact as promised. Percentiles of recorded values. */
#include "support/slab_test.h"
#include "support/threads.h"

#include "histogram.h"

TEST(each_value_is_in_the_bucket_that_begins_below_it)
{
    for (unsigned sub_bits = 3; sub_bits <= 6; sub_bits += 3) {
        for (unsigned power = 0; power < 64; power++) {
            for (unsigned i = 0; i < 64; i++) {
                uint64_t value = (UINT64_C(1) << power) + ((uint64_t)i << power >> 6);
                unsigned bucket = bucket_of(value, sub_bits);

                assert_true(bucket_value(bucket, sub_bits) <= value);
                assert_true(value - bucket_value(bucket, sub_bits) <= value >> sub_bits);
                assert_true(bucket < (64 - sub_bits + 1) << sub_bits);
                if (value < UINT64_MAX >> 1)
                    assert_true(bucket_value(bucket + 1, sub_bits) > value);
            }
        }
        assert_int_equal(bucket_of(0, sub_bits), 0);
        assert_int_equal(bucket_of(UINT64_MAX, sub_bits), ((65 - sub_bits) << sub_bits) - 1);
    }
}

TEST(an_empty_one_has_a_count_alone)
{
    struct histogram *histogram = histogram_create();
    json_t *json = histogram_to_json(histogram);

    assert_int_equal(json_object_size(json), 1);
    assert_int_equal(json_integer_value(json_object_get(json, "count")), 0);
    json_decref(json);
    free(histogram);
}

#define THREADS 4
#define VALUES  10000

static void *record(void *histogram)
{
    for (uint64_t i = 1; i <= VALUES; i++)
        histogram_record(histogram, i);
    return NULL;
}

TEST(threads_may_record_at_the_same_time)
{
    struct histogram *histogram = histogram_create();
    pthread_t thread[THREADS];
    json_t *json;

    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, record, histogram), 0);
    threads_join(thread, THREADS);
    assert_int_equal(histogram_count(histogram), THREADS * VALUES);
    assert_in_range(histogram_quantile(histogram, 0.5), VALUES / 2 * 63 / 64, VALUES / 2 + 1);
    assert_int_equal(histogram_quantile(histogram, 1), VALUES);
    json = histogram_to_json(histogram);
    assert_int_equal(json_integer_value(json_object_get(json, "max")), VALUES);
    assert_in_range(json_integer_value(json_object_get(json, "p99_9")), VALUES * 0.98, VALUES);
    json_decref(json);
    free(histogram);
}

TEST(the_slowest_do_not_count_in_a_mean)
{
    struct histogram *histogram = histogram_create(), *more = histogram_create();

    assert_true(histogram_mean_below(histogram, 0.99) == 0);
    for (unsigned i = 0; i < 495; i++) {
        histogram_record(histogram, 10);
        histogram_record(more, 30);
    }
    for (unsigned i = 0; i < 5; i++)
        histogram_record(i % 2 ? histogram : more, 1000000);
    histogram_add(histogram, more);
    assert_int_equal(histogram_count(histogram), 995);
    assert_int_equal(histogram_quantile(histogram, 0.25), 10);
    assert_int_equal(histogram_quantile(histogram, 1), 1000000);
    assert_true(histogram_mean_below(histogram, 0.99) == 20);
    histogram_clear(histogram);
    assert_int_equal(histogram_count(histogram), 0);
    assert_int_equal(histogram_quantile(histogram, 0.5), 0);
    free(histogram);
    free(more);
}

SUITE()
