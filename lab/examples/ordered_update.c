/* SPDX-License-Identifier: MIT */
/*
 * Ordered update with ordered read: an array that grows, and its size next to it. Readers may see
 * the old size with the new array, but never the new size with the old array.
 * docs/how-to/pattern-ordered-update.md
 */
#include "example.h"

#define STEP 16
#define MOST 256

static size_t size;
static long *array; /* array[i] is i */
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

static size_t larger_size(void)
{
    return size < MOST ? size + STEP : size;
}

/* Returns a copy of the array with room for `count`. */
static long *copy(size_t count)
{
    long *fresh = prudence_malloc(count * sizeof *fresh);

    MUST(fresh);
    for (size_t i = 0; i < count; i++)
        fresh[i] = i < size ? array[i] : (long)i;
    return fresh;
}

/* --------------------------------------------------------------------------------------- before */

static long read_before(unsigned random)
{
    const size_t index = random % (2 * MOST);
    long found;

    pthread_rwlock_rdlock(&lock);
    found = index < size ? array[index] : (long)index;
    pthread_rwlock_unlock(&lock);
    return found == (long)index ? found : WRONG;
}

static void update_before(unsigned random)
{
    long *old;

    pthread_rwlock_wrlock(&lock);
    old = array;
    array = copy(larger_size());
    size = larger_size();
    pthread_rwlock_unlock(&lock);
    prudence_free(old);
}

/* ---------------------------------------------------------------------------------------- after */

static pthread_mutex_t writers = PTHREAD_MUTEX_INITIALIZER;

/* Writers store the array and then the size; readers load the size and then the array. So the array
 * is at least as new as the size. */
static const long *view(size_t *count)
{
    const long *seen;

    if (mistake) {
        seen = prudence_dereference(array);
        meanwhile();
        *count = __atomic_load_n(&size, __ATOMIC_RELAXED);
    } else {
        *count = __atomic_load_n(&size, __ATOMIC_ACQUIRE); /* acquire: the size before the array */
        meanwhile();
        seen = prudence_dereference(array);
    }
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

static void update_after(unsigned random)
{
    long *old;

    pthread_mutex_lock(&writers);
    old = array;
    /* Two releases order the values before their address, and the address before the size. */
    prudence_assign_pointer(array, copy(larger_size()));
    meanwhile();
    __atomic_store_n(&size, larger_size(), __ATOMIC_RELEASE);
    pthread_mutex_unlock(&writers);
    prudence_free_deferred(old);
}

/* ---------------------------------------------------------------------------------------- check */

static void grow(void)
{
    update_after(0);
}

static bool fits;

static void look(void)
{
    size_t count, room;

    prudence_read_lock();
    room = prudence_usable_size(view(&count)) / sizeof(long);
    prudence_read_unlock();
    fits = count <= room;
}

static const char *check(void)
{
    example_meanwhile = grow; /* in the middle of a read */
    look();
    while (size < MOST && fits) { /* and reads in the middle of changes */
        example_meanwhile = look;
        grow();
    }
    return fits ? NULL : "a reader has an array that is shorter than it believes";
}

static void set_up(void)
{
    array = copy(larger_size());
    size = larger_size();
}
