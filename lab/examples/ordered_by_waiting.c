/* SPDX-License-Identifier: MIT */
/*
 * Ordered update without barriers: an array that grows, and its size next to it, as in
 * ordered_update.c. The writer waits for a grace period between the two, so readers load them in
 * any order and without a barrier. docs/how-to/example-ordered-by-waiting.md
 */
#include "example.h"

#define STEP 16
#define MOST 256

static size_t size;
static long *array; /* array[i] is i */

/* Returns a copy of the array with room for `count`. Copies never get smaller. */
static long *copy(size_t count)
{
    long *fresh = prudence_malloc(count * sizeof *fresh);

    MUST(fresh);
    for (size_t i = 0; i < count; i++)
        fresh[i] = i < size ? array[i] : (long)i;
    return fresh;
}

static size_t larger_size(void)
{
    return size < MOST ? size + STEP : size;
}

/* --------------------------------------------------------------------------------------- before */

static pthread_mutex_t writers = PTHREAD_MUTEX_INITIALIZER;

/* Loads the size with acquire, and so before the array. */
static long read_before(unsigned random)
{
    const size_t index = random % (2 * MOST);
    size_t count;
    long found;

    prudence_read_lock();
    count = __atomic_load_n(&size, __ATOMIC_ACQUIRE);
    found = index < count ? prudence_dereference(array)[index] : (long)index;
    prudence_read_unlock();
    return found == (long)index ? found : WRONG;
}

static void update_before(unsigned random)
{
    long *old;

    pthread_mutex_lock(&writers);
    old = array;
    prudence_assign_pointer(array, copy(larger_size()));
    __atomic_store_n(&size, larger_size(), __ATOMIC_RELEASE);
    pthread_mutex_unlock(&writers);
    prudence_free_deferred(old);
}

/* ---------------------------------------------------------------------------------------- after */

/* Loads in the worst order that a processor or a compiler could choose. */
static const long *view(size_t *count)
{
    const long *seen = prudence_dereference(array);

    meanwhile();
    *count = __atomic_load_n(&size, __ATOMIC_RELAXED);
    return seen;
}

static long read_after(unsigned random)
{
    const size_t index = random % (2 * MOST);
    const long *seen;
    size_t count;
    long found;

    prudence_read_lock();
    seen = view(&count);
    found = index < count ? seen[index] : (long)index;
    prudence_read_unlock();
    return found == (long)index ? found : WRONG;
}

/* Publishes the new array. The cookie shows when no reader has the old one. */
static prudence_gp_t begin_update(void)
{
    prudence_assign_pointer(array, copy(larger_size()));
    return prudence_gp_start_poll();
}

static bool nobody_has_the_old_array(prudence_gp_t cookie)
{
    return mistake || prudence_gp_poll_state(cookie);
}

static void end_update(void)
{
    __atomic_store_n(&size, larger_size(), __ATOMIC_RELAXED);
}

static void update_after(unsigned random)
{
    prudence_gp_t cookie;
    long *old;

    pthread_mutex_lock(&writers); /* taken by no reader, because it is held during the wait */
    old = array;
    cookie = begin_update();
    if (!nobody_has_the_old_array(cookie))
        prudence_gp_cond_synchronize(cookie);
    end_update();
    pthread_mutex_unlock(&writers);
    prudence_free(old); /* its grace period is over */
}

/* ---------------------------------------------------------------------------------------- check */

static void grow(void)
{
    if (nobody_has_the_old_array(begin_update()))
        end_update();
}

static const char *check(void)
{
    size_t count, room;

    example_meanwhile = grow;
    prudence_read_lock();
    room = prudence_usable_size(view(&count)) / sizeof(long);
    prudence_read_unlock();
    if (count > room)
        return "a reader has an array that is shorter than it believes";
    prudence_synchronize();
    end_update();
    prudence_read_lock();
    view(&count);
    prudence_read_unlock();
    return count == 2 * (size_t)STEP ? NULL : "the array has not grown";
}

static void set_up(void)
{
    array = copy(larger_size());
    size = larger_size();
}
