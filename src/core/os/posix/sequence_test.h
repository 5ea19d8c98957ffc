/* SPDX-License-Identifier: MIT */
/* Test whether the kernel restarts restartable sequences, made once, before the process's first
 * one. */
#ifndef OS_POSIX_SEQUENCE_TEST_H
#define OS_POSIX_SEQUENCE_TEST_H

#include "base/base.h"

enum sequence_verdict {
    SEQUENCES_NOT_ASKED,
    SEQUENCES_RESTART,
    SEQUENCES_GO_ON,  /* broken, so sequences may not be used */
    SEQUENCES_UNKNOWN /* not usable either: the helper did not run, or not in time */
};

/* Returns a verdict that is constant from the first call on. The first call takes some hundred
 * microseconds if the kernel may be broken, and spins for less than 100 ms; on other kernels it
 * does nothing. `rseq` is this thread's struct rseq. That struct and membarrier for sequences
 * are registered. */
enum sequence_verdict posix_sequence_verdict(char *rseq);

/* Replaces the kernel's verdict. For tests. */
extern enum sequence_verdict (*posix_sequence_verdict_injected)(void);

/* Parts of posix_sequence_verdict, for tests. A struct rseq that is not registered makes the
 * kernel seem broken. */
enum sequence_verdict sequence_test(char *rseq);
bool sequence_test_is_wanted_for(const char *release);

#endif /* OS_POSIX_SEQUENCE_TEST_H */
