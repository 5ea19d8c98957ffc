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

#include <prudence/prudence.h>
#include <prudence/rcu.h>

#include "measure.h"

enum what { READER, GRACE_PERIOD, GRACE_PERIOD_BESIDE, PAIR, QUIESCENT, GRACE_PERIOD_QSBR };

struct order {
    enum what what;
    uint64_t count;
};

static struct mode {
    const char *option;
    pid_t child;
    int orders, answers; /* pipe ends of this process */
} modes[] = {{.option = "free"}, {.option = "fenced"}};

/* ----------------------------------------------------------------------------------- in a child */

static struct prudence_cache *cache;
static struct prudence_domain *qsbr;

static double read_sections(uint64_t count)
{
    uint64_t start = now_ns();

    for (uint64_t i = 0; i < count; i++) {
        prudence_read_lock();
        prudence_read_unlock();
    }
    return (double)(now_ns() - start);
}

static double synchronize(uint64_t count)
{
    uint64_t start = now_ns();

    for (uint64_t i = 0; i < count; i++)
        prudence_synchronize();
    return (double)(now_ns() - start);
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

static double synchronize_beside(uint64_t count)
{
    double took;

    start_partner(cpus[1], read_on, NULL);
    took = synchronize(count);
    stop_partner();
    return took;
}

static double pairs(uint64_t count)
{
    uint64_t start = now_ns();

    for (uint64_t i = 0; i < count; i++) {
        void *object = prudence_cache_alloc(cache);

        if (!object)
            fail("prudence_cache_alloc");
        *(volatile char *)object = 1;
        prudence_cache_free_deferred(cache, object);
    }
    return (double)(now_ns() - start);
}

static double quiescent(uint64_t count)
{
    uint64_t start;
    double took;

    prudence_qsbr_online(qsbr);
    start = now_ns();
    for (uint64_t i = 0; i < count; i++)
        prudence_qsbr_quiescent(qsbr);
    took = (double)(now_ns() - start);
    prudence_qsbr_offline(qsbr);
    return took;
}

static double synchronize_qsbr(uint64_t count)
{
    uint64_t start = now_ns();

    for (uint64_t i = 0; i < count; i++)
        if (prudence_domain_synchronize(qsbr))
            fail("prudence_domain_synchronize");
    return (double)(now_ns() - start);
}

static double carry_out(const struct order *order)
{
    switch (order->what) {
    case READER:
        return read_sections(order->count);
    case GRACE_PERIOD:
        return synchronize(order->count);
    case GRACE_PERIOD_BESIDE:
        return synchronize_beside(order->count);
    case PAIR:
        return pairs(order->count);
    case QUIESCENT:
        return quiescent(order->count);
    case GRACE_PERIOD_QSBR:
        return synchronize_qsbr(order->count);
    }
    return -1;
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
    if (!cache || !qsbr)
        fail("a cache and a domain");
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

static double ask(const struct mode *mode, enum what what, uint64_t count)
{
    struct order order = {what, count};
    double took;

    if (write(mode->orders, &order, sizeof order) != sizeof order ||
        read(mode->answers, &took, sizeof took) != sizeof took)
        fail("the process that measures grace periods has ended");
    return took;
}

double time_reader_free(const struct measurement *measurement, uint64_t count)
{
    (void)measurement;
    return ask(&modes[0], READER, count);
}

double time_reader_fenced(const struct measurement *measurement, uint64_t count)
{
    (void)measurement;
    return ask(&modes[1], READER, count);
}

double time_quiescent(const struct measurement *measurement, uint64_t count)
{
    (void)measurement;
    return ask(&modes[0], QUIESCENT, count);
}

double time_grace_period_free(const struct measurement *measurement, uint64_t count)
{
    (void)measurement;
    return ask(&modes[0], GRACE_PERIOD, count);
}

double time_grace_period_fenced(const struct measurement *measurement, uint64_t count)
{
    (void)measurement;
    return ask(&modes[1], GRACE_PERIOD, count);
}

double time_grace_period_qsbr(const struct measurement *measurement, uint64_t count)
{
    (void)measurement;
    return ask(&modes[0], GRACE_PERIOD_QSBR, count);
}

double time_grace_period_beside_free(const struct measurement *measurement, uint64_t count)
{
    (void)measurement;
    return ask(&modes[0], GRACE_PERIOD_BESIDE, count);
}

double time_grace_period_beside_fenced(const struct measurement *measurement, uint64_t count)
{
    (void)measurement;
    return ask(&modes[1], GRACE_PERIOD_BESIDE, count);
}

double time_pair_free(const struct measurement *measurement, uint64_t count)
{
    (void)measurement;
    return ask(&modes[0], PAIR, count);
}

double time_pair_fenced(const struct measurement *measurement, uint64_t count)
{
    (void)measurement;
    return ask(&modes[1], PAIR, count);
}
