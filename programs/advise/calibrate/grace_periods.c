/* SPDX-License-Identifier: MIT */
/* Prudence's readers, grace periods and deferrals, in child processes with fence-free or fenced
 * readers. */
#define _GNU_SOURCE
#include "calibrate.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <prudence/hazard.h>
#include <prudence/prudence.h>
#include <prudence/rcu.h>

struct order {
    enum library_operation what;
    uint64_t count;
};

static struct mode {
    const char *option;
    pid_t child;
    int orders, answers; /* pipe ends of this process */
} modes[] = {[false] = {.option = "free"}, [true] = {.option = "fenced"}}; /* by `fenced` */

/* ----------------------------------------------------------------------------------- in a child */

static struct prudence_cache *cache, *hazard_cache;
static struct prudence_domain *qsbr;

static void read_sections(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        prudence_read_lock();
        prudence_read_unlock();
    }
}

static void synchronize(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        prudence_synchronize();
}

static void read_on(void *unused)
{
    (void)unused;
    while (!partner_over())
        for (unsigned i = 0; i < 100; i++) {
            prudence_read_lock();
            prudence_read_unlock();
        }
}

static double synchronize_during_reads(uint64_t count)
{
    double took;

    start_partner(cpus[1], read_on, NULL);
    took = time_of(synchronize, count);
    stop_partner();
    return took;
}

static void pairs_of(struct prudence_cache *of, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        void *object = prudence_cache_alloc(of);

        if (!object)
            fail("prudence_cache_alloc");
        *(volatile char *)object = 1;
        prudence_cache_free_deferred(of, object);
    }
}

static void pairs(uint64_t count)
{
    pairs_of(cache, count);
}

static void hazard_pairs(uint64_t count)
{
    pairs_of(hazard_cache, count);
}

/* Takes a slot, protects an object, and gives the slot back. */
static void hazard_sections(uint64_t count)
{
    static void *link = &link;

    for (uint64_t i = 0; i < count; i++) {
        struct prudence_hazard *hazard = prudence_hazard_acquire();

        if (!hazard)
            fail("prudence_hazard_acquire");
        prudence_hazard_protect(hazard, &link);
        prudence_hazard_release(hazard);
    }
}

static void qsbr_quiescent_states(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        prudence_qsbr_quiescent(qsbr);
}

static double time_quiescent_states(uint64_t count)
{
    double took;

    prudence_qsbr_online(qsbr);
    took = time_of(qsbr_quiescent_states, count);
    prudence_qsbr_offline(qsbr);
    return took;
}

static void synchronize_qsbr(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (prudence_domain_synchronize(qsbr))
            fail("prudence_domain_synchronize");
}

static double carry_out(const struct order *order)
{
    switch (order->what) {
    case READER:
        return time_of(read_sections, order->count);
    case GRACE_PERIOD:
        return time_of(synchronize, order->count);
    case GRACE_PERIOD_BESIDE:
        return synchronize_during_reads(order->count);
    case PAIR:
        return time_of(pairs, order->count);
    case HAZARD:
        return time_of(hazard_sections, order->count);
    case HAZARD_PAIR:
        return time_of(hazard_pairs, order->count);
    case QUIESCENT:
        return time_quiescent_states(order->count);
    case GRACE_PERIOD_QSBR:
        return time_of(synchronize_qsbr, order->count);
    }
    return -1;
}

static struct prudence_cache *create_hazard_cache(void)
{
    struct prudence_cache_attr attr = {.size = sizeof attr};

    attr.domain = prudence_domain_create("calibrate", PRUDENCE_DOMAIN_HAZARD, NULL);
    return attr.domain ? prudence_cache_create("calibrate", 64, &attr) : NULL;
}

/* Serves orders until the parent ends or closes its pipe. */
static void serve(const struct mode *mode, int orders, int answers)
{
    struct order order;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    pin(cpus[0]);
    if (prudence_option_set("reader_mode", mode->option))
        fail("reader_mode");
    cache = prudence_cache_create("calibrate", 64, NULL);
    qsbr = prudence_domain_create("calibrate", PRUDENCE_DOMAIN_QSBR, NULL);
    hazard_cache = create_hazard_cache();
    if (!cache || !qsbr || !hazard_cache)
        fail("caches and domains");
    while (read(orders, &order, sizeof order) == sizeof order) {
        double took = carry_out(&order);

        if (write(answers, &took, sizeof took) != sizeof took)
            break;
    }
    _exit(EXIT_SUCCESS);
}

/* -------------------------------------------------------------------------------- in the parent */

void start_modes(void)
{
    for (unsigned i = 0; i < sizeof modes / sizeof *modes; i++) {
        int orders[2], answers[2];

        if (pipe2(orders, O_CLOEXEC) || pipe2(answers, O_CLOEXEC))
            fail("pipe");
        modes[i].child = fork();
        if (modes[i].child < 0)
            fail("fork");
        if (modes[i].child == 0) {
            close(orders[1]);
            serve(&modes[i], orders[0], answers[1]);
        }
        close(orders[0]);
        close(answers[1]);
        modes[i].orders = orders[1];
        modes[i].answers = answers[0];
    }
}

void stop_modes(void)
{
    for (unsigned i = 0; i < sizeof modes / sizeof *modes; i++) {
        close(modes[i].orders);
        close(modes[i].answers);
        kill(modes[i].child, SIGKILL);
        waitpid(modes[i].child, NULL, 0);
    }
}

double time_library(const struct measurement *measurement, uint64_t count)
{
    const struct mode *mode = &modes[measurement->fenced];
    struct order order = {measurement->of_library, count};
    double took;

    if (write(mode->orders, &order, sizeof order) != sizeof order ||
        read(mode->answers, &took, sizeof took) != sizeof took)
        fail("the process that measures grace periods has ended");
    return took;
}
