/* SPDX-License-Identifier: MIT */
/*
 * Many more readers than CPUs look at shared objects while writers replace and defer them.
 *
 * Every object carries a birth stamp, a state, and from its retirement the cookie of a grace period
 * that began after it was unlinked. A reader that finds it retired takes its age: 0 when no grace
 * period has ended since, 1 when one that was already running has, 2 and more when a whole one has:
 * then it was visible to a section that should have held it. Whatever the age, its content must not
 * change inside the section. Writers check that the last cookie of each object that they allocate
 * is over.
 */
#define _GNU_SOURCE
#include "gp/user/mode.h"
#include "gp/user/parking.h"
#include "support/gp_torture.h"

#define POINTERS 16
#define WORDS    24
#define READERS  12
#define WRITERS  3
#define AGES     6

struct object {
    struct torture_mark mark;
    uint64_t words[WORDS]; /* each a function of the birth stamp; constant while live or latent */
};

/* Under ThreadSanitizer accesses are plain, so that it checks that the grace period orders
 * writers and readers of the content. */
#if TORTURE_TSAN
#define WORD_LOAD(word)         (word)
#define WORD_STORE(word, value) ((word) = (value))
#else
#define WORD_LOAD(word)         __atomic_load_n(&(word), __ATOMIC_RELAXED)
#define WORD_STORE(word, value) __atomic_store_n(&(word), (value), __ATOMIC_RELAXED)
#endif

static struct object *pointers[POINTERS];
static struct prudence_cache *cache;
static uint64_t births, ages[AGES], reads, updates, recognized, waits;
static uint64_t base; /* the sequence at start; retired cookies are relative to it */

static uint64_t word_for(uint64_t birth, unsigned i)
{
    return birth * UINT64_C(0x9e3779b97f4a7c15) + i;
}

static struct object *object_make(void)
{
    struct object *object = prudence_cache_alloc(cache);
    uint64_t birth = __atomic_add_fetch(&births, 1, __ATOMIC_RELAXED);

    if (!object)
        return NULL;
    if (torture_check_reuse(&object->mark, prudence_default_domain()))
        __atomic_fetch_add(&recognized, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&object->mark.birth, birth, __ATOMIC_RELAXED);
    torture_mark_set(&object->mark, TORTURE_LIVE, 0);
    for (unsigned i = 0; i < WORDS; i++)
        WORD_STORE(object->words[i], word_for(birth, i));
    return object;
}

static void note_age(struct object *object)
{
    uint64_t state = __atomic_load_n(&object->mark.state, __ATOMIC_ACQUIRE);
    uint64_t cookie = __atomic_load_n(&object->mark.cookie, __ATOMIC_ACQUIRE);
    uint64_t completed = load_acquire(&prudence_default.progress.completed);
    uint64_t age = 0;

    if (state != TORTURE_RETIRED)
        return;
    if (!sequence_before(completed, cookie))
        age = 2 + (completed - cookie) / GP_STEP;
    else if (cookie - completed <= GP_STEP)
        age = 1;
    __atomic_fetch_add(&ages[age < AGES ? age : AGES - 1], 1, __ATOMIC_RELAXED);
    if (age >= 2)
        torture_violation("a reader sees object %p %llu grace periods after it was retired",
                          (void *)object, (unsigned long long)(age - 1));
}

static void check_words(const struct object *object, uint64_t birth, unsigned from)
{
    if (__atomic_load_n(&object->mark.birth, __ATOMIC_RELAXED) != birth)
        torture_violation("object %p was born again inside a section", (const void *)object);
    for (unsigned i = from; i < WORDS; i += 5)
        if (WORD_LOAD(object->words[i]) != word_for(birth, i))
            torture_violation("word %u of object %p changed inside a section", i,
                              (const void *)object);
}

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
    struct object *object;
    uint64_t birth;

    for (unsigned i = 0; i < depth; i++)
        prudence_read_lock();
    object = prudence_dereference(pointers[torture_below(random, POINTERS)]);
    birth = __atomic_load_n(&object->mark.birth, __ATOMIC_RELAXED);
    check_words(object, birth, 0);
    note_age(object);
    for (unsigned i = 1; i < depth; i++)
        prudence_read_unlock();
    linger(random);
    check_words(object, birth, torture_below(random, 5));
    note_age(object);
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
static void retire(struct object *object, uint64_t *random)
{
    unsigned how = torture_below(random, 4000);
    prudence_gp_t cookie = prudence_gp_get_state();

    torture_mark_set(&object->mark, TORTURE_RETIRED, cookie.private_value);
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
        struct object *fresh = object_make();
        unsigned place = torture_below(&random, POINTERS);

        if (!fresh) {
            torture_violation("no memory");
            break;
        }
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
    pthread_t readers[READERS], writers[WRITERS], switches = 0, parks;

    base = load_acquire(&prudence_default.progress.completed);
    cache = prudence_cache_create("torture", sizeof(struct object), NULL);
    for (unsigned i = 0; i < POINTERS; i++)
        pointers[i] = object_make();
    for (uintptr_t i = 0; i < READERS; i++)
        readers[i] = torture_thread(reader_line, (void *)(i + 1));
    for (uintptr_t i = 0; i < WRITERS; i++)
        writers[i] = torture_thread(writer, (void *)(i + 100));
    if (switching)
        switches = torture_thread(switcher, NULL);
    parks = torture_thread(parker, NULL);
    torture_sleep_us((unsigned)(seconds * 1e6));
    if (os_membarrier_available())
        torture_wait_for(&prudence_default.parked_ever);
    torture_stop();
    if (switching)
        pthread_join(switches, NULL);
    pthread_join(parks, NULL);
    for (unsigned i = 0; i < READERS; i++)
        pthread_join(readers[i], NULL);
    for (unsigned i = 0; i < WRITERS; i++)
        pthread_join(writers[i], NULL);
    check_end();
    if (os_membarrier_available() && !prudence_default.parked_ever)
        torture_violation("nobody was ever parked");
    printf(": reads=%llu updates=%llu waits=%llu recognized=%llu parked=%llu ages",
           (unsigned long long)reads, (unsigned long long)updates, (unsigned long long)waits,
           (unsigned long long)recognized, (unsigned long long)prudence_default.parked_ever);
    for (unsigned i = 0; i < AGES; i++)
        printf(" %u:%llu", i, (unsigned long long)ages[i]);
    return torture_end(variant);
}

int main(int argc, char **argv)
{
    static const struct torture_variant variants[] = {
        {"auto", "reader_mode=auto"},
        {"fence-free", "reader_mode=free"},
        {"fenced", "reader_mode=fenced"},
        {"switching", "reader_mode=auto"},
        {"lock", "rseq=0,reader_mode=free"},
        {"no membarrier", "membarrier=0"},
        {"background", "background=1,reader_mode=free"},
        {"checked", "check=1"},
        {"guarded", "guard=10"},
        {"watched", "guard=10,check=1,quarantine=4M"},
        {"annotated", "annotate=1,guard=10,quarantine=4M"},
    };

    return torture_main(argc, argv, variants, sizeof variants / sizeof variants[0], torture);
}
