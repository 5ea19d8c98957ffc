/* SPDX-License-Identifier: MIT */
/*
 * RCU readers with NBS writers: a stack changed by compare-and-swap and walked by readers. A popped
 * entry cannot come back at its old address while a thread still reads it, so equal pointers
 * mean the same entry. docs/how-to/pattern-nbs-writers.md
 */
#include "example.h"

#define ENTRIES 16

struct entry {
    struct entry *next;
    long value;
};

static struct entry *top;
static struct prudence_cache *cache;

static struct entry *make(long value)
{
    struct entry *entry = prudence_cache_alloc(cache);

    MUST(entry);
    entry->value = value;
    return entry;
}

/* Sums the values, all of which are 1. */
static long walk(struct entry *entry)
{
    long found = 0;

    for (; entry; entry = entry->next)
        found += entry->value;
    return found <= ENTRIES ? found : WRONG;
}

/* --------------------------------------------------------------------------------------- before */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static long read_before(unsigned random)
{
    long found;

    pthread_mutex_lock(&lock);
    found = walk(top);
    pthread_mutex_unlock(&lock);
    return found;
}

static void update_before(unsigned random)
{
    struct entry *fresh = make(1), *old;

    pthread_mutex_lock(&lock);
    old = top;
    fresh->next = old->next;
    top = fresh;
    pthread_mutex_unlock(&lock);
    prudence_cache_free(cache, old);
}

/* ---------------------------------------------------------------------------------------- after */

static long read_after(unsigned random)
{
    long found;

    prudence_read_lock();
    found = walk(prudence_dereference(top));
    prudence_read_unlock();
    return found;
}

static void push(struct entry *fresh)
{
    fresh->next = __atomic_load_n(&top, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&top, &fresh->next, fresh, true, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED))
        ;
}

static struct entry *pop(void)
{
    struct entry *first, *next;

    /* Until the swap, `first` must not be freed, nor come back with another `next`. */
    prudence_read_lock();
    first = __atomic_load_n(&top, __ATOMIC_ACQUIRE);
    do {
        next = first ? first->next : NULL;
        meanwhile();
    } while (first && !__atomic_compare_exchange_n(&top, &first, next, false, __ATOMIC_ACQUIRE,
                                                   __ATOMIC_ACQUIRE));
    prudence_read_unlock();
    return first;
}

static void dispose(struct entry *entry)
{
    if (mistake)
        prudence_cache_free(cache, entry); /* popped, so no thread has it? */
    else
        prudence_cache_free_deferred(cache, entry);
}

static void update_after(unsigned random)
{
    dispose(pop());
    push(make(1));
}

/* ---------------------------------------------------------------------------------------- check */

/* Takes two entries and adds one, which reuses the address of the first if that was free. */
static void take_two_and_add_one(void)
{
    struct entry *first = pop(), *second = pop();

    dispose(second);
    dispose(first);
    push(make(1));
}

static const char *check(void)
{
    example_meanwhile = take_two_and_add_one;
    dispose(pop());
    return read_after(0) == ENTRIES - 2 ? NULL : "an entry that was popped is on the stack again";
}

static void set_up(void)
{
    MUST(cache = prudence_cache_create("entries", sizeof(struct entry), NULL));
    for (unsigned i = 0; i < ENTRIES; i++)
        push(make(1));
}
