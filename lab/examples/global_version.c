/* SPDX-License-Identifier: MIT */
/*
 * Global version number: an item moves between two shelves. A reader that reads both must find
 * it on exactly one, so the reader starts over when the version has changed during the read.
 * docs/how-to/pattern-global-version.md
 */
#include "example.h"

struct item {
    long name;
};

static struct item *shelves[2]; /* one has the item, the other is empty */
static struct prudence_cache *cache;

static struct item *make(long name)
{
    struct item *item = prudence_cache_alloc(cache);

    MUST(item);
    item->name = name;
    return item;
}

static long name_of(const struct item *a, const struct item *b)
{
    return !a == !b ? WRONG : a ? a->name : b->name;
}

/* --------------------------------------------------------------------------------------- before */

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

static long read_before(unsigned random)
{
    long name;

    pthread_rwlock_rdlock(&lock);
    name = name_of(shelves[0], shelves[1]);
    pthread_rwlock_unlock(&lock);
    return name;
}

static void update_before(unsigned random)
{
    struct item *fresh = make(random), *old;
    unsigned from;

    pthread_rwlock_wrlock(&lock);
    from = shelves[1] != NULL;
    old = shelves[from];
    shelves[from] = NULL;
    shelves[1 - from] = fresh;
    pthread_rwlock_unlock(&lock);
    prudence_cache_free(cache, old);
}

/* ---------------------------------------------------------------------------------------- after */

static unsigned version; /* odd: a change is under way */
static pthread_mutex_t writers = PTHREAD_MUTEX_INITIALIZER;

/* Returns false if there was a change; then *name is meaningless. */
static bool try_read(long *name)
{
    const unsigned begin = __atomic_load_n(&version, __ATOMIC_ACQUIRE); /* before the shelves */
    const struct item *a, *b;

    if (begin % 2 && !mistake)
        return false;
    prudence_read_lock();
    a = prudence_dereference(shelves[0]);
    meanwhile();
    b = prudence_dereference(shelves[1]);
    *name = name_of(a, b);
    prudence_read_unlock();
    __atomic_thread_fence(__ATOMIC_ACQUIRE); /* the shelves, then the version again */
    return __atomic_load_n(&version, __ATOMIC_RELAXED) == begin;
}

static long read_after(unsigned random)
{
    long name;

    while (!try_read(&name))
        sched_yield(); /* outside of the section */
    return name;
}

static void update_after(unsigned random)
{
    struct item *fresh = make(random), *old;
    unsigned from;

    pthread_mutex_lock(&writers);
    __atomic_store_n(&version, version + 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE); /* the version, then the shelves */
    from = shelves[1] != NULL;
    old = shelves[from];
    prudence_assign_pointer(shelves[from], NULL);
    meanwhile();
    prudence_assign_pointer(shelves[1 - from], fresh);
    if (!mistake) /* counted already? */
        __atomic_store_n(&version, version + 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&writers);
    prudence_cache_free_deferred(cache, old);
}

/* ---------------------------------------------------------------------------------------- check */

static bool believed;
static long found;

static void look(void)
{
    believed = try_read(&found);
}

static void move(void)
{
    update_after(1);
}

static const char *check(void)
{
    example_meanwhile = look;
    move();
    if (believed && found == WRONG)
        return "a reader believes that the item is on no shelf";
    example_meanwhile = move;
    return try_read(&found) ? "a reader believes values that it saw during a change" : NULL;
}

static void set_up(void)
{
    MUST(cache = prudence_cache_create("items", sizeof(struct item), NULL));
    shelves[0] = make(1);
}
