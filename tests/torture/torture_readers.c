/* SPDX-License-Identifier: MIT */
/*
 * Many more readers than CPUs read shared objects while writers replace and defer them.
 *
 * A reader checks the age of the object that it finds (torture_words.h). Whatever the age, the
 * content must not change inside the section. Writers check that the last cookie of each object
 * that they allocate is over.
 */
#define _GNU_SOURCE
#include "gp/user/mode.h"
#include "gp/user/parking.h"
#define TORTURE_WORDS 24
#include "support/torture_words.h"

#define POINTERS 16
#define READERS  12
#define WRITERS  3

static struct torture_words *pointers[POINTERS];
static uint64_t reads, updates, waits;
static uint64_t base; /* the sequence at start; retired cookies are relative to it */

/* Spends some time inside the section: mostly none, at times a preemption or a sleep. */
static void linger(uint64_t *random)
{
    unsigned dice = torture_below(random, 1000);

    if (dice < 2)
        torture_sleep_us(torture_below(random, 2000));
    else if (dice < 40)
        sched_yield();
    else if (dice < 300)
        for (volatile unsigned i = torture_below(random, 400); i > 0; i--)
            ;
}

static void read_once(uint64_t *random)
{
    unsigned depth = 1 + torture_below(random, 3);
    struct torture_words *object;
    uint64_t birth;

    for (unsigned i = 0; i < depth; i++)
        prudence_read_lock();
    object = prudence_dereference(pointers[torture_below(random, POINTERS)]);
    birth = words_birth(object);
    words_check(object, birth, 0, 5);
    words_note_age(object);
    for (unsigned i = 1; i < depth; i++)
        prudence_read_unlock();
    linger(random);
    words_check(object, birth, torture_below(random, 5), 5);
    words_note_age(object);
    prudence_read_unlock();
}

/* Readers come and go, so that slots are freed and claimed again. */
static void *reader(void *argument)
{
    uint64_t random = (uint64_t)(uintptr_t)argument, done = 0;

    while (!torture_stopped() && done < 200000) {
        read_once(&random);
        if (torture_below(&random, 5000) == 0)
            torture_migrate(&random);
        if (torture_below(&random, 20) == 0)
            torture_sleep_us(200); /* outside, so it may be parked */
        done++;
    }
    __atomic_fetch_add(&reads, done, __ATOMIC_RELAXED);
    return NULL;
}

static void *reader_line(void *argument)
{
    uint64_t number = (uint64_t)(uintptr_t)argument;

    for (; !torture_stopped(); number += 1000)
        pthread_join(torture_thread(reader, (void *)(uintptr_t)number), NULL);
    return NULL;
}

/* Frees an unlinked object in one of the possible ways. */
static void retire(struct torture_words *object, uint64_t *random)
{
    unsigned how = torture_below(random, 4000);
    prudence_gp_t cookie = words_retire(object);

    if (how == 0) {
        prudence_synchronize();
        TORTURE_CHECK(prudence_gp_poll_state(cookie));
    } else if (how == 1) {
        cookie = prudence_gp_start_poll();
        while (!prudence_gp_poll_state(cookie))
            torture_sleep_us(20);
    } else if (how == 2) {
        prudence_gp_cond_synchronize(cookie);
    } else if (how == 3) {
        prudence_synchronize_expedited();
    } else {
        prudence_cache_free_deferred(cache, object);
        return;
    }
    __atomic_fetch_add(&waits, 1, __ATOMIC_RELAXED);
    torture_check_reuse(&object->mark, prudence_default_domain());
    prudence_cache_free(cache, object);
}

static void *writer(void *argument)
{
    uint64_t random = (uint64_t)(uintptr_t)argument, done = 0;

    while (!torture_stopped()) {
        struct torture_words *fresh = words_make();
        unsigned place = torture_below(&random, POINTERS);

        if (!fresh)
            break;
        retire(__atomic_exchange_n(&pointers[place], fresh, __ATOMIC_ACQ_REL), &random);
        if (torture_below(&random, 3000) == 0)
            torture_migrate(&random);
        if (torture_below(&random, 20000) == 0)
            torture_sleep_us(500); /* leaves readers as the only load, so the mode changes */
        done++;
    }
    __atomic_fetch_add(&updates, done, __ATOMIC_RELAXED);
    return NULL;
}

/* Switches the readers' mode as fast as possible, and overrides the delay between choices. */
static void *switcher(void *unused)
{
    for (unsigned i = 0; !torture_stopped(); i++) {
        __atomic_store_n(&gp_reader_mode, i % 2 ? READER_MODE_FREE : READER_MODE_FENCED,
                         __ATOMIC_RELAXED);
        store_relaxed(&prudence_default.chosen_at, (uint64_t)0);
        torture_sleep_us(200);
    }
    return unused;
}

/* Parks readers that are outside, as often as possible; with so few readers, drivers would not. */
static void *parker(void *unused)
{
    while (!torture_stopped()) {
        store_relaxed(&prudence_default.park_after, (uint64_t)0);
        parking_after_scan(&prudence_default, 1u << 20);
        torture_sleep_us(50);
    }
    return unused;
}

/* Waits until the mode was switched often, but no longer than torture_wait_for() does. */
static void wait_for_switches(void)
{
    for (unsigned i = 0; i < 6000 && load_relaxed(&prudence_default.mode_switches) <= 10; i++)
        torture_sleep_us(10000);
}

static void check_end(void)
{
    struct prudence_cache_stats stats;
    struct prudence_stats totals;
    uint64_t ended;

    for (unsigned i = 0; i < POINTERS; i++)
        prudence_cache_free_deferred(cache, pointers[i]);
    prudence_trim(); /* objects in quarantine count as live until then */
    prudence_cache_stats(cache, &stats);
    TORTURE_CHECK(stats.objects_live == 0);
    prudence_stats(&totals);
    ended = (load_acquire(&prudence_default.progress.completed) - base) / GP_STEP;
    if (totals.grace_periods != ended)
        torture_violation("statistics count %llu grace periods, %llu have ended",
                          (unsigned long long)totals.grace_periods, (unsigned long long)ended);
    TORTURE_CHECK(prudence_cache_destroy(cache) == 0);
    TORTURE_CHECK(totals.readers <= 2); /* this thread, and perhaps the idle helper */
}

static int torture(const char *variant, double seconds)
{
    bool switching = strcmp(variant, "switching") == 0 && !TORTURE_TSAN;

    domain = prudence_default_domain();
    base = load_acquire(&prudence_default.progress.completed);
    cache = prudence_cache_create("torture", sizeof(struct torture_words), NULL);
    for (unsigned i = 0; i < POINTERS; i++)
        pointers[i] = words_make();
    torture_start(reader_line, READERS, 1);
    torture_start(writer, WRITERS, 100);
    torture_start(switcher, switching, 0);
    torture_start(parker, 1, 0);
    torture_sleep_us((unsigned)(seconds * 1e6));
    if (os_membarrier_available())
        torture_wait_for(&prudence_default.parked_ever);
    if (switching && os_membarrier_available())
        wait_for_switches();
    torture_join();
    check_end();
    if (os_membarrier_available() && !prudence_default.parked_ever)
        torture_violation("nobody was ever parked");
    if (switching && os_membarrier_available())
        TORTURE_CHECK(prudence_default.mode_switches > 10);
    TORTURE_SAY({"reads", reads}, {"updates", updates}, {"waits", waits},
                {"recognized", recognized}, {"parked", prudence_default.parked_ever});
    words_say_ages();
    return torture_end(variant);
}

TORTURE(torture, {"auto", "reader_mode=auto"}, {"fence-free", "reader_mode=free"},
        {"fenced", "reader_mode=fenced"}, {"switching", "reader_mode=auto"},
        {"lock", "rseq=0,reader_mode=free"}, {"no membarrier", "membarrier=0"},
        {"background", "background=1,reader_mode=free"}, {"checked", "check=1"},
        {"guarded", "guard=10"}, {"watched", "guard=10,check=1,quarantine=4M"},
        {"annotated", "annotate=1,guard=10,quarantine=4M"})
