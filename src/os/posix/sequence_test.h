/* SPDX-License-Identifier: MIT */
/* Whether the kernel restarts restartable sequences: asked once, before the first one of the process. */
#ifndef OS_POSIX_SEQUENCE_TEST_H
#define OS_POSIX_SEQUENCE_TEST_H

#include "base/base.h"

enum sequence_verdict {
    SEQUENCES_NOT_ASKED,
    SEQUENCES_RESTART,
    SEQUENCES_GO_ON,  /* broken: they may not be used */
    SEQUENCES_UNKNOWN /* nor then: there was no helper, or not in time */
};

/* Constant from the first call on. That takes some hundred microseconds where the kernel may be broken, and never spins for
 * more than 50 ms; elsewhere it does nothing. `rseq` is this thread's struct rseq, which is registered, and
 * so is membarrier for sequences. */
enum sequence_verdict posix_sequence_verdict(char *rseq);

/* What is asked for instead of the kernel. For tests. */
extern enum sequence_verdict (*posix_sequence_verdict_injected)(void);

/* The parts, for tests. A struct rseq that is not registered makes the kernel look broken. */
enum sequence_verdict sequence_test(char *rseq);
bool sequence_test_is_wanted_for(const char *release);

#endif /* OS_POSIX_SEQUENCE_TEST_H */
