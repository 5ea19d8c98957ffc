/* SPDX-License-Identifier: MIT */
/*
 * Substitute copy for original: limits with several fields that belong together. A writer changes a
 * copy, and replaces the original by one store. docs/how-to/pattern-substitute-copy.md
 */
#include "example.h"

#define WIDTH 10

struct limits {
    long low, high; /* high - low is WIDTH */
    char name[48];
};

static struct limits *limits;
static struct prudence_cache *cache;

/* --------------------------------------------------------------------------------------- before */

static struct limits in_place = {.high = WIDTH};
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

static long read_before(unsigned random)
{
    long width;

    pthread_rwlock_rdlock(&lock);
    width = in_place.high - in_place.low;
    pthread_rwlock_unlock(&lock);
    return width == WIDTH ? width : WRONG;
}

static void update_before(unsigned random)
{
    pthread_rwlock_wrlock(&lock);
    in_place.low = random;
    in_place.high = in_place.low + WIDTH;
    pthread_rwlock_unlock(&lock);
}

/* ---------------------------------------------------------------------------------------- after */

static pthread_mutex_t writers = PTHREAD_MUTEX_INITIALIZER;

static long read_after(unsigned random)
{
    const struct limits *seen;
    long low, high;

    prudence_read_lock();
    seen = prudence_dereference(limits); /* only once, so all fields are of this version */
    low = seen->low;
    meanwhile();
    if (mistake)
        seen = prudence_dereference(limits);
    high = seen->high;
    prudence_read_unlock();
    return high - low == WIDTH ? WIDTH : WRONG;
}

static void update_after(unsigned random)
{
    struct limits *copy = prudence_cache_alloc(cache), *old;

    MUST(copy);
    pthread_mutex_lock(&writers);
    old = limits;
    *copy = *old;
    copy->low = random;
    copy->high = copy->low + WIDTH;
    prudence_assign_pointer(limits, copy);
    pthread_mutex_unlock(&writers);
    prudence_cache_free_deferred(cache, old);
}

/* ---------------------------------------------------------------------------------------- check */

static void change(void)
{
    update_after(1000);
}

static const char *check(void)
{
    example_meanwhile = change;
    return read_after(0) == WRONG
               ? "a reader took the low limit of one version and the high one of another"
               : NULL;
}

static void set_up(void)
{
    MUST(cache = prudence_cache_create("limits", sizeof(struct limits), NULL));
    MUST(limits = prudence_cache_alloc(cache));
    *limits = (struct limits){.high = WIDTH};
}
