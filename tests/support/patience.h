/* SPDX-License-Identifier: MIT */
/*
 * How long a test waits until it takes a process for hung. Nothing depends on it but how soon a
 * hang is reported. Emulation is slow, and on a busy machine a second of work takes it a minute.
 */
#ifndef TESTS_SUPPORT_PATIENCE_H
#define TESTS_SUPPORT_PATIENCE_H

#include <stdlib.h>

/* Returns `seconds`, or more under emulation. */
static inline unsigned patience(unsigned seconds)
{
    return getenv("PRUDENCE_EMULATED") ? 8 * seconds : seconds;
}

#endif /* TESTS_SUPPORT_PATIENCE_H */
