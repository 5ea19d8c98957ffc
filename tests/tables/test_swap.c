/* SPDX-License-Identifier: MIT */
/* Hot swap: readers get the old object, NULL during a transfer, then the new one; a transfer
 * gets an object that no thread uses. */
#include "support/slab_test.h"

#include <pthread.h>
#include <sched.h>

#include <prudence/rcu.h>
#include <prudence/swap.h>

#include "support/gp_reader.h"

static struct prudence_swap handle;
static int objects[3], transfers, answer;
static void *put_in_meanwhile;

static int transfer(void *old, void *fresh, void *context)
{
    assert_ptr_equal(context, &transfers);
    assert_null(prudence_swap_get(&handle));
    *(int *)fresh = *(int *)old;
    transfers++;
    if (put_in_meanwhile)
        assert_null(prudence_swap_exchange(&handle, put_in_meanwhile));
    return answer;
}

static int swap(void *fresh, void **old)
{
    return prudence_swap_transfer(&handle, fresh, old, transfer, &transfers, NULL);
}

static void begin(void)
{
    objects[0] = 42;
    objects[1] = objects[2] = transfers = answer = 0;
    put_in_meanwhile = NULL;
    prudence_swap_init(&handle, &objects[0]);
}

TEST(an_exchange_gives_the_old_object)
{
    begin();
    assert_ptr_equal(prudence_swap_get(&handle), &objects[0]);
    assert_ptr_equal(prudence_swap_exchange(&handle, &objects[1]), &objects[0]);
    assert_ptr_equal(prudence_swap_get(&handle), &objects[1]);
}

TEST(a_transfer_is_made_once)
{
    void *old;

    begin();
    assert_int_equal(swap(&objects[1], &old), 0);
    assert_ptr_equal(old, &objects[0]);
    assert_ptr_equal(prudence_swap_get(&handle), &objects[1]);
    assert_int_equal(objects[1], 42);
    assert_int_equal(transfers, 1);
}

TEST(no_object_is_lost)
{
    void *old;

    begin();
    answer = ENOSPC; /* the transfer fails */
    assert_int_equal(swap(&objects[1], &old), ENOSPC);
    assert_null(old);
    assert_ptr_equal(prudence_swap_get(&handle), &objects[0]);
    put_in_meanwhile = &objects[2];
    assert_int_equal(swap(&objects[1], &old), ENOSPC);
    assert_ptr_equal(old, &objects[0]);
    assert_ptr_equal(prudence_swap_get(&handle), &objects[2]);
    answer = 0;
    put_in_meanwhile = &objects[0];
    assert_int_equal(swap(&objects[1], &old), EAGAIN);
    assert_ptr_equal(old, &objects[2]);
    assert_ptr_equal(prudence_swap_get(&handle), &objects[0]);
}

TEST(bad_input_is_refused)
{
    void *old = &objects[2];

    begin();
    assert_int_equal(swap(NULL, &old), EINVAL);
    assert_int_equal(swap(&objects[1], NULL), EINVAL);
    assert_int_equal(swap(&objects[0], &old), EINVAL); /* its own successor */
    assert_int_equal(prudence_swap_transfer(&handle, &objects[1], &old, NULL, NULL, NULL), EINVAL);
    assert_int_equal(prudence_swap_transfer(NULL, &objects[1], &old, transfer, NULL, NULL), EINVAL);
    prudence_read_lock();
    assert_int_equal(swap(&objects[1], &old), EDEADLK);
    prudence_read_unlock();
    assert_null(old);
    assert_ptr_equal(prudence_swap_get(&handle), &objects[0]);
    prudence_swap_exchange(&handle, NULL); /* as in another thread's transfer */
    assert_int_equal(swap(&objects[1], &old), EAGAIN);
    assert_int_equal(transfers, 0);
}

static void *swap_in_thread(void *unused)
{
    void *old;

    assert_int_equal(swap(&objects[1], &old), 0);
    return unused;
}

TEST(a_transfer_waits_for_readers)
{
    struct held_reader reader = {.domain = NULL};
    pthread_t thread;

    begin();
    held_reader_start(&reader);
    assert_int_equal(pthread_create(&thread, NULL, swap_in_thread, NULL), 0);
    while (prudence_swap_get(&handle))
        sched_yield();
    objects[0] = 43; /* written by that reader, which had found it before */
    assert_int_equal(transfers, 0);
    held_reader_end(&reader);
    pthread_join(thread, NULL);
    assert_int_equal(transfers, 1);
    assert_int_equal(objects[1], 43);
}

SUITE()
