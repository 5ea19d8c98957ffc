/* SPDX-License-Identifier: MIT */
/*
 * prudence-trial MECHANISM: runs a load under one way of synchronization, and prints operations per
 * second, and the number of objects waiting for a grace period. `prudence-advise check` compares
 * both with the model.
 *
 * The data is an array of pointers to objects. A section looks up some objects at random, and each
 * lookup takes some time. An update writes the last object looked up, in place under a lock, or a
 * random one as a new version under RCU and hazard pointers. The time between sections is spun.
 *
 * With --stays one more reader uses an object during the whole run, and the most objects that
 * waited are printed. The reader has the object before the first update, and uses it at the end: if
 * the object was handed out again, the program says so and fails.
 */
#include <argp.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <prudence/hazard.h>
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
    /* Readers that may stay: begins such a section, and returns the first object. NULL: none. */
    const uint64_t *(*stay)(void);
    void (*leave)(void);
    enum prudence_domain_kind domain; /* of the objects */
};

static struct {
    uint64_t threads, operations, live, size, buckets, lookup, update, between; /* times in ns */
    double updates, seconds;
    bool stays;
    const struct mechanism *mechanism;
} load = {.threads = 1, .operations = 1, .live = 1000, .size = 64, .buckets = 1, .seconds = 0.2};

static void **objects;                                           /* of uint64_t */
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

    self->sum += *(const uint64_t *)prudence_dereference(objects[index]);
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

    __atomic_store_n((uint64_t *)objects[index], self->random, __ATOMIC_RELAXED);
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
            __atomic_store_n((uint64_t *)objects[index], self->random, __ATOMIC_RELAXED);
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

static struct padded_spinlock *lock_of(uint64_t index)
{
    /* With many buckets an object belongs to one bucket, so two updates of the object take the same
     * lock. */
    return load.buckets > 1 ? &parts[index % load.buckets] : &gate;
}

/* Replaces an object by a new version. The caller has the object's lock. Returns the old one. */
static void *replace(struct crew_member *self, uint64_t index)
{
    uint64_t *fresh = prudence_cache_alloc(cache);
    void *old = objects[index];

    if (!fresh)
        fail("prudence_cache_alloc");
    memcpy(fresh, old, load.size);
    *fresh = self->random;
    spin(turns_of_update);
    prudence_assign_pointer(objects[index], (void *)fresh);
    return old;
}

/* The objects that are looked up may belong to other locks, so this is a section, too. */
static void rcu_update(struct crew_member *self)
{
    uint64_t index = crew_random(self) % load.live;
    struct padded_spinlock *bucket = lock_of(index);
    void *old;

    pthread_spin_lock(&bucket->lock);
    rcu_read(self);
    old = replace(self, index);
    pthread_spin_unlock(&bucket->lock);
    prudence_cache_free_deferred(cache, old);
}

static const uint64_t *rcu_stay(void)
{
    prudence_read_lock();
    return prudence_dereference(objects[0]);
}

static void rcu_leave(void)
{
    prudence_read_unlock();
}

static struct prudence_hazard *take_slot(void)
{
    struct prudence_hazard *hazard = prudence_hazard_acquire();

    if (!hazard)
        fail("prudence_hazard_acquire");
    return hazard;
}

/* A slot for the section: a lookup ends the protection of the one before. */
static void hazard_read(struct crew_member *self)
{
    struct prudence_hazard *hazard = take_slot();

    for (uint64_t i = 0; i < load.operations; i++) {
        uint64_t index = crew_random(self) % load.live;

        self->sum += *(const uint64_t *)prudence_hazard_protect(hazard, &objects[index]);
        spin(turns_of_lookup);
    }
    prudence_hazard_release(hazard);
}

static void hazard_update(struct crew_member *self)
{
    uint64_t index = crew_random(self) % load.live;
    struct padded_spinlock *bucket = lock_of(index);
    void *old;

    pthread_spin_lock(&bucket->lock);
    hazard_read(self);
    old = replace(self, index);
    pthread_spin_unlock(&bucket->lock);
    prudence_cache_free_deferred(cache, old);
}

static struct prudence_hazard *staying;

static const uint64_t *hazard_stay(void)
{
    staying = take_slot();
    return prudence_hazard_protect(staying, &objects[0]);
}

static void hazard_leave(void)
{
    prudence_hazard_release(staying);
}

#define LOCK(name)                                                                                 \
    {                                                                                              \
#name, name##_read, name##_update, NULL, NULL, PRUDENCE_DOMAIN_MEMB                        \
    }

static const struct mechanism mechanisms[] = {
    LOCK(mutex),
    LOCK(spinlock),
    LOCK(rwlock),
    LOCK(brlock),
    LOCK(buckets),
    LOCK(seqlock),
    {"rcu", rcu_read, rcu_update, rcu_stay, rcu_leave, PRUDENCE_DOMAIN_MEMB},
    {"hazard", hazard_read, hazard_update, hazard_stay, hazard_leave, PRUDENCE_DOMAIN_HAZARD},
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

static struct prudence_cache *create_cache(void)
{
    struct prudence_cache_attr attr = {.size = sizeof attr};

    if (load.mechanism->domain == PRUDENCE_DOMAIN_HAZARD) {
        attr.domain = prudence_domain_create("trial", PRUDENCE_DOMAIN_HAZARD, NULL);
        if (!attr.domain)
            fail("prudence_domain_create");
    }
    return prudence_cache_create("trial", load.size, &attr);
}

static void prepare(void)
{
    uint64_t part_count = load.threads > load.buckets ? load.threads : load.buckets;

    turns_of_lookup = turns_of(load.lookup);
    turns_of_update = turns_of(load.update);
    turns_between = turns_of(load.between);
    cache = create_cache();
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
 * without CPU can raise it to any number; with a reader that stays, the highest. */
static void look(unsigned number)
{
    struct prudence_cache_stats stats;

    if (prudence_cache_stats(cache, &stats))
        fail("prudence_cache_stats");
    waiting[number] = (double)stats.objects_latent;
}

static double run(void)
{
    struct crew crew = {.threads = (unsigned)load.threads, .turn = turn, .look = look};
    double rate = crew_rate(&crew, load.seconds);

    if (rate < 0)
        fail("threads");
    return rate;
}

/* Does as run(), while this thread is a reader that stays. The first object is replaced at once, so
 * that it waits for this reader even if the load does not update it. */
static double run_with_reader(void)
{
    struct crew_member self;
    const uint64_t *object = load.mechanism->stay();
    uint64_t before = *object;
    double rate;

    crew_member_init(&self, CREW_MOST);
    prudence_cache_free_deferred(cache, replace(&self, 0));
    rate = run();
    if (__atomic_load_n(object, __ATOMIC_RELAXED) != before) {
        fprintf(stderr, "prudence-trial: an object was handed out again while a reader used it\n");
        exit(EXIT_FAILURE);
    }
    load.mechanism->leave();
    return rate;
}

/* -------------------------------------------------------------------------------------- options */

enum {
    THREADS = 256,
    UPDATES,
    OPERATIONS,
    LOOKUP,
    UPDATE,
    BETWEEN,
    LIVE,
    SIZE,
    BUCKETS,
    STAYS,
    SECONDS
};

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
    case STAYS:
        load.stays = true;
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
            argp_error(state,
                       "'%s' is not one of mutex, spinlock, rwlock, brlock, buckets, seqlock, rcu "
                       "and hazard",
                       text);
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "MECHANISM is missing");
        return 0;
    case ARGP_KEY_SUCCESS:
        if (load.stays && !load.mechanism->stay)
            argp_error(state, "--stays is for rcu and hazard, not for %s", load.mechanism->name);
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
        {"stays", STAYS, NULL, 0, "with a reader that stays (only rcu and hazard)", 0},
        {"seconds", SECONDS, "S", 0, "time that is measured (0.2)", 0},
        {0},
    };
    const struct argp argp = {
        options, parse, "MECHANISM", "Operations a second of a load under one mechanism.",
        NULL,    NULL,  NULL};

    double rate;

    argp_parse(&argp, argc, argv, 0, NULL, NULL);
    prepare();
    update_below = (uint64_t)(load.updates * (double)CREW_RANDOM_END);
    rate = load.stays ? run_with_reader() : run();
    printf("%.6g %.0f\n", rate,
           load.stays ? numbers_quantile(waiting, CREW_LOOKS, 1)
                      : numbers_median(waiting, CREW_LOOKS));
    return fflush(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
}
