/* SPDX-License-Identifier: MIT */
/*
 * The load paced: callbacks at a given rate, at places that have other work: the cost of one, and
 * how long it waits.
 *
 * Each place works about half a microsecond in a section, then switches, and so on. The first part
 * of the run has no calls; its switches give the time of an idle switch. The cost of a callback is
 * the time in calls, the time in switches beyond the idle time, at all places, and the CPU time of
 * threads that are no places beyond theirs of the first part; all that divided by the calls. A call
 * or switch that takes more than a millisecond has been preempted, and is skipped.
 */
#include <pthread.h>
#include <stdlib.h>

#include "histogram.h"
#include "loads.h"
#include "measure.h"

#define TURNS      200                 /* of work between two switches */
#define POOL       (UINT64_C(1) << 17) /* most pending callbacks of a worker */
#define BURST      64                  /* calls between two switches, by a worker that is late */
#define TAKEN_MOST 1000000             /* ns */

enum part { BEFORE, CALM, CALLS, PARTS };

struct paced {
    struct variant_head head;
    uint64_t called_at;      /* atomic; 0: it may be used */
    struct account *account; /* of the place that called */
};

/* Account of one place; written by its thread, read when the thread has ended, except the atomic
 * field. */
static struct account {
    uint64_t switches[PARTS], ns[PARTS]; /* in switches, including the clock */
    uint64_t cpu_ns[PARTS];              /* of the thread, in that part */
    uint64_t calls, call_ns;
    uint64_t waiting_max, called_back; /* the second is atomic */
    /* stays, because callbacks may come after the thread's end */
    struct paced *pool;
} __attribute__((aligned(VARIANT_LINE))) accounts[PLACES_MAX];

static uint64_t process_ns[PARTS]; /* CPU time of the process in each part, as place 0 saw it */
static uint64_t ends[PARTS];       /* of the parts, except the last */
static uint64_t clock_cost;        /* of one reading, in ns */
static struct histogram *latencies;

static void work(unsigned place)
{
    uint64_t x = place;

    variant_read_lock(place);
    for (unsigned i = 0; i < TURNS; i++)
        __asm__ volatile("" : "+r"(x));
    variant_read_unlock(place);
}

static void timed_switch(unsigned place, enum part part)
{
    uint64_t began = now_ns(), taken;

    variant_switch(place);
    taken = now_ns() - began;
    if (taken > TAKEN_MOST)
        return;
    accounts[place].ns[part] += taken;
    accounts[place].switches[part]++;
}

static void note_latency(struct variant_head *head)
{
    struct paced *object = (void *)head;

    histogram_record(latencies, now_ns() - object->called_at);
    __atomic_fetch_add(&object->account->called_back, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&object->called_at, 0, __ATOMIC_RELEASE);
}

/* Returns false if the limit of pending callbacks is reached. */
static bool timed_call(struct account *account, unsigned place)
{
    struct paced *object = &account->pool[account->calls % POOL];
    uint64_t taken, waiting;

    if (__atomic_load_n(&object->called_at, __ATOMIC_ACQUIRE))
        return false;
    object->account = account;
    __atomic_store_n(&object->called_at, now_ns(), __ATOMIC_RELAXED);
    account->calls++;
    taken = now_ns();
    variant_call(place, &object->head, note_latency);
    taken = now_ns() - taken;
    if (taken <= TAKEN_MOST)
        account->call_ns += taken > clock_cost ? taken - clock_cost : 0;
    waiting = account->calls - __atomic_load_n(&account->called_back, __ATOMIC_RELAXED);
    if (waiting > account->waiting_max)
        account->waiting_max = waiting;
    return true;
}

static void mark(unsigned place, enum part part, uint64_t *thread_ns, uint64_t *all_ns)
{
    uint64_t now = clock_ns(CLOCK_THREAD_CPUTIME_ID);

    accounts[place].cpu_ns[part] = now - *thread_ns;
    *thread_ns = now;
    if (place)
        return;
    now = process_cpu_ns();
    process_ns[part] = now - *all_ns;
    *all_ns = now;
}

/* Runs all parts, with calls in the last one if there is an interval between them. */
static void run_parts(unsigned place, uint64_t interval)
{
    uint64_t thread_ns = 0, all_ns = 0, due;

    for (enum part part = BEFORE; part < CALLS; part++) {
        while (now_ns() < ends[part]) {
            work(place);
            timed_switch(place, part);
        }
        mark(place, part, &thread_ns, &all_ns);
    }
    for (due = ends[CALM]; load_goes_on();) {
        for (unsigned i = 0; interval && i < BURST && due <= now_ns(); i++, due += interval)
            if (!timed_call(&accounts[place], place))
                break;
        work(place);
        timed_switch(place, CALLS);
    }
    mark(place, CALLS, &thread_ns, &all_ns);
}

static uint64_t calls_paced(const struct row *row, unsigned place)
{
    accounts[place].pool = calloc(POOL, sizeof *accounts[place].pool);
    run_parts(place, 1000000000 / row->rate);
    return accounts[place].calls;
}

static uint64_t works_paced(const struct row *row, unsigned place)
{
    (void)row;
    run_parts(place, 0);
    return 0;
}

static uint64_t measure_clock(void)
{
    uint64_t began = now_ns();

    for (unsigned i = 0; i < 1000; i++)
        (void)now_ns();
    return (now_ns() - began) / 1000;
}

/* Returns the CPU time, in a part, of threads that are no places. */
static double helpers_ns(unsigned places, enum part part)
{
    double ns = (double)process_ns[part];

    for (unsigned i = 0; i < places; i++)
        ns -= (double)accounts[i].cpu_ns[part];
    return ns > 0 ? ns : 0;
}

/* Returns the cost of the calls at all places and in other threads, in ns. */
static double cost_of_calls(unsigned places, double calm_seconds, double calls_seconds)
{
    double helpers =
        helpers_ns(places, CALLS) - helpers_ns(places, CALM) / calm_seconds * calls_seconds;
    double cost = helpers > 0 ? helpers : 0;

    for (unsigned i = 0; i < places; i++) {
        const struct account *account = &accounts[i];

        cost += (double)account->call_ns;
        if (account->switches[CALM])
            cost += (double)account->ns[CALLS] - (double)account->ns[CALM] *
                                                     (double)account->switches[CALLS] /
                                                     (double)account->switches[CALM];
    }
    return cost;
}

json_t *load_paced(const struct row *row)
{
    double before = row->seconds * 0.1, calm = row->seconds * 0.3, calls = row->seconds * 0.6;
    uint64_t began = now_ns(), made = 0, waiting = 0;
    json_t *result;

    latencies = histogram_create();
    clock_cost = measure_clock();
    ends[BEFORE] = began + (uint64_t)(before * 1e9);
    ends[CALM] = ends[BEFORE] + (uint64_t)(calm * 1e9);
    result = run_crew(row, calls_paced, works_paced);
    for (unsigned i = 0; i < row->workers; i++) {
        made += accounts[i].calls;
        waiting += accounts[i].waiting_max;
    }
    json_object_set_new(
        result, "cost_ns",
        json_real(made ? cost_of_calls(row->workers + row->readers, calm, calls) / (double)made
                       : 0));
    json_object_set_new(result, "calls_per_second", json_real((double)made / calls));
    json_object_set_new(result, "waiting_max", json_integer((json_int_t)waiting));
    json_object_set_new(result, "latency_ns", histogram_to_json(latencies));
    return result;
}
