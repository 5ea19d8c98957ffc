/* SPDX-License-Identifier: MIT */
/*
 * prudence-trial MECHANISM: runs a load under one way of synchronization, and prints operations per
 * second, and the number of objects waiting for a grace period. `prudence-advise check` compares
 * both with the model.
 *
 * The data is an array of pointers to objects. A section looks up some objects at random, and each
 * lookup takes some time. An update writes the last object looked up, in place under a lock, or a
 * random one as a new version under RCU. The time between sections is spun, too.
 */
#include <argp.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <prudence/prudence.h>
#include <prudence/rcu.h>
#include <prudence/stats.h>

#include "arguments.h"
#include "crew.h"
#include "measure.h"
#include "statistics.h"

struct padded_spinlock {
    pthread_spinlock_t lock;
} __attribute__((aligned(APART)));

struct mechanism {
    const char *name;
    void (*read)(struct crew_member *self);
    void (*update)(struct crew_member *self);
};

static struct {
    uint64_t threads, operations, live, size, buckets, lookup, update, between; /* times in ns */
    double updates, seconds;
    const struct mechanism *mechanism;
} load = {.threads = 1, .operations = 1, .live = 1000, .size = 64, .buckets = 1, .seconds = 0.2};

static uint64_t **objects;
static uint64_t turns_of_lookup, turns_of_update, turns_between; /* of spin() */
static uint64_t update_below;                                    /* bound of crew_random() */
static double waiting[CREW_LOOKS];
static struct prudence_cache *cache;

static pthread_mutex_t mutex __attribute__((aligned(APART))) = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock __attribute__((aligned(APART))) = PTHREAD_RWLOCK_INITIALIZER;
static struct padded_spinlock gate, *parts; /* one part per thread, or per bucket */
static uint64_t sequence __attribute__((aligned(APART)));

static void fail(const char *what)
{
    fprintf(stderr, "prudence-trial: %s: %s\n", what, strerror(errno));
    exit(EXIT_FAILURE);
}

/* ------------------------------------------------------------------------------------- the load */

static void spin(uint64_t turns)
{
    for (uint64_t i = 0; i < turns; i++)
        __asm__ __volatile__("" : "+r"(i));
}

static uint64_t look_up_one(struct crew_member *self)
{
    uint64_t index = crew_random(self) % load.live;

    self->sum += *prudence_dereference(objects[index]);
    spin(turns_of_lookup);
    return index;
}

static uint64_t look_up(struct crew_member *self)
{
    uint64_t index = 0;

    for (uint64_t i = 0; i < load.operations; i++)
        index = look_up_one(self);
    return index;
}

static void write_in_place(struct crew_member *self)
{
    uint64_t index = look_up(self);

    __atomic_store_n(objects[index], self->random, __ATOMIC_RELAXED);
    spin(turns_of_update);
}

/* ----------------------------------------------------------------------------------- mechanisms */

static void mutex_read(struct crew_member *self)
{
    pthread_mutex_lock(&mutex);
    look_up(self);
    pthread_mutex_unlock(&mutex);
}

static void mutex_update(struct crew_member *self)
{
    pthread_mutex_lock(&mutex);
    write_in_place(self);
    pthread_mutex_unlock(&mutex);
}

static void spinlock_read(struct crew_member *self)
{
    pthread_spin_lock(&gate.lock);
    look_up(self);
    pthread_spin_unlock(&gate.lock);
}

static void spinlock_update(struct crew_member *self)
{
    pthread_spin_lock(&gate.lock);
    write_in_place(self);
    pthread_spin_unlock(&gate.lock);
}

static void rwlock_read(struct crew_member *self)
{
    pthread_rwlock_rdlock(&rwlock);
    look_up(self);
    pthread_rwlock_unlock(&rwlock);
}

static void rwlock_update(struct crew_member *self)
{
    pthread_rwlock_wrlock(&rwlock);
    write_in_place(self);
    pthread_rwlock_unlock(&rwlock);
}

static void brlock_read(struct crew_member *self)
{
    pthread_spin_lock(&parts[self->number].lock);
    look_up(self);
    pthread_spin_unlock(&parts[self->number].lock);
}

static void brlock_update(struct crew_member *self)
{
    pthread_spin_lock(&gate.lock);
    for (uint64_t i = 0; i < load.threads; i++)
        pthread_spin_lock(&parts[i].lock);
    write_in_place(self);
    for (uint64_t i = 0; i < load.threads; i++)
        pthread_spin_unlock(&parts[i].lock);
    pthread_spin_unlock(&gate.lock);
}

static void buckets_read(struct crew_member *self)
{
    for (uint64_t i = 0; i < load.operations; i++) {
        struct padded_spinlock *bucket = &parts[crew_random(self) % load.buckets];

        pthread_spin_lock(&bucket->lock);
        look_up_one(self);
        pthread_spin_unlock(&bucket->lock);
    }
}

static void buckets_update(struct crew_member *self)
{
    for (uint64_t i = 0; i < load.operations; i++) {
        struct padded_spinlock *bucket = &parts[crew_random(self) % load.buckets];
        uint64_t index;

        pthread_spin_lock(&bucket->lock);
        index = look_up_one(self);
        if (i + 1 == load.operations) {
            __atomic_store_n(objects[index], self->random, __ATOMIC_RELAXED);
            spin(turns_of_update);
        }
        pthread_spin_unlock(&bucket->lock);
    }
}

static void seqlock_read(struct crew_member *self)
{
    for (;;) {
        uint64_t before = __atomic_load_n(&sequence, __ATOMIC_ACQUIRE);

        if (before & 1)
            continue;
        look_up(self);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (__atomic_load_n(&sequence, __ATOMIC_RELAXED) == before)
            return;
    }
}

static void seqlock_update(struct crew_member *self)
{
    pthread_spin_lock(&gate.lock);
    __atomic_store_n(&sequence, sequence + 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    write_in_place(self);
    __atomic_store_n(&sequence, sequence + 1, __ATOMIC_RELEASE);
    pthread_spin_unlock(&gate.lock);
}

static void rcu_read(struct crew_member *self)
{
    prudence_read_lock();
    look_up(self);
    prudence_read_unlock();
}

/* With many buckets an object belongs to one bucket, so two updates of the object take the same
 * lock. */
static void rcu_update(struct crew_member *self)
{
    uint64_t index = crew_random(self) % load.live;
    struct padded_spinlock *bucket = load.buckets > 1 ? &parts[index % load.buckets] : &gate;
    uint64_t *fresh, *old;

    pthread_spin_lock(&bucket->lock);
    look_up(self);
    old = objects[index];
    fresh = prudence_cache_alloc(cache);
    if (!fresh)
        fail("prudence_cache_alloc");
    memcpy(fresh, old, load.size);
    *fresh = self->random;
    spin(turns_of_update);
    prudence_assign_pointer(objects[index], fresh);
    pthread_spin_unlock(&bucket->lock);
    prudence_cache_free_deferred(cache, old);
}

static const struct mechanism mechanisms[] = {
    {"mutex", mutex_read, mutex_update},
    {"spinlock", spinlock_read, spinlock_update},
    {"rwlock", rwlock_read, rwlock_update},
    {"brlock", brlock_read, brlock_update},
    {"buckets", buckets_read, buckets_update},
    {"seqlock", seqlock_read, seqlock_update},
    {"rcu", rcu_read, rcu_update},
};

/* ---------------------------------------------------------------------------------------- a run */

static void turn(struct crew_member *self)
{
    if (crew_random(self) < update_below)
        load.mechanism->update(self);
    else
        load.mechanism->read(self);
    spin(turns_between);
    self->done += load.operations;
}

/* Returns how many turns of spin() take that time. */
static uint64_t turns_of(uint64_t nanoseconds)
{
    static double of_turn;

    for (unsigned i = 0; i < 20 && (i || !of_turn); i++) {
        uint64_t start = now_ns();
        double took;

        spin(100000);
        took = (double)(now_ns() - start) / 100000;
        if (!of_turn || took < of_turn)
            of_turn = took;
    }
    return (uint64_t)((double)nanoseconds / of_turn);
}

static void prepare(void)
{
    uint64_t part_count = load.threads > load.buckets ? load.threads : load.buckets;

    turns_of_lookup = turns_of(load.lookup);
    turns_of_update = turns_of(load.update);
    turns_between = turns_of(load.between);
    cache = prudence_cache_create("trial", load.size, NULL);
    objects = calloc(load.live, sizeof *objects);
    parts = aligned_alloc(APART, part_count * sizeof *parts);
    if (!cache || !objects || !parts)
        fail("memory");
    for (uint64_t i = 0; i < part_count; i++)
        pthread_spin_init(&parts[i].lock, PTHREAD_PROCESS_PRIVATE);
    pthread_spin_init(&gate.lock, PTHREAD_PROCESS_PRIVATE);
    for (uint64_t i = 0; i < load.live; i++) {
        objects[i] = prudence_cache_alloc(cache);
        if (!objects[i])
            fail("memory for the objects");
        memset(objects[i], 1, load.size);
    }
}

/* Samples the number of objects waiting for grace periods. The median is used, because a reader
 * without CPU can raise it to any number. */
static void look(unsigned number)
{
    struct prudence_cache_stats stats;

    if (prudence_cache_stats(cache, &stats))
        fail("prudence_cache_stats");
    waiting[number] = (double)stats.objects_latent;
}

/* -------------------------------------------------------------------------------------- options */

enum { THREADS = 256, UPDATES, OPERATIONS, LOOKUP, UPDATE, BETWEEN, LIVE, SIZE, BUCKETS, SECONDS };

static error_t parse(int key, char *text, struct argp_state *state)
{
    char *end;

    switch (key) {
    case THREADS:
        load.threads = argument_number(state, key, text, 1, CREW_MOST);
        return 0;
    case OPERATIONS:
        load.operations = argument_number(state, key, text, 1, 1000000);
        return 0;
    case LOOKUP:
        load.lookup = argument_number(state, key, text, 0, 1000000000);
        return 0;
    case UPDATE:
        load.update = argument_number(state, key, text, 0, 1000000000);
        return 0;
    case BETWEEN:
        load.between = argument_number(state, key, text, 0, 1000000000);
        return 0;
    case LIVE:
        load.live = argument_number(state, key, text, 1, UINT64_C(1) << 32);
        return 0;
    case SIZE:
        load.size = argument_number(state, key, text, sizeof(uint64_t), 1 << 20);
        return 0;
    case BUCKETS:
        load.buckets = argument_number(state, key, text, 1, 1 << 24);
        return 0;
    case UPDATES:
        load.updates = strtod(text, &end);
        if (end == text || *end || !(load.updates >= 0 && load.updates <= 1))
            argument_refuse(state, key, text, "a share from 0 to 1");
        return 0;
    case SECONDS:
        load.seconds = argument_real(state, key, text, 86400);
        return 0;
    case ARGP_KEY_ARG:
        for (unsigned i = 0; i < sizeof mechanisms / sizeof *mechanisms; i++)
            if (!strcmp(text, mechanisms[i].name))
                load.mechanism = &mechanisms[i];
        if (!load.mechanism || state->arg_num)
            argp_error(
                state,
                "'%s' is not one of mutex, spinlock, rwlock, brlock, buckets, seqlock and rcu",
                text);
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "MECHANISM is missing");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int main(int argc, char **argv)
{
    const struct argp_option options[] = {
        {"threads", THREADS, "N", 0, "threads (1)", 0},
        {"updates", UPDATES, "X", 0, "share of the sections that update (0)", 0},
        {"operations", OPERATIONS, "N", 0, "lookups in a section (1)", 0},
        {"lookup", LOOKUP, "NS", 0, "time of a lookup (0)", 0},
        {"update", UPDATE, "NS", 0, "time that an update takes longer (0)", 0},
        {"between", BETWEEN, "NS", 0, "time between sections (0)", 0},
        {"live", LIVE, "N", 0, "objects (1000)", 0},
        {"size", SIZE, "BYTES", 0, "of an object (64)", 0},
        {"buckets", BUCKETS, "N", 0, "locks of buckets (1)", 0},
        {"seconds", SECONDS, "S", 0, "time that is measured (0.2)", 0},
        {0},
    };
    const struct argp argp = {
        options, parse, "MECHANISM", "Operations a second of a load under one mechanism.",
        NULL,    NULL,  NULL};

    struct crew crew = {.turn = turn, .look = look};
    double rate;

    argp_parse(&argp, argc, argv, 0, NULL, NULL);
    prepare();
    crew.threads = (unsigned)load.threads;
    update_below = (uint64_t)(load.updates * (double)CREW_RANDOM_END);
    rate = crew_rate(&crew, load.seconds);
    if (rate < 0)
        fail("threads");
    printf("%.6g %.0f\n", rate, numbers_median(waiting, CREW_LOOKS));
    return fflush(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
}
