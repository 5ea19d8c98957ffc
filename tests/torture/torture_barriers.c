/* SPDX-License-Identifier: MIT */
/*
 * Late reader words: a reader's stores to lines that the writer takes away fill the store buffer,
 * so that its word is published long after it has read the pointer. Only the barrier of the grace
 * period (or the reader's own fence) makes the writer see it. The writer poisons each unlinked
 * object after a grace period; a reader that finds poison inside its section was missed.
 *
 * Finds faults that the other programs have no time for: a missing membarrier, a missing fence in a
 * fenced reader, a switch of mode without its membarrier, a reader that is parked without one. (On
 * a machine with one CPU it finds nothing.)
 */
#define _GNU_SOURCE
#include "gp/user/mode.h"
#include "gp/user/parking.h"
#include "support/gp_torture.h"

#define NODES 256
#define NOISE 24 /* cache lines */

enum { ALIVE = 1, POISON = 2 };

struct shared_node {
    uint64_t state;
    char pad[120];
};

static struct shared_node nodes[NODES] __attribute__((aligned(128)));
static struct shared_node *shared = &nodes[0];
static uint64_t noise[NOISE * 8] __attribute__((aligned(128)));
static uint64_t reads, grace_periods;
static bool switching, parking;

static void pin(unsigned cpu)
{
    cpu_set_t one;

    CPU_ZERO(&one);
    CPU_SET(cpu % (unsigned)sysconf(_SC_NPROCESSORS_ONLN), &one);
    sched_setaffinity(0, sizeof one, &one);
}

static void make_noise(uint64_t value)
{
    for (unsigned i = 0; i < NOISE; i++)
        __atomic_store_n(&noise[i * 8], value, __ATOMIC_RELAXED);
}

/* Stays outside for about as long as parking takes. */
static void stay_outside(uint64_t *random)
{
    for (unsigned i = torture_below(random, 20000); i > 0; i--)
        compiler_barrier();
}

static void *reader(void *argument)
{
    uint64_t random = (uint64_t)(uintptr_t)argument, done = 0;

    pin((unsigned)(uintptr_t)argument);
    for (; !torture_stopped(); done++) {
        struct shared_node *node;
        unsigned looks = torture_below(&random, 40);

        if (parking)
            stay_outside(&random);
        make_noise(done);
        prudence_read_lock();
        node = prudence_dereference(shared);
        do {
            if (__atomic_load_n(&node->state, __ATOMIC_RELAXED) == POISON) {
                torture_violation("a reader was missed: its node is poisoned in its section");
                break;
            }
        } while (looks-- > 0);
        prudence_read_unlock();
    }
    __atomic_fetch_add(&reads, done, __ATOMIC_RELAXED);
    return NULL;
}

/* Replaces the node and, after a grace period for the old node's readers, poisons it. */
static void replace(unsigned next)
{
    struct shared_node *old = shared;

    __atomic_store_n(&nodes[next].state, ALIVE, __ATOMIC_RELAXED);
    prudence_assign_pointer(shared, &nodes[next]);
    prudence_synchronize();
    __atomic_store_n(&old->state, POISON, __ATOMIC_RELAXED);
}

/* Makes the mode change at the end of the next grace period, and overrides the delay between
 * choices. */
static void switch_to(enum reader_mode mode)
{
    __atomic_store_n(&gp_reader_mode, mode, __ATOMIC_RELAXED);
    store_relaxed(&prudence_default.chosen_at, (uint64_t)0);
}

/* A reader that is outside now, and enters while this runs, must be seen by the following grace
 * period. */
static void park(void)
{
    for (unsigned i = 0; i < 2; i++) { /* the first round spares readers that have just returned */
        store_relaxed(&prudence_default.park_after, (uint64_t)0);
        parking_after_scan(&prudence_default, 1u << 20);
    }
}

/* When switching, the mode changes at the end of the first grace period, and the second follows
 * so closely that a reader may still be between publishing and testing the mode. */
static void *writer(void *unused)
{
    uint64_t done = 0;

    pin(0);
    for (unsigned next = 2; !torture_stopped(); next = (next + 2) % NODES, done += 2) {
        make_noise(done);
        if (switching)
            switch_to(done / 2 % 2 ? READER_MODE_FREE : READER_MODE_FENCED);
        if (parking)
            park();
        replace(next);
        replace(next + 1);
    }
    grace_periods = done;
    return unused;
}

static int torture(const char *variant, double seconds)
{
    switching = strstr(variant, "switching") && !TORTURE_TSAN;
    parking = strstr(variant, "parking");
    nodes[0].state = ALIVE;
    torture_start(writer, 1, 0);
    torture_start(reader, 1, 1);
    torture_start(reader, 1, 3);
    torture_sleep_us((unsigned)(seconds * 1e6));
    if (parking && os_membarrier_available())
        torture_wait_for(&prudence_default.parked_ever);
    torture_join();
    if (parking && os_membarrier_available() && !prudence_default.parked_ever)
        torture_violation("nobody was ever parked");
    TORTURE_SAY({"reads", reads}, {"synchronized", grace_periods},
                {"parked", prudence_default.parked_ever});
    return torture_end(variant);
}

TORTURE(torture, {"fence-free", "reader_mode=free"}, {"fenced", "reader_mode=fenced"},
        {"switching", "reader_mode=auto"}, {"no membarrier", "membarrier=0"},
        {"parking, fence-free", "reader_mode=free"}, {"parking, fenced", "reader_mode=fenced"},
        {"parking, switching", "reader_mode=auto"})
