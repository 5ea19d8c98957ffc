/* SPDX-License-Identifier: MIT */
/* As in liburcu-bp, threads that never registered read in every kind of domain, and leave
 * nothing behind. */
#define _GNU_SOURCE

#include <pthread.h>

#include <prudence/rcu.h>
#include <prudence/stats.h>

#include "support/suite.h"

static void read_in(struct prudence_domain *domain, enum prudence_domain_kind kind)
{
    if (kind == PRUDENCE_DOMAIN_QSBR)
        prudence_qsbr_online(domain);
    prudence_domain_read_lock(domain);
    assert_true(prudence_domain_read_lock_held(domain));
    prudence_domain_read_unlock(domain);
    if (kind == PRUDENCE_DOMAIN_QSBR)
        prudence_qsbr_offline(domain);
}

struct reading {
    struct prudence_domain *domain;
    enum prudence_domain_kind kind;
};

static void *read_in_thread(void *argument)
{
    struct reading *reading = argument;

    for (unsigned i = 0; i < 100; i++)
        read_in(reading->domain, reading->kind);
    return NULL;
}

/* Exits online. A qsbr thread may do so, because it no longer holds pointers. */
static void *exit_online(void *domain)
{
    prudence_qsbr_online(domain);
    return NULL;
}

static uint64_t readers_of(struct prudence_domain *domain)
{
    struct prudence_domain_stats stats;

    prudence_domain_stats(domain, &stats);
    return stats.readers;
}

TEST(in_every_kind)
{
    static const enum prudence_domain_kind kinds[] = {PRUDENCE_DOMAIN_MEMB, PRUDENCE_DOMAIN_QSBR,
                                                      PRUDENCE_DOMAIN_SRCU, PRUDENCE_DOMAIN_MANUAL};

    for (unsigned i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct reading reading = {prudence_domain_create("any", kinds[i], NULL), kinds[i]};
        pthread_t threads[20];

        for (unsigned t = 0; t < 20; t++)
            pthread_create(&threads[t], NULL, read_in_thread, &reading);
        for (unsigned t = 0; t < 20; t++)
            pthread_join(threads[t], NULL);
        assert_int_equal(readers_of(reading.domain), 0);
        if (kinds[i] == PRUDENCE_DOMAIN_QSBR) {
            pthread_create(&threads[0], NULL, exit_online, reading.domain);
            pthread_join(threads[0], NULL);
            assert_int_equal(prudence_domain_synchronize(reading.domain), 0);
        }
        assert_int_equal(prudence_domain_destroy(reading.domain), 0);
    }
}

SUITE()
