/* SPDX-License-Identifier: MIT */
/*
 * Stall updates: a long computation must use the newest version. A reader that has lost against
 * writers makes them wait. The pointer is the version. docs/how-to/pattern-stall-updates.md
 */
#include "example.h"

#define VALUES 256

struct state {
    long values[VALUES]; /* all equal */
};

static struct state *state;
static struct prudence_cache *cache;

static long compute(const struct state *seen)
{
    long sum = 0;

    for (unsigned i = 0; i < VALUES; i++)
        sum += seen->values[i];
    return sum == VALUES * seen->values[0] ? sum : WRONG;
}

static void fill(struct state *fresh, unsigned random)
{
    for (unsigned i = 0; i < VALUES; i++)
        fresh->values[i] = random;
}

/* --------------------------------------------------------------------------------------- before */

static struct state in_place;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

static long read_before(unsigned random)
{
    long result;

    pthread_rwlock_rdlock(&lock);
    result = compute(&in_place);
    pthread_rwlock_unlock(&lock);
    return result;
}

static void update_before(unsigned random)
{
    pthread_rwlock_wrlock(&lock);
    fill(&in_place, random);
    pthread_rwlock_unlock(&lock);
}

/* ---------------------------------------------------------------------------------------- after */

static int stalling; /* number of readers that make writers wait */
static pthread_mutex_t writers = PTHREAD_MUTEX_INITIALIZER;

static void stall(void)
{
    __atomic_add_fetch(&stalling, 1, __ATOMIC_RELAXED);
}

static void go_on(void)
{
    if (mistake)
        __atomic_store_n(&stalling, 0, __ATOMIC_RELAXED); /* a flag would do? */
    else
        __atomic_sub_fetch(&stalling, 1, __ATOMIC_RELAXED);
}

static bool may_update(void)
{
    return __atomic_load_n(&stalling, __ATOMIC_RELAXED) == 0;
}

static long read_after(unsigned random)
{
    bool fresh = false;
    long result;

    for (unsigned tries = 0; !fresh; tries++) {
        const struct state *seen;

        if (tries == 1)
            stall();
        prudence_read_lock();
        seen = prudence_dereference(state);
        result = compute(seen);
        meanwhile();
        __atomic_thread_fence(__ATOMIC_ACQUIRE); /* the values, then the pointer again */
        fresh = __atomic_load_n(&state, __ATOMIC_RELAXED) == seen;
        prudence_read_unlock();
        if (fresh && tries > 0)
            go_on();
    }
    return result;
}

static void update_after(unsigned random)
{
    struct state *fresh = prudence_cache_alloc(cache), *old;

    MUST(fresh);
    fill(fresh, random);
    while (!may_update()) { /* with no lock, in no section */
        meanwhile();
        sched_yield();
    }
    pthread_mutex_lock(&writers);
    old = state;
    prudence_assign_pointer(state, fresh);
    pthread_mutex_unlock(&writers);
    prudence_cache_free_deferred(cache, old);
}

/* ---------------------------------------------------------------------------------------- check */

static bool stalled;

static void look(void)
{
    stalled = !may_update();
}

/* Makes the interrupted reader lose, and lets its next try be examined. */
static void publish(void)
{
    update_after(2);
    example_meanwhile = look;
}

static const char *check(void)
{
    stall();
    stall();
    go_on(); /* the first of two readers has its result */
    if (may_update())
        return "writers go on, though a reader still makes them wait";
    example_meanwhile = go_on; /* the second reader, once a writer waits */
    update_after(1);
    if (example_meanwhile)
        return "a writer did not wait for a reader";
    example_meanwhile = publish;
    if (read_after(0) != 2 * VALUES || !stalled)
        return "a reader that has lost does not make writers wait";
    return may_update() ? NULL : "no reader remains, and writers wait";
}

static void set_up(void)
{
    MUST(cache = prudence_cache_create("states", sizeof(struct state), NULL));
    MUST(state = prudence_cache_alloc(cache));
    fill(state, 1);
}
