/* SPDX-License-Identifier: MIT */
/*
 * Impose level of indirection: settings that were separate variables become one block behind one
 * pointer. Then a copy can replace the original. docs/how-to/pattern-level-of-indirection.md
 */
#include "example.h"

/* --------------------------------------------------------------------------------------- before */

static long rate = 100;
static long burst = 200;  /* twice the rate */
static long window = 300; /* their sum */
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

static long read_before(unsigned random)
{
    bool together;

    pthread_rwlock_rdlock(&lock);
    together = burst == 2 * rate && window == rate + burst;
    pthread_rwlock_unlock(&lock);
    return together ? 0 : WRONG;
}

static void update_before(unsigned random)
{
    pthread_rwlock_wrlock(&lock);
    rate = random;
    burst = 2 * rate;
    window = rate + burst;
    pthread_rwlock_unlock(&lock);
}

/* ---------------------------------------------------------------------------------------- after */

struct settings {
    long rate, burst, window;
};

static struct settings *settings;
static struct prudence_cache *cache;
static pthread_mutex_t writers = PTHREAD_MUTEX_INITIALIZER;

static long read_after(unsigned random)
{
    const struct settings *seen;
    long now;
    bool together;

    prudence_read_lock();
    seen = prudence_dereference(settings);
    meanwhile();
    now = mistake ? __atomic_load_n(&window, __ATOMIC_RELAXED) : seen->window;
    together = seen->burst == 2 * seen->rate && now == seen->rate + seen->burst;
    prudence_read_unlock();
    return together ? 0 : WRONG;
}

static void update_after(unsigned random)
{
    struct settings *fresh = prudence_cache_alloc(cache), *old;

    MUST(fresh);
    *fresh = (struct settings){.rate = random, .burst = 2L * random, .window = 3L * random};
    pthread_mutex_lock(&writers);
    old = settings;
    prudence_assign_pointer(settings, fresh);
    if (mistake) /* one variable was not moved */
        __atomic_store_n(&window, fresh->window, __ATOMIC_RELAXED);
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
    if (read_after(0) == WRONG)
        return "the settings do not fit together";
    example_meanwhile = change;
    return read_after(0) == WRONG ? "a reader saw the window of other settings" : NULL;
}

static void set_up(void)
{
    MUST(cache = prudence_cache_create("settings", sizeof(struct settings), NULL));
    MUST(settings = prudence_cache_alloc(cache));
    *settings = (struct settings){.rate = rate, .burst = burst, .window = window};
}
