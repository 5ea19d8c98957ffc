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

void mutex_pairs(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        pthread_mutex_lock(&mutex.lock);
        pthread_mutex_unlock(&mutex.lock);
    }
}

void read_lock_pairs(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        pthread_rwlock_rdlock(&rwlock.lock);
        pthread_rwlock_unlock(&rwlock.lock);
    }
}

void write_lock_pairs(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        pthread_rwlock_wrlock(&rwlock.lock);
        pthread_rwlock_unlock(&rwlock.lock);
    }
}

void spinlock_pairs(uint64_t count)
{
    pthread_spin_init(&spinlock.lock, PTHREAD_PROCESS_PRIVATE);
    for (uint64_t i = 0; i < count; i++) {
        pthread_spin_lock(&spinlock.lock);
        pthread_spin_unlock(&spinlock.lock);
    }
}

/* Makes read sections of a seqlock that need not be repeated. */
void sequence_reads(uint64_t count)
{
    uint64_t failed = 0;

    for (uint64_t i = 0; i < count; i++) {
        uint64_t before = __atomic_load_n(&sequence, __ATOMIC_ACQUIRE);

        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        failed += (before & 1) | (__atomic_load_n(&sequence, __ATOMIC_RELAXED) ^ before);
        __asm__ __volatile__("" : "+r"(failed));
    }
}

static void call_futex(int operation, uint32_t expected, uint64_t count)
{
    static uint32_t word __attribute__((aligned(LINES_APART)));

    for (uint64_t i = 0; i < count; i++)
        syscall(SYS_futex, &word, operation | FUTEX_PRIVATE_FLAG, expected, NULL, NULL, 0);
}

void futex_waits(uint64_t count)
{
    call_futex(FUTEX_WAIT, 1, count); /* the word is 0 */
}

void futex_wakes(uint64_t count)
{
    call_futex(FUTEX_WAKE, 1, count);
}
