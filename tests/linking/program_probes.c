/* SPDX-License-Identifier: MIT */
/*
 * Makes every probe of a process fire (tests/linking/test_probes.py), except the one of pre-flush,
 * and prints by statistics how often and with which arguments. With an argument it repeats that
 * until it is killed.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <prudence/poll.h>
#include <prudence/prudence.h>
#include <prudence/rcu.h>
#include <prudence/scm.h>
#include <prudence/stats.h>

#define OBJECTS    3000
#define SHORT_TERM 400

static void *objects[OBJECTS];
static struct prudence_domain *by_hand;
static struct prudence_cache *moved, *throttled;
static sem_t inside, leave;

static void allocate(struct prudence_cache *cache, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        objects[i] = prudence_cache_alloc(cache);
}

static void defer(struct prudence_cache *cache, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        prudence_cache_free_deferred(cache, objects[i]);
}

/* Causes grow, refill, flush, close, overflow, premovement, merge and shrink, and ends a
 * domain's grace periods. */
static void move(void)
{
    allocate(moved, OBJECTS);
    for (unsigned i = 0; i < OBJECTS; i++)
        prudence_cache_free(moved, objects[i]);
    allocate(moved, OBJECTS);
    defer(moved, OBJECTS);
    prudence_manual_advance(by_hand);
    prudence_manual_advance(by_hand);
    allocate(moved, 500);
    defer(moved, 500);
    for (unsigned i = 0; i < 3; i++) {
        prudence_manual_advance(by_hand);
        prudence_cache_shrink(moved);
    }
}

static void *stay_inside(void *unused)
{
    prudence_read_lock();
    sem_post(&inside);
    while (sem_wait(&leave))
        ;
    prudence_read_unlock();
    return unused;
}

/* Defers beyond latent_limit while a reader stays: the wait for it is without success, and it is
 * reported. */
static void throttle(void)
{
    struct prudence_domain_stats stats;
    pthread_t reader;

    pthread_create(&reader, NULL, stay_inside, NULL);
    while (sem_wait(&inside))
        ;
    allocate(throttled, 600);
    defer(throttled, 600);
    do
        prudence_gp_poll_state(prudence_gp_start_poll());
    while (prudence_domain_stats(prudence_default_domain(), &stats) == 0 && !stats.stalls);
    sem_post(&leave);
    pthread_join(reader, NULL);
    prudence_synchronize();
}

/* Uses up the memory while objects are latent: the last allocations wait for them. */
static void press(void)
{
    static void *blocks[200];
    unsigned count = 0;

    prudence_free_deferred(prudence_malloc(100));
    while (count < 200 && (blocks[count] = prudence_malloc(1 << 20)))
        count++;
    while (count)
        prudence_free(blocks[--count]);
}

/* Gives dates by every kind of clock, more than a page of descriptors of each, until none
 * remains. The objects have a cache of their own, so that their slabs, and these slabs' counts, are
 * gone when this returns. */
static void expire(void)
{
    struct scm_clock *further = scm_clock_create(), *timed = scm_clock_create_realtime(1);
    struct scm_clock *ended = scm_clock_create();
    struct prudence_cache *dated = prudence_cache_create("dated", 100, NULL);
    struct scm_mem_info info;

    for (unsigned i = 0; i < SHORT_TERM; i++) {
        void *object = prudence_cache_alloc(dated);

        scm_refresh(object, 0);
        scm_global_refresh(object, 0);
        scm_clock_refresh(further, object, 0);
        scm_clock_refresh(timed, object, 1);
        scm_clock_refresh(ended, object, 5);
    }
    scm_clock_tick(further);
    scm_clock_destroy(ended);
    do {
        scm_tick();
        scm_global_tick();
        scm_collect();
        scm_get_mem_info(&info);
    } while (info.num_dates);
    scm_clock_destroy(further);
    scm_clock_destroy(timed);
    prudence_cache_destroy(dated);
}

static void *ask(void *unused)
{
    struct scm_mem_info info;

    for (unsigned i = 0; i < 20000; i++)
        scm_get_mem_info(&info);
    return unused;
}

/* Makes two threads want the same lock of the library. Whether one ever waits is chance. */
static void contend(void)
{
    pthread_t other;

    pthread_create(&other, NULL, ask, NULL);
    ask(NULL);
    pthread_join(other, NULL);
}

static void say(void)
{
    struct scm_mem_info short_term;
    struct prudence_walk caches = PRUDENCE_WALK_INIT, domains = PRUDENCE_WALK_INIT;
    struct prudence_cache_stats cache;
    struct prudence_domain_stats domain;
    struct prudence_stats all;

    scm_get_mem_info(&short_term);
    prudence_stats(&all);
    printf("{\"short_term\": %u, \"overhead\": %lu, ", SHORT_TERM, short_term.overhead);
    printf("\"pressure_waits\": %lu, \"throttle_waits\": %lu", (unsigned long)all.pressure_waits,
           (unsigned long)all.throttle_waits);
    while (prudence_next_cache(&caches, &cache) == 0)
        if (!strcmp(cache.name, "moved"))
            printf(
                ", \"refills\": %lu, \"refilled\": %lu, \"flushed\": %lu, \"merged\": %lu, "
                "\"overflowed\": %lu, "
                "\"premoved\": %lu, \"grows\": %lu, \"shrinks\": %lu",
                (unsigned long)cache.refills, (unsigned long)cache.refilled_objects,
                (unsigned long)cache.flushed_objects, (unsigned long)cache.merged_objects,
                (unsigned long)cache.overflowed_objects, (unsigned long)cache.premoved_slabs,
                (unsigned long)cache.grows, (unsigned long)cache.shrinks);
    while (prudence_next_domain(&domains, &domain) == 0)
        printf(", \"%s\": %lu, \"%s stalls\": %lu", domain.name,
               (unsigned long)domain.grace_periods, domain.name, (unsigned long)domain.stalls);
    printf("}\n");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    struct prudence_cache_attr attr = {.size = sizeof attr, .object_cache_bytes = 64 * 200};

    (void)argv;
    sem_init(&inside, 0, 0);
    sem_init(&leave, 0, 0);
    by_hand = prudence_domain_create("by hand", PRUDENCE_DOMAIN_MANUAL, NULL);
    throttled = prudence_cache_create("throttled", 4000, NULL);
    attr.domain = by_hand;
    moved = prudence_cache_create("moved", 200, &attr);
    do {
        move();
        throttle();
        press();
        expire();
        if (argc > 1)
            contend();
        say();
    } while (argc > 1);
    return 0;
}
