/* SPDX-License-Identifier: MIT */
/*
 * How long a test waits until it takes a process for hung. Nothing depends on it but how soon a
 * hang is reported. Emulation is slow, and on a busy machine a second of work takes it a minute.
 */
#ifndef TESTS_SUPPORT_PATIENCE_H
#define TESTS_SUPPORT_PATIENCE_H

#include <stdlib.h>

/* Returns how long to wait for what takes less than `seconds` on a machine that does nothing else.
 * With 30 busy threads on 2 CPUs, Valgrind takes more than twice that. */
static inline unsigned patience(unsigned seconds)
{
    return (getenv("PRUDENCE_EMULATED") ? 8 : 6) * seconds;
}

#endif /* TESTS_SUPPORT_PATIENCE_H */
