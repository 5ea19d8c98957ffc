/* SPDX-License-Identifier: MIT */
/*
 * Objects of the torture of short-term memory. Each carries a seal that the finalizer breaks, and
 * bounds of the dates: the earliest time of the end, and the number of ticks that the ending thread
 * must have made.
 */
#ifndef TESTS_SUPPORT_SCM_TORTURE_H
#define TESTS_SUPPORT_SCM_TORTURE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <prudence/scm.h>

#include "shortterm/scm.h"
#include "toolkit/domains/phases.h"

#define SEAL UINT64_C(0x5ea15ea15ea15ea1)

enum tick { LOCAL_TICK, GLOBAL_TICK };

struct object {
    uint64_t seal;
    uint64_t not_before; /* ns */
    uint32_t ticks[2];   /* of each kind, by the thread that ends the object */
    unsigned char rest[];
};

static int seal_breaker; /* the finalizer's number */
static uint64_t made, ended;
static __thread uint64_t ticked[2]; /* since the threads ended whose dates this thread inherits */

static inline void check(int error)
{
    if (error)
        abort();
}

/* Real time of the tests: the system's clock plus an offset that tests increase. */
static uint64_t passed_ns; /* atomic */

static uint64_t torture_time(void)
{
    return os_clock_ns() + __atomic_load_n(&passed_ns, __ATOMIC_RELAXED);
}

static inline void pass_time(uint64_t ns)
{
    __atomic_fetch_add(&passed_ns, ns, __ATOMIC_RELAXED);
}

static int break_seal(void *object)
{
    struct object *ending = object;

    if (__atomic_exchange_n(&ending->seal, 0, __ATOMIC_RELAXED) != SEAL) {
        fprintf(stderr, "an object ended twice\n");
        abort();
    }
    if ((ending->not_before && torture_time() < ending->not_before) ||
        ticked[LOCAL_TICK] < ending->ticks[LOCAL_TICK] ||
        ticked[GLOBAL_TICK] < ending->ticks[GLOBAL_TICK]) {
        fprintf(stderr, "an object ended too early\n");
        abort();
    }
    __atomic_fetch_add(&ended, 1, __ATOMIC_RELAXED);
    return 0;
}

static inline struct object *make(unsigned *seed)
{
    struct object *object = scm_malloc(sizeof *object + (unsigned)rand_r(seed) % 300);

    if (!object)
        abort();
    object->not_before = object->ticks[LOCAL_TICK] = object->ticks[GLOBAL_TICK] = 0;
    __atomic_store_n(&object->seal, SEAL, __ATOMIC_RELAXED);
    if (scm_set_finalizer(object, seal_breaker))
        abort();
    __atomic_fetch_add(&made, 1, __ATOMIC_RELAXED);
    return object;
}

static inline void expect_seal(const struct object *object)
{
    if (__atomic_load_n(&object->seal, __ATOMIC_RELAXED) != SEAL) {
        fprintf(stderr, "an object ended before its date\n");
        abort();
    }
}

#endif /* TESTS_SUPPORT_SCM_TORTURE_H */
