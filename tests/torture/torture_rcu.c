/* SPDX-License-Identifier: MIT */
/*
 * Every way to read against every way to wait, in the manner of rcutorture.
 *
 * Readers: plain, nested, preempted (they yield inside), sleeping; and signal handlers, which
 * interrupt all of them anywhere. Writers: synchronize, callbacks, polling, deferred frees. All of
 * them use the same pointers: one for all (global), one for each CPU, or one for each writer
 * (thread). The variants are these places x kinds of domains. During all this, CPUs are taken away
 * and given back (every thread is moved to one CPU), threads are suspended in a handler, wherever
 * they are, and the process forks and is stopped by SIGSTOP.
 *
 * Readers check ages and contents of objects (torture_words.h). At the end every object must have
 * been freed.
 */
#define _GNU_SOURCE
#define TORTURE_WORDS       8
#define TORTURE_PLAIN_WORDS 0 /* handlers read */
#include "support/torture_words.h"

#include <prudence/call.h>

#define READERS 4 /* one of each way */
#define WRITERS 4
#define PLACES  64

enum reading { READ_PLAIN, READ_NESTED, READ_PREEMPTED, READ_SLEEPING };
enum waiting { WAIT_SYNCHRONIZE, WAIT_CALL, WAIT_POLL, WAIT_DEFERRED };
enum placing { PLACE_GLOBAL, PLACE_CPU, PLACE_THREAD };

struct object {
    struct torture_words content;
    struct prudence_head head;
};

static enum placing placing;
static bool qsbr;
static struct object *pointers[PLACES];
static uint64_t deaths, reads[READERS], waits[WRITERS], handlers;

static unsigned place_of(unsigned thread)
{
    if (placing == PLACE_GLOBAL)
        return 0;
    return placing == PLACE_THREAD ? thread : (unsigned)sched_getcpu() % PLACES;
}

/* --------------------------------------------------------------------------------- readers */

static void linger(enum reading how, uint64_t *random)
{
    if (how == READ_PREEMPTED)
        sched_yield();
    else if (how == READ_SLEEPING && torture_below(random, 8) == 0)
        torture_sleep_us(torture_below(random, 1000));
}

static void read_once(enum reading how, uint64_t *random)
{
    unsigned depth = how == READ_NESTED ? 2 + torture_below(random, 6) : 1;
    const struct object *object;
    uint64_t birth = 0;

    for (unsigned i = 0; i < depth; i++)
        prudence_domain_read_lock(domain);
    object = prudence_dereference(pointers[place_of(torture_below(random, WRITERS))]);
    if (object) {
        birth = words_birth(&object->content);
        words_check(&object->content, birth, 0, 1);
        words_note_age(&object->content);
    }
    for (unsigned i = 1; i < depth; i++)
        prudence_domain_read_unlock(domain);
    linger(how, random);
    if (object) {
        words_check(&object->content, birth, 0, 1);
        words_note_age(&object->content);
    }
    prudence_domain_read_unlock(domain);
}

static void *reader(void *argument)
{
    enum reading how = (enum reading)(uintptr_t)argument;
    uint64_t random = 77 + how, done = 0;

    if (qsbr)
        prudence_qsbr_online(domain);
    for (; !torture_stopped(); done++) {
        read_once(how, &random);
        if (qsbr)
            prudence_qsbr_quiescent(domain);
        if (qsbr && done % 1024 == 0) {
            prudence_qsbr_offline(domain);
            torture_sleep_us(50);
            prudence_qsbr_online(domain);
        }
    }
    if (qsbr)
        prudence_qsbr_offline(domain);
    __atomic_fetch_add(&reads[how], done, __ATOMIC_RELAXED);
    return NULL;
}

/* Reads in a handler; in a qsbr domain only if its thread is online. */
static void read_in_handler(int number)
{
    int saved = errno;
    uint64_t random = __atomic_add_fetch(&handlers, 1, __ATOMIC_RELAXED);

    if (!qsbr || prudence_domain_read_lock_held(domain))
        read_once(READ_NESTED, &random);
    errno = saved;
}

/* --------------------------------------------------------------------------------- writers */

static void object_end(struct object *object)
{
    torture_check_reuse(&object->content.mark, domain);
    __atomic_fetch_add(&deaths, 1, __ATOMIC_RELAXED);
    prudence_cache_free(cache, object);
}

static void object_called(struct prudence_head *head)
{
    object_end((struct object *)((char *)head - offsetof(struct object, head)));
}

static void retire(struct object *object, enum waiting how)
{
    prudence_gp_t cookie = words_retire(&object->content);

    switch (how) {
    case WAIT_SYNCHRONIZE:
        TORTURE_CHECK(prudence_domain_synchronize(domain) == 0);
        TORTURE_CHECK(prudence_domain_poll_state(domain, cookie));
        object_end(object);
        break;
    case WAIT_CALL:
        prudence_domain_call(domain, &object->head, object_called);
        break;
    case WAIT_POLL:
        cookie = prudence_domain_start_poll(domain);
        while (!prudence_domain_poll_state(domain, cookie))
            torture_sleep_us(10);
        object_end(object);
        break;
    case WAIT_DEFERRED:
        __atomic_fetch_add(&deaths, 1, __ATOMIC_RELAXED);
        prudence_cache_free_deferred(cache, object);
        break;
    }
}

static void *writer(void *argument)
{
    unsigned self = (unsigned)(uintptr_t)argument;
    uint64_t done = 0;

    for (; !torture_stopped(); done++) {
        struct object *fresh = words_make(), *old;

        if (!fresh)
            break;
        old = __atomic_exchange_n(&pointers[place_of(self)], fresh, __ATOMIC_ACQ_REL);
        if (old)
            retire(old, (enum waiting)self);
    }
    __atomic_fetch_add(&waits[self], done, __ATOMIC_RELAXED);
    return NULL;
}

/* ----------------------------------------------------------------------------- disturbances */

/* Suspends the thread, in a section or anywhere. */
static void suspend(int number)
{
    int saved = errno;

    torture_sleep_us(2000);
    errno = saved;
}

/* Leaves one CPU to every thread, and then all of them again, as hot-unplugging does. */
static void take_cpus_away(uint64_t *random)
{
    cpu_set_t one, all;

    CPU_ZERO(&one);
    CPU_SET(torture_below(random, (unsigned)sysconf(_SC_NPROCESSORS_ONLN)), &one);
    memset(&all, 0xff, sizeof all);
    for (unsigned i = 0; i < READERS + WRITERS; i++)
        pthread_setaffinity_np(torture_crew.threads[i], sizeof one, &one);
    torture_sleep_us(3000);
    for (unsigned i = 0; i < READERS + WRITERS; i++)
        pthread_setaffinity_np(torture_crew.threads[i], sizeof all, &all);
}

/* SIGSTOP stops the whole process, so another one must wake it. That is a fork, itself a
 * disturbance (not under TSan). */
static void stop_process(void)
{
    pid_t self = getpid(), child;

    if (TORTURE_TSAN)
        return;
    child = fork();
    if (child == 0) {
        kill(self, SIGSTOP);
        kill(self, SIGCONT);
        _exit(0);
    }
    if (child > 0)
        waitpid(child, NULL, 0);
}

static void disturb(double seconds)
{
    uint64_t end = torture_now() + (uint64_t)(seconds * 1e9), random = 4711;

    while (torture_now() < end) {
        unsigned dice = torture_below(&random, 16);

        if (dice < 12)
            pthread_kill(torture_crew.threads[torture_below(&random, READERS)], SIGUSR1);
        else if (dice < 14)
            pthread_kill(torture_crew.threads[torture_below(&random, READERS + WRITERS)], SIGUSR2);
        else if (dice == 14)
            take_cpus_away(&random);
        else
            stop_process();
        torture_sleep_us(500);
    }
}

/* ---------------------------------------------------------------------------------- the run */

static void check_end(void)
{
    struct prudence_cache_stats stats;
    uint64_t left = 0;

    TORTURE_CHECK(prudence_domain_barrier(domain) == 0);
    for (unsigned i = 0; i < PLACES; i++) {
        if (!pointers[i])
            continue;
        left++;
        prudence_cache_free_deferred(cache, pointers[i]);
    }
    TORTURE_CHECK(births == deaths + left);
    prudence_trim();
    prudence_cache_stats(cache, &stats);
    TORTURE_CHECK(stats.objects_live == 0);
    TORTURE_CHECK(prudence_cache_destroy(cache) == 0);
    if (domain != prudence_default_domain())
        TORTURE_CHECK(prudence_domain_destroy(domain) == 0);
}

/* Parses a variant's name: the kind of domain, and the place of the pointers. */
static void choose(const char *variant)
{
    struct prudence_cache_attr attr = {.size = sizeof attr};

    domain = prudence_default_domain();
    qsbr = !strncmp(variant, "qsbr", 4);
    if (qsbr)
        domain = prudence_domain_create("torture", PRUDENCE_DOMAIN_QSBR, NULL);
    else if (!strncmp(variant, "memb", 4))
        domain = prudence_domain_create("torture", PRUDENCE_DOMAIN_MEMB, NULL);
    attr.domain = domain;
    placing = strstr(variant, "global") ? PLACE_GLOBAL
              : strstr(variant, "cpu")  ? PLACE_CPU
                                        : PLACE_THREAD;
    cache = prudence_cache_create("torture", sizeof(struct object), &attr);
    if (!cache)
        abort();
}

static void handle(int number, void (*handler)(int number))
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};

    sigaction(number, &action, NULL);
}

static int torture(const char *variant, double seconds)
{
    choose(variant);
    handle(SIGUSR1, read_in_handler);
    handle(SIGUSR2, suspend);
    torture_start(reader, READERS, 0);
    torture_start(writer, WRITERS, 0);
    disturb(seconds);
    torture_join();
    check_end();
    TORTURE_SAY({"plain reads", reads[0]}, {"nested", reads[1]}, {"preempted", reads[2]},
                {"sleeping", reads[3]}, {"handlers", handlers}, {"sync", waits[0]},
                {"call", waits[1]}, {"poll", waits[2]}, {"deferred", waits[3]});
    words_say_ages();
    return torture_end(variant);
}

TORTURE(torture, {"default global", "reader_mode=auto"}, {"default cpu", "reader_mode=free"},
        {"default thread", "reader_mode=fenced"}, {"memb global", "reader_mode=free"},
        {"memb cpu", "reader_mode=auto"}, {"memb thread", "rseq=0"},
        {"qsbr global", "reader_mode=auto"}, {"qsbr cpu", "membarrier=0"},
        {"qsbr thread", "reader_mode=auto"})
