/* SPDX-License-Identifier: MIT */
/*
 * Signal handlers that read, at any point of the threads' work: inside sections, inside restartable
 * sequences (which a signal aborts), in a thread's first entry, in its exit. An object found inside
 * a section must not change there, in handlers or elsewhere.
 *
 * ctest: inlined-too
 */
#define _GNU_SOURCE
#define TORTURE_WORDS       12
#define TORTURE_PLAIN_WORDS 0 /* handlers read */
#include "support/torture_words.h"

#define WORKERS  6
#define POINTERS 8

static struct torture_words *pointers[POINTERS];
static struct prudence_domain *other;
static pthread_t targets[WORKERS];
static bool running[WORKERS]; /* under `gate`: the thread of this index may be signalled */
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static uint64_t handled, updates;

static void look(unsigned place)
{
    struct torture_words *object;

    prudence_read_lock();
    object = prudence_dereference(pointers[place % POINTERS]);
    words_check(object, words_birth(object), 0, 1);
    prudence_read_unlock();
}

static void handler(int number)
{
    int saved_errno = errno;
    bool inside = prudence_read_lock_held();
    static unsigned place;

    look(__atomic_fetch_add(&place, 1, __ATOMIC_RELAXED));
    prudence_domain_read_lock(other);
    prudence_domain_read_unlock(other);
    if (prudence_read_lock_held() != inside)
        torture_violation("a handler's section changed its thread's");
    __atomic_fetch_add(&handled, 1, __ATOMIC_RELAXED);
    errno = saved_errno;
}

static void replace(uint64_t *random)
{
    struct torture_words *fresh = words_make();
    struct torture_words *old =
        __atomic_exchange_n(&pointers[torture_below(random, POINTERS)], fresh, __ATOMIC_ACQ_REL);

    words_retire(old);
    prudence_cache_free_deferred(cache, old);
}

/* Runs for a short time, so that signals hit first entries and exits. */
static void *worker(void *argument)
{
    uint64_t random = (uint64_t)(uintptr_t)argument;

    for (unsigned i = 0; i < 20000 && !torture_stopped(); i++) {
        replace(&random);
        look(torture_below(&random, POINTERS));
        if (torture_below(&random, 2000) == 0)
            prudence_synchronize();
        if (torture_below(&random, 2000) == 0)
            torture_migrate(&random);
        __atomic_fetch_add(&updates, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

static void set_running(unsigned place, bool now)
{
    pthread_mutex_lock(&gate);
    running[place] = now;
    pthread_mutex_unlock(&gate);
}

static void *worker_line(void *argument)
{
    unsigned place = (unsigned)(uintptr_t)argument;
    sigset_t all;

    sigfillset(&all);
    for (unsigned round = 1; !torture_stopped(); round++) {
        targets[place] = torture_thread(worker, (void *)(uintptr_t)(round * 100 + place));
        pthread_sigmask(SIG_BLOCK, &all, NULL); /* this thread must not receive them */
        set_running(place, true);
        torture_sleep_us(20000);
        set_running(place, false);
        pthread_join(targets[place], NULL);
        pthread_sigmask(SIG_UNBLOCK, &all, NULL);
    }
    return NULL;
}

/* Sends signals for `seconds`, and until enough have arrived; TSan delays handlers. */
static void bombard(double seconds)
{
    uint64_t random = 4711, end = torture_now() + (uint64_t)(seconds * 1e9);

    while (torture_now() < end || load_relaxed(&handled) <= (TORTURE_TSAN ? 0 : 100)) {
        unsigned place = torture_below(&random, WORKERS);

        pthread_mutex_lock(&gate);
        if (running[place])
            pthread_kill(targets[place], SIGUSR1);
        pthread_mutex_unlock(&gate);
        torture_sleep_us(torture_below(&random, 20));
    }
}

static int torture(const char *variant, double seconds)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    struct prudence_stats stats;

    domain = prudence_default_domain();
    cache = prudence_cache_create("torture", sizeof(struct torture_words), NULL);
    other = prudence_domain_create("other", PRUDENCE_DOMAIN_MEMB, NULL);
    for (unsigned i = 0; i < POINTERS; i++)
        pointers[i] = words_make();
    sigaction(SIGUSR1, &action, NULL);
    torture_start(worker_line, WORKERS, 0);
    bombard(seconds);
    torture_join();
    for (unsigned i = 0; i < POINTERS; i++)
        prudence_cache_free_deferred(cache, pointers[i]);
    TORTURE_CHECK(prudence_cache_destroy(cache) == 0);
    TORTURE_CHECK(prudence_domain_destroy(other) == 0);
    prudence_stats(&stats);
    TORTURE_SAY({"updates", updates}, {"handlers", handled}, {"readers left", stats.readers});
    return torture_end(variant);
}

TORTURE(torture, {"default", ""}, {"fence-free", "reader_mode=free"},
        {"lock", "rseq=0,background=1"}, {"no membarrier", "membarrier=0"})
