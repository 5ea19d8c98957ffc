/* SPDX-License-Identifier: MIT */
/*
 * Sleeps until another thread changes a word, by Linux's system call. liburcu has stand-ins for
 * systems without it; no system that this library runs on needs them, so here all names are one.
 */
#ifndef PRUDENCE_URCU_COMPAT_FUTEX_H
#define PRUDENCE_URCU_COMPAT_FUTEX_H

#include <errno.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <prudence/language.h>

#define CONFIG_RCU_HAVE_FUTEX 1
#define FUTEX_WAIT            0
#define FUTEX_WAKE            1

#ifdef __cplusplus
extern "C" {
#endif

struct timespec;
#if defined(__STRICT_ANSI__) && !defined(__cplusplus)
long syscall(long number, ...); /* <unistd.h> may hide it from strict C */
#endif

/* Returns what the system call does: -1 and errno, for a wake the number of threads woken. */
static inline int futex(int32_t *word, int operation, int32_t value, const struct timespec *timeout,
                        int32_t *other_word, int32_t other_value)
{
    return PRUDENCE_CONVERT(
        int, syscall(SYS_futex, word, operation, value, timeout, other_word, other_value));
}

/* liburcu's for use in signal handlers, and the one that never polls: both do both here. */
static inline int futex_async(int32_t *word, int operation, int32_t value,
                              const struct timespec *timeout, int32_t *other_word,
                              int32_t other_value)
{
    return futex(word, operation, value, timeout, other_word, other_value);
}

static inline int futex_noasync(int32_t *word, int operation, int32_t value,
                                const struct timespec *timeout, int32_t *other_word,
                                int32_t other_value)
{
    return futex(word, operation, value, timeout, other_word, other_value);
}

#ifdef __cplusplus
}
#endif

#define compat_futex_async   futex_async
#define compat_futex_noasync futex_noasync

#endif /* PRUDENCE_URCU_COMPAT_FUTEX_H */
