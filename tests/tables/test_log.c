/* SPDX-License-Identifier: MIT */
/* Log buffers: entries come out whole, in order, and once, and never while a reader may still
 * fill them. */
#include "support/slab_test.h"

#include <pthread.h>
#include <sched.h>

#include <prudence/log.h>
#include <prudence/rcu.h>

#include "support/gp_reader.h"

static uint64_t written[64];
static size_t words, calls;

static void write_words(void *context, const void *entries, size_t bytes)
{
    assert_ptr_equal(context, &words);
    assert_int_equal(bytes % 8, 0);
    memcpy(&written[words], entries, bytes);
    words += bytes / 8;
    calls++;
}

static int flush(struct prudence_log *log)
{
    return prudence_log_flush(log, write_words, &words);
}

static bool enter(struct prudence_log *log, uint64_t word)
{
    uint64_t *place = prudence_log_reserve(log, sizeof *place);

    if (place)
        *place = word;
    return place;
}

static void expect_words(uint64_t from, uint64_t end)
{
    assert_int_equal(words, end - from);
    for (uint64_t i = from; i < end; i++)
        assert_int_equal(written[i - from], i);
    words = 0;
}

TEST(entries_come_out_in_order)
{
    struct prudence_log *log = prudence_log_create(64, NULL);

    words = calls = 0;
    assert_int_equal(flush(log), 0);
    assert_int_equal(calls, 0); /* the log is empty */
    for (uint64_t i = 0; i < 5; i++)
        assert_true(enter(log, i));
    assert_int_equal(flush(log), 0);
    expect_words(0, 5);
    for (uint64_t i = 5; i < 13; i++)
        assert_true(enter(log, i));
    assert_false(enter(log, 99)); /* the buffer is full to the last byte */
    assert_int_equal(prudence_log_dropped(log), 1);
    assert_int_equal(flush(log), 0);
    expect_words(5, 13);
    assert_true(enter(log, 13));
    assert_int_equal(flush(log), 0);
    expect_words(13, 14);
    prudence_log_destroy(log);
}

/* An entry that does not fit ends the buffer: earlier entries come out, and none follows. */
TEST(an_entry_that_does_not_fit_ends_the_buffer)
{
    struct prudence_log *log = prudence_log_create(61, NULL); /* 64 */

    words = calls = 0;
    for (uint64_t i = 0; i < 7; i++)
        assert_true(enter(log, i));
    assert_null(prudence_log_reserve(log, 9));
    assert_null(prudence_log_reserve(log, 8));
    assert_null(prudence_log_reserve(log, 65));
    assert_null(prudence_log_reserve(log, SIZE_MAX));
    assert_int_equal(prudence_log_dropped(log), 4);
    assert_null(prudence_log_reserve(log, 0));
    assert_int_equal(prudence_log_dropped(log), 4);
    assert_int_equal(flush(log), 0);
    expect_words(0, 7);
    assert_non_null(prudence_log_reserve(log, 64));
    prudence_log_destroy(log);
}

static struct prudence_log *shared;
static struct held_reader reader;
static uint64_t *unfilled;
static int in_thread;

static void *flush_in_thread(void *unused)
{
    in_thread = flush(shared);
    return unused;
}

/* The place was reserved inside a section, so the flush waits, and another one is refused in the
 * meantime. */
TEST(a_flush_waits_for_readers)
{
    pthread_t thread;
    void *whole;

    words = calls = 0;
    shared = prudence_log_create(64, NULL);
    reader = (struct held_reader){.domain = NULL};
    held_reader_start(&reader);
    unfilled = prudence_log_reserve(shared, 8); /* on behalf of that reader */
    assert_int_equal(pthread_create(&thread, NULL, flush_in_thread, NULL), 0);
    do { /* until the thread has taken the buffer, so that there is room for a whole one */
        sched_yield();
        whole = prudence_log_reserve(shared, 64);
    } while (!whole);
    memset(whole, 0, 64);
    assert_int_equal(flush(shared), EBUSY);
    assert_int_equal(calls, 0);
    *unfilled = 0;
    held_reader_end(&reader);
    pthread_join(thread, NULL);
    assert_int_equal(in_thread, 0);
    assert_int_equal(written[0], 0);
    assert_int_equal(words, 1);
    assert_int_equal(flush(shared), 0);
    assert_int_equal(words, 1 + 8);
    prudence_log_destroy(shared);
}

TEST(bad_input_is_refused)
{
    struct prudence_domain *hazard = prudence_domain_create("h", PRUDENCE_DOMAIN_HAZARD, NULL);
    struct prudence_log *log = prudence_log_create(64, NULL);

    words = 0;
    errno = 0;
    assert_null(prudence_log_create(7, NULL));
    assert_int_equal(errno, EINVAL);
    assert_null(prudence_log_create(SIZE_MAX, NULL));
    errno = 0;
    assert_null(prudence_log_create(64, hazard)); /* its readers have no sections */
    assert_int_equal(errno, EINVAL);
    assert_null(prudence_log_reserve(NULL, 8));
    assert_int_equal(prudence_log_dropped(NULL), 0);
    assert_int_equal(flush(NULL), EINVAL);
    assert_int_equal(prudence_log_flush(log, NULL, NULL), EINVAL);
    assert_true(enter(log, 0));
    prudence_read_lock();
    assert_int_equal(flush(log), EDEADLK);
    prudence_read_unlock();
    assert_int_equal(flush(log), 0); /* nothing was lost */
    expect_words(0, 1);
    assert_int_equal(prudence_log_destroy(log), 0);
    assert_int_equal(prudence_log_destroy(NULL), EINVAL);
    assert_int_equal(prudence_domain_destroy(hazard), 0);
}

static void destroy_in_a_flush(void *log, const void *entries, size_t bytes)
{
    assert_int_equal(bytes, 8);
    assert_int_equal(prudence_log_destroy(log), EBUSY);
    calls++;
}

TEST(a_log_stays_while_it_is_flushed)
{
    struct prudence_log *log = prudence_log_create(64, NULL);

    calls = 0;
    assert_true(enter(log, 1));
    assert_int_equal(prudence_log_flush(log, destroy_in_a_flush, log), 0);
    assert_int_equal(calls, 1);
    assert_int_equal(prudence_log_destroy(log), 0);
}

SUITE()
