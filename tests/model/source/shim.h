/* SPDX-License-Identifier: MIT */
/*
 * Included before every explored source: calls of libc that would block or reach the real system go
 * to system.c, and the restartable sequences, which are assembly, are functions there. Everything
 * else is the source's own text.
 */
#ifndef MODEL_SOURCE_SHIM_H
#define MODEL_SOURCE_SHIM_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

int explore_mutex_trylock(pthread_mutex_t *mutex);
int explore_mutex_lock(pthread_mutex_t *mutex);
int explore_mutex_unlock(pthread_mutex_t *mutex);
int explore_once(pthread_once_t *once, void (*body)(void));
int explore_key_create(pthread_key_t *key, void (*destroy)(void *));
int explore_setspecific(pthread_key_t key, const void *value);
int explore_sigmask(int how, const sigset_t *set, sigset_t *old);
pthread_t explore_pthread_self(void);
pid_t explore_gettid(void);
long explore_syscall(long number, ...);
void explore_pause(void);

#define pthread_mutex_trylock  explore_mutex_trylock
#define pthread_mutex_lock     explore_mutex_lock
#define pthread_mutex_unlock   explore_mutex_unlock
#define pthread_once           explore_once
#define pthread_key_create     explore_key_create
#define pthread_setspecific    explore_setspecific
#define pthread_sigmask        explore_sigmask
#define pthread_self           explore_pthread_self
#define gettid                 explore_gettid
#define syscall                explore_syscall
#define __builtin_ia32_pause() explore_pause()

/* On x86-64 the inline reader's fence is an instruction that no compiler instruments, so this
 * selects the fence of other processors. */
#ifdef __x86_64__
#undef __x86_64__
#include <prudence/hazard.h>
#include <prudence/rcu.h>
#define __x86_64__ 1
#endif

/* Replaces os_percpu_x86_64.h and the like. */
#define OS_POSIX_PERCPU_X86_64_H
#define OS_POSIX_PERCPU_AARCH64_H
#define OS_POSIX_PERCPU_GENERIC_H
#define OS_PERCPU_HAS_RSEQ 1
#define OS_PERCPU_CLOSES   1

struct os_percpu_line;
extern uint32_t os_percpu_cpus;
void *os_percpu_pop(void *const *lines);
bool os_percpu_push(void *const *lines, void *object);
bool os_percpu_append(void *const *lines, void *object);
struct os_percpu_line *os_percpu_take_rseq(void *const *lines, uintptr_t token);
uint32_t os_percpu_number_at(ptrdiff_t rseq);
static inline char *os_percpu_thread_pointer(void)
{
    return (char *)__builtin_thread_pointer();
}
bool os_percpu_add(void *const *lines, int64_t number);
void *os_percpu_remove(void *const *lines, unsigned cpu, uint64_t expected_head);

#endif /* MODEL_SOURCE_SHIM_H */
