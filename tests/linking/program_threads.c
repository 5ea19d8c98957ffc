/* SPDX-License-Identifier: MIT */
/*
 * Objects pass from thread to thread in every way that the library has: freed and reused, deferred
 * under readers of each kind of domain, by callbacks, constructed and destroyed, in pages of
 * another size. Built with ThreadSanitizer by test_thread_sanitizer.py; the library is not. RACE,
 * in the environment:
 *
 *   pass     a thread hands over an object by a relaxed store
 *   reader   a reader reads an object after it has ended its section
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <prudence/call.h>
#include <prudence/epoch.h>
#include <prudence/hazard.h>
#include <prudence/poll.h>
#include <prudence/prudence.h>
#include <prudence/rcu.h>

#define THREADS 3
#define ROUNDS  1000
#define KINDS   6

struct node {
    struct prudence_head head;
    unsigned long value, copy;
};

static struct {
    struct prudence_domain *domain;
    struct prudence_cache *cache;
    struct node *current;
} kinds[KINDS];
static struct node *called;
static unsigned long stop;
static pthread_mutex_t writers = PTHREAD_MUTEX_INITIALIZER;

static void fill(struct node *node, unsigned long value)
{
    if (!node)
        abort();
    node->value = node->copy = value;
}

static void check(const struct node *node)
{
    if (node && node->value != node->copy)
        abort();
}

static void construct(void *object, void *context)
{
    (void)context;
    memset(object, 0, sizeof(struct node));
}

static void destruct(void *object, void *context)
{
    struct node *node = object;

    (void)context;
    node->value = node->copy = 0;
}

static void run_callback(struct prudence_head *head)
{
    struct node *node = (struct node *)head;

    node->value = node->copy = 0;
    prudence_free(node);
}

/* ------------------------------------------------------------------------------------- readers */

static void read_named(struct node *const *place, bool movable)
{
    struct prudence_hazard *hazard =
        movable ? prudence_hazard_acquire_movable() : prudence_hazard_acquire();

    check(prudence_hazard_protect(hazard, (void *const *)(void *)place));
    prudence_hazard_release(hazard);
}

/* As a walk does: the upper slot takes over what the lower one named. */
static void read_in_a_row(struct node *const *place)
{
    struct prudence_hazard *row = prudence_hazard_acquire_row(2);
    const struct node *node = prudence_hazard_protect(row, (void *const *)(void *)place);

    prudence_hazard_set(row + 1, node);
    prudence_hazard_reset(row);
    check(node);
    prudence_hazard_release(row + 1);
    prudence_hazard_release(row);
}

static void read_pinned(struct prudence_domain *domain, struct node *const *place)
{
    struct prudence_reader *self = prudence_epoch_record(domain);

    prudence_epoch_pin(self);
    check(prudence_dereference(*place));
    prudence_epoch_repin(self);
    check(prudence_dereference(*place));
    if (!prudence_epoch_is_pinned(self) ||
        prudence_epoch_pinned(self) > prudence_epoch_newest(domain))
        abort();
    prudence_epoch_unpin(self);
}

static void read_in(unsigned kind)
{
    struct prudence_domain *domain = kinds[kind].domain;
    int index = 0;

    if (kind == 4) {
        read_named(&kinds[kind].current, false);
        read_named(&kinds[kind].current, true);
        read_in_a_row(&kinds[kind].current);
        return;
    }
    if (kind == 5) {
        read_pinned(domain, &kinds[kind].current);
        return;
    }
    if (kind == 0)
        prudence_read_lock();
    else if (kind == 2)
        index = prudence_srcu_read_lock(domain);
    else
        prudence_domain_read_lock(domain);
    check(prudence_dereference(kinds[kind].current));
    if (kind == 0)
        check(prudence_dereference(called));
    if (kind == 0)
        prudence_read_unlock();
    else if (kind == 2)
        prudence_srcu_read_unlock(domain, index);
    else
        prudence_domain_read_unlock(domain);
}

static void *read_all(void *unused)
{
    prudence_qsbr_online(kinds[3].domain);
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        for (unsigned kind = 0; kind < KINDS; kind++)
            read_in(kind);
        prudence_qsbr_quiescent(kinds[3].domain);
    }
    prudence_qsbr_offline(kinds[3].domain);
    return unused;
}

/* ------------------------------------------------------------------------------------- writers */

/* Returns the previous node, which no new reader finds. */
static struct node *publish(struct node **place, struct node *fresh)
{
    struct node *old;

    pthread_mutex_lock(&writers);
    old = *place;
    prudence_assign_pointer(*place, fresh);
    pthread_mutex_unlock(&writers);
    return old;
}

static void replace(unsigned kind, unsigned long value)
{
    struct prudence_cache *cache = kinds[kind].cache;
    struct node *fresh = prudence_cache_alloc(cache), *old;

    fill(fresh, value);
    old = publish(&kinds[kind].current, fresh);
    if (value % 50) {
        prudence_cache_free_deferred(cache, old);
        return;
    }
    if (kind == 0)
        prudence_synchronize();
    else if (prudence_domain_synchronize(kinds[kind].domain))
        abort();
    if (old)
        old->value = old->copy = 0;
    prudence_cache_free(cache, old);
}

static void replace_by_callback(unsigned long value)
{
    struct node *fresh = prudence_malloc(sizeof *fresh), *old;

    fill(fresh, value);
    old = publish(&called, fresh);
    if (old)
        prudence_call(&old->head, run_callback);
}

static void allocate(unsigned long value)
{
    size_t size = 16 + value * 37 % 3000;
    char *object = prudence_malloc(size), *large = value % 64 ? NULL : prudence_calloc(1, 50000);

    if (!object)
        abort();
    for (size_t i = 0; i < size; i++)
        object[i] = (char)value;
    if (large)
        large[49999] = large[0] = 1;
    prudence_free(object);
    prudence_free_deferred(large);
    if (value % 500 == 0)
        prudence_trim();
}

static void *write_all(void *seed)
{
    for (unsigned long value = (unsigned long)seed; value < ROUNDS; value++) {
        for (unsigned kind = 0; kind < KINDS; kind++)
            replace(kind, value);
        replace_by_callback(value);
        allocate(value);
    }
    return NULL;
}

static void make(void)
{
    static const enum prudence_domain_kind of[KINDS] = {
        PRUDENCE_DOMAIN_MEMB, PRUDENCE_DOMAIN_MEMB,   PRUDENCE_DOMAIN_SRCU,
        PRUDENCE_DOMAIN_QSBR, PRUDENCE_DOMAIN_HAZARD, PRUDENCE_DOMAIN_MEMB};

    for (unsigned kind = 0; kind < KINDS; kind++) {
        struct prudence_cache_attr attr = {.size = sizeof attr};

        attr.domain = kinds[kind].domain =
            kind ? prudence_domain_create("of readers", of[kind], NULL) : prudence_default_domain();
        attr.constructor = kind % 2 ? construct : NULL;
        attr.destructor = kind % 2 ? destruct : NULL;
        kinds[kind].cache = prudence_cache_create("nodes", sizeof(struct node), &attr);
        if (!kinds[kind].cache)
            abort();
    }
}

static void run(void)
{
    pthread_t threads[2 * THREADS];

    for (long i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, read_all, NULL);
        pthread_create(&threads[THREADS + i], NULL, write_all, (void *)i);
    }
    for (unsigned i = THREADS; i < 2 * THREADS; i++)
        pthread_join(threads[i], NULL);
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    if (prudence_barrier())
        abort();
}

/* ---------------------------------------------------------------------------------- true races */

static struct node *passed;

static struct node *wait_for_it(void)
{
    struct node *node;

    while (!(node = __atomic_load_n(&passed, __ATOMIC_RELAXED)))
        ;
    return node;
}

static void *take(void *unused)
{
    wait_for_it()->value = 2;
    return unused;
}

static void pass(void)
{
    struct node *node = prudence_malloc(sizeof *node);
    pthread_t thread;

    pthread_create(&thread, NULL, take, NULL);
    fill(node, 1);
    __atomic_store_n(&passed, node, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
}

static unsigned long left;

static void *read_late(void *unused)
{
    const struct node *node;

    prudence_read_lock();
    node = wait_for_it();
    prudence_read_unlock();
    check(node);
    __atomic_store_n(&left, 1, __ATOMIC_RELAXED);
    return unused;
}

/* The object is deferred once, and its memory reused. */
static void reader(void)
{
    struct prudence_cache *cache = prudence_cache_create("one", 4096, NULL);
    struct node *node = prudence_cache_alloc(cache), *again;
    pthread_t thread;

    fill(node, 1);
    pthread_create(&thread, NULL, read_late, NULL);
    __atomic_store_n(&passed, node, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&left, __ATOMIC_RELAXED))
        ;
    prudence_cache_free_deferred(cache, node);
    for (int i = 0; i < 10000; i++) {
        again = prudence_cache_alloc(cache);
        fill(again, 2);
        prudence_cache_free_deferred(cache, again);
    }
    pthread_join(thread, NULL);
}

int main(void)
{
    const char *race = getenv("RACE");

    if (race && strcmp(race, "pass") == 0) {
        pass();
    } else if (race) {
        reader();
    } else {
        make();
        run();
    }
    puts("done");
    return 0;
}
