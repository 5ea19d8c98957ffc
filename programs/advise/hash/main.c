/* SPDX-License-Identifier: MIT */
/*
 * prudence-hash-trial MECHANISM: the thesis' hash-table benchmark under one mechanism. Prints
 * operations per second, the number of elements waiting for a grace period, grace periods per
 * second, and the share of CPU time that the process got. `prudence-advise hash` runs it for the
 * figures of chapters 2 and 8.
 */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <prudence/rcu.h>
#include <prudence/stats.h>

#include "arguments.h"
#include "hash.h"
#include "measure.h"
#include "statistics.h"

#define SLICE 256 /* operations between checks for the end */

static struct {
    const struct hash_mechanism *mechanism;
    double updates, seconds;
    uint64_t lambda;
} trial = {.seconds = 0.2};

static double waiting[CREW_LOOKS];
static uint64_t grace_periods_before, began, cpu_before; /* ns */
static double cpu_share;

static void turn(struct crew_member *self)
{
    trial.mechanism->work(self, SLICE);
}

static uint64_t grace_periods(void)
{
    struct prudence_domain_stats stats;

    if (prudence_domain_stats(hash_domain, &stats))
        hash_fault("prudence_domain_stats");
    return stats.grace_periods;
}

static void begin(void)
{
    grace_periods_before = grace_periods();
    cpu_before = process_cpu_ns();
    began = now_ns();
}

static void look(unsigned number)
{
    struct prudence_cache_stats stats;

    if (prudence_cache_stats(hash_cache, &stats))
        hash_fault("prudence_cache_stats");
    waiting[number] = (double)stats.objects_latent;
    cpu_share = (double)(process_cpu_ns() - cpu_before) / (double)(now_ns() - began) /
                (double)hash_load.threads;
}

enum { THREADS = 256, BUCKETS, UPDATES, LAMBDA, SECONDS };

static error_t parse(int key, char *text, struct argp_state *state)
{
    char *end;

    switch (key) {
    case THREADS:
        hash_load.threads = argument_number(state, key, text, 1, CREW_MOST);
        return 0;
    case BUCKETS:
        hash_load.buckets = argument_number(state, key, text, 2, 1 << 24);
        if (hash_load.buckets & (hash_load.buckets - 1))
            argument_refuse(state, key, text, "a power of two");
        return 0;
    case UPDATES:
        trial.updates = strtod(text, &end);
        if (end == text || *end || !(trial.updates >= 0 && trial.updates <= 1))
            argument_refuse(state, key, text, "a share from 0 to 1");
        return 0;
    case LAMBDA:
        trial.lambda = argument_number(state, key, text, 0, 1000000);
        return 0;
    case SECONDS:
        trial.seconds = argument_real(state, key, text, 86400);
        return 0;
    case ARGP_KEY_ARG:
        if (state->arg_num)
            argp_error(state, "'%s': there is one mechanism", text);
        trial.mechanism = &hash_mechanisms[argument_name(state, key, text, hash_mechanism_name)];
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "MECHANISM is missing");
        return 0;
    case ARGP_KEY_SUCCESS:
        if (!strcmp(trial.mechanism->name, "ideal") && hash_load.threads > 1)
            argp_error(state, "ideal does not lock: it is for one thread");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int main(int argc, char **argv)
{
    const struct argp_option options[] = {
        {"threads", THREADS, "N", 0, "threads (1)", 0},
        {"buckets", BUCKETS, "N", 0, "buckets, a power of two, and as many elements (32)", 0},
        {"updates", UPDATES, "X", 0, "share of the operations that remove or add (0)", 0},
        {"lambda", LAMBDA, "N", 0,
         "drive a grace period after N operations of each thread (0: as the library "
         "decides)",
         0},
        {"seconds", SECONDS, "S", 0, "time that is measured (0.2)", 0},
        {0},
    };
    const struct argp argp = {
        options,     parse,
        "MECHANISM", "Operations a second on the hash table of the thesis, under one mechanism.",
        NULL,        NULL,
        NULL};
    struct crew crew = {.turn = turn, .begin = begin, .look = look, .pinned = true};
    double rate;

    argp_parse(&argp, argc, argv, 0, NULL, NULL);
    crew.threads = (unsigned)hash_load.threads;
    hash_load.pairs_below = hash_pairs_below(trial.updates);
    /* `lambda` operations per thread, counted over all threads, between two grace periods */
    hash_load.drive_each = trial.lambda * hash_load.threads;
    hash_prepare(trial.mechanism);
    rate = crew_rate(&crew, trial.seconds);
    if (rate < 0) {
        fprintf(stderr, "prudence-hash-trial: threads: %s\n", strerror(errno));
        return EXIT_FAILURE;
    }
    printf("%.6g %.0f %.6g %.3f\n", rate, numbers_median(waiting, CREW_LOOKS),
           (double)(grace_periods() - grace_periods_before) / trial.seconds, cpu_share);
    return fflush(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
}
