/* SPDX-License-Identifier: MIT */
/* Round trips of RCU's competitors, each in one thread without contention, and a plain malloc and
 * free. */
#define _GNU_SOURCE
#include "calibrate.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "measure.h"

/* Each has its own cache lines. */
static union {
    pthread_mutex_t lock;
    char apart[LINES_APART];
} mutex __attribute__((aligned(LINES_APART))) = {PTHREAD_MUTEX_INITIALIZER};
static union {
    pthread_rwlock_t lock;
    char apart[LINES_APART];
} rwlock __attribute__((aligned(LINES_APART))) = {PTHREAD_RWLOCK_INITIALIZER};
static union {
    pthread_spinlock_t lock; /* 0: free */
    char apart[LINES_APART];
} spinlock __attribute__((aligned(LINES_APART)));
static uint64_t sequence __attribute__((aligned(LINES_APART)));
static void *hazard __attribute__((aligned(LINES_APART)));
static void *shared __attribute__((aligned(LINES_APART))) = &hazard;

double time_mutex(const struct measurement *measurement, uint64_t count)
{
    uint64_t start = now_ns();

    (void)measurement;
    for (uint64_t i = 0; i < count; i++) {
        pthread_mutex_lock(&mutex.lock);
        pthread_mutex_unlock(&mutex.lock);
    }
    return (double)(now_ns() - start);
}

double time_read_lock(const struct measurement *measurement, uint64_t count)
{
    uint64_t start = now_ns();

    (void)measurement;
    for (uint64_t i = 0; i < count; i++) {
        pthread_rwlock_rdlock(&rwlock.lock);
        pthread_rwlock_unlock(&rwlock.lock);
    }
    return (double)(now_ns() - start);
}

double time_write_lock(const struct measurement *measurement, uint64_t count)
{
    uint64_t start = now_ns();

    (void)measurement;
    for (uint64_t i = 0; i < count; i++) {
        pthread_rwlock_wrlock(&rwlock.lock);
        pthread_rwlock_unlock(&rwlock.lock);
    }
    return (double)(now_ns() - start);
}

double time_spinlock(const struct measurement *measurement, uint64_t count)
{
    uint64_t start;

    (void)measurement;
    pthread_spin_init(&spinlock.lock, PTHREAD_PROCESS_PRIVATE);
    start = now_ns();
    for (uint64_t i = 0; i < count; i++) {
        pthread_spin_lock(&spinlock.lock);
        pthread_spin_unlock(&spinlock.lock);
    }
    return (double)(now_ns() - start);
}

/* Times a seqlock's read section that need not be repeated. */
double time_sequence_read(const struct measurement *measurement, uint64_t count)
{
    uint64_t start = now_ns(), failed = 0;

    (void)measurement;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t before = __atomic_load_n(&sequence, __ATOMIC_ACQUIRE);

        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        failed += (before & 1) | (__atomic_load_n(&sequence, __ATOMIC_RELAXED) ^ before);
        __asm__ __volatile__("" : "+r"(failed));
    }
    return (double)(now_ns() - start);
}

/* Times protecting and releasing one object: publish the pointer, full fence, read the pointer
 * again. */
double time_hazard_pointer(const struct measurement *measurement, uint64_t count)
{
    uint64_t start = now_ns();

    (void)measurement;
    for (uint64_t i = 0; i < count; i++) {
        void *object = __atomic_load_n(&shared, __ATOMIC_RELAXED);

        for (;;) {
            void *again;

            __atomic_store_n(&hazard, object, __ATOMIC_RELAXED);
            __atomic_thread_fence(__ATOMIC_SEQ_CST);
            again = __atomic_load_n(&shared, __ATOMIC_ACQUIRE);
            if (again == object)
                break;
            object = again;
        }
        __atomic_store_n(&hazard, NULL, __ATOMIC_RELEASE);
    }
    return (double)(now_ns() - start);
}

static double time_futex(int operation, uint32_t expected, uint64_t count)
{
    static uint32_t word __attribute__((aligned(LINES_APART)));
    uint64_t start = now_ns();

    for (uint64_t i = 0; i < count; i++)
        syscall(SYS_futex, &word, operation | FUTEX_PRIVATE_FLAG, expected, NULL, NULL, 0);
    return (double)(now_ns() - start);
}

double time_futex_wait(const struct measurement *measurement, uint64_t count)
{
    (void)measurement;
    return time_futex(FUTEX_WAIT, 1, count); /* the word is 0 */
}

double time_futex_wake(const struct measurement *measurement, uint64_t count)
{
    (void)measurement;
    return time_futex(FUTEX_WAKE, 1, count);
}

double time_malloc_pair(const struct measurement *measurement, uint64_t count)
{
    uint64_t start = now_ns();

    (void)measurement;
    for (uint64_t i = 0; i < count; i++) {
        void *object = malloc(64);

        if (!object)
            fail("malloc");
        *(volatile char *)object = 1;
        free(object);
    }
    return (double)(now_ns() - start);
}
