/* SPDX-License-Identifier: MIT */
/*
 * Hazard pointers of Concurrency Kit (M. Michael, 2004) over malloc. A reader announces the pointer
 * with a fence and loads it again; if it has changed, the reader starts over. A thread that retires
 * scans all announced pointers once in RETIRED_MOST objects.
 */
#include <ck_hp.h>
#include <stdlib.h>

#include "version.h"

#define RETIRED_MOST 64

struct retired {
    struct version version; /* first */
    ck_hp_hazard_t hazard;
};

static ck_hp_t hazards;
static __thread ck_hp_record_t *record;
static __thread void *announced;
static struct retired *current;

static void free_version(void *object)
{
    version_spoil(object);
    free(object);
}

static void start(void)
{
    ck_hp_init(&hazards, 1, RETIRED_MOST, free_version);
}

/* Records stay, because hazards keeps a list of them; so does `announced` until the process
 * ends. */
static void thread_start(void)
{
    record = aligned_alloc(64, (sizeof *record + 63) / 64 * 64);
    if (!record)
        abort();
    ck_hp_register(&hazards, record, &announced);
}

static inline bool look(uint64_t *number)
{
    struct retired *seen = __atomic_load_n(&current, __ATOMIC_RELAXED), *before;
    bool whole;

    do {
        before = seen;
        ck_hp_set_fence(record, 0, before);
        seen = __atomic_load_n(&current, __ATOMIC_ACQUIRE);
    } while (seen != before);
    whole = version_get(&seen->version, number);
    /* release: after the loads of the protected object */
    __atomic_store_n(&announced, NULL, __ATOMIC_RELEASE);
    return whole;
}

static inline void replace(uint64_t number)
{
    struct retired *fresh = malloc(sizeof *fresh), *old;

    if (!fresh)
        abort();
    version_set(&fresh->version, number);
    old = __atomic_exchange_n(&current, fresh, __ATOMIC_ACQ_REL);
    if (old)
        ck_hp_free(record, &old->hazard, old, old);
}

#include "versions_family.h"

const struct subject subject_version_hazard = {
    "version-hazard", "hazard pointers of Concurrency Kit, malloc",
    .start = start,   .thread_start = thread_start,
    .fill = fill,     .run = run};
