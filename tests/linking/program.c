/* SPDX-License-Identifier: MIT */
/*
 * Inline readers, a writer, and grace periods, built and linked by test_linking.py in every
 * possible way: as a program, or with -DPLUGIN as a shared object that host.c loads. Checks that
 *
 *   a reader that enters after a grace period began does not delay the grace period, because the
 *   reader loads the true sequence
 *   a reader inside delays later grace periods, because drivers read the reader's word
 *   grace periods end under load, and garbage stays within latent_limit
 *   with DEFERS_MALLOC in the environment, malloc belongs to the copy that serves the program
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include <prudence/prudence.h>
#include <prudence/rcu.h>
#include <prudence/stats.h>

#define UPDATES    20000
#define POLLS      100000
#define READERS    2
#define CHECK(say) ((say) ? (void)0 : fail(__LINE__, #say))

struct route {
    int next_hop;
    char rest[508];
};
static struct route *current;
static int stop;

/* One thread that reads once. */
struct visit {
    pthread_t thread;
    int inside, leave;
};

static void fail(int line, const char *what)
{
    printf("line %d: not so: %s\n", line, what);
    fflush(stdout);
    abort();
}

static void *read_once(void *given)
{
    struct visit *visit = given;

    prudence_read_lock(); /* a thread's first entry is not inlined */
    prudence_read_unlock();
    prudence_read_lock();
    __atomic_store_n(&visit->inside, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&visit->leave, __ATOMIC_ACQUIRE))
        sched_yield();
    CHECK(prudence_read_lock_held());
    prudence_read_unlock();
    CHECK(!prudence_read_lock_held());
    return NULL;
}

static void enter(struct visit *visit)
{
    *visit = (struct visit){.inside = 0};
    CHECK(pthread_create(&visit->thread, NULL, read_once, visit) == 0);
    while (!__atomic_load_n(&visit->inside, __ATOMIC_ACQUIRE))
        sched_yield();
}

static void leave(struct visit *visit)
{
    __atomic_store_n(&visit->leave, 1, __ATOMIC_RELEASE);
    CHECK(pthread_join(visit->thread, NULL) == 0);
}

static int ends(prudence_gp_t cookie)
{
    for (int i = 0; i < POLLS; i++) {
        if (prudence_gp_poll_state(cookie))
            return 1;
        sched_yield();
    }
    return 0;
}

static void two_readers(void)
{
    struct visit early, late;
    prudence_gp_t cookie;

    for (int i = 0; i < 3; i++)
        prudence_synchronize();
    enter(&early);
    cookie = prudence_gp_start_poll();
    enter(&late);
    for (int i = 0; i < 100; i++)
        CHECK(!prudence_gp_poll_state(cookie));
    leave(&early);
    CHECK(ends(cookie));
    leave(&late);
}

static void *read_on(void *unused)
{
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        const struct route *route;

        prudence_read_lock();
        route = prudence_dereference(current);
        for (int i = 0; i < 100; i++)
            CHECK(route->rest[i] == (char)route->next_hop);
        prudence_read_unlock();
    }
    return unused;
}

static void replace(struct prudence_cache *cache, int next_hop)
{
    struct route *fresh = prudence_cache_alloc(cache), *old = current;

    CHECK(fresh);
    fresh->next_hop = next_hop;
    for (unsigned i = 0; i < sizeof fresh->rest; i++)
        fresh->rest[i] = (char)next_hop;
    prudence_assign_pointer(current, fresh);
    prudence_cache_free_deferred(cache, old);
}

static void storm(struct prudence_stats *stats)
{
    struct prudence_cache *cache = prudence_cache_create("routes", sizeof(struct route), NULL);
    pthread_t readers[READERS];

    CHECK(cache);
    replace(cache, 0);
    for (int i = 0; i < READERS; i++)
        CHECK(pthread_create(&readers[i], NULL, read_on, NULL) == 0);
    for (int i = 0; i < UPDATES; i++)
        replace(cache, i);
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < READERS; i++)
        pthread_join(readers[i], NULL);
    CHECK(prudence_stats(stats) == 0);
    prudence_cache_free(cache, current);
    CHECK(prudence_cache_destroy(cache) == 0);
}

/* Checks the same for the other thread-local pointer. */
static void quiescent_states(void)
{
    struct prudence_domain *domain = prudence_domain_create("qsbr", PRUDENCE_DOMAIN_QSBR, NULL);
    prudence_gp_t cookie;

    CHECK(domain);
    prudence_qsbr_online(domain);
    cookie = prudence_domain_start_poll(domain);
    CHECK(!prudence_domain_poll_state(domain, cookie));
    prudence_qsbr_quiescent(domain);
    CHECK(prudence_domain_poll_state(domain, cookie));
    prudence_qsbr_offline(domain);
    CHECK(prudence_domain_destroy(domain) == 0);
}

int linking_run(void);
int linking_run(void)
{
    struct prudence_stats before, after;

    CHECK(prudence_stats(&before) == 0);
    two_readers();
    quiescent_states();
    storm(&after);
    CHECK(after.grace_periods - before.grace_periods >= 10);
    CHECK(after.throttle_expiries == 0 && after.latent_overruns == 0);
    CHECK(after.latent_limit == 1 << 20 && after.bytes_latent_peak <= after.latent_limit);
    for (int i = 0; i < 1000 && getenv("DEFERS_MALLOC"); i++) {
        void *object = malloc(40);

        CHECK(object);
        prudence_free_deferred(object);
    }
    printf("%llu grace periods\n",
           (unsigned long long)(after.grace_periods - before.grace_periods));
    return 0;
}

#ifndef PLUGIN
int main(void)
{
    return linking_run();
}
#endif
