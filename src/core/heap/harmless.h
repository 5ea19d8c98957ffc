/* SPDX-License-Identifier: MIT */
/* Misuse that harms nothing if the library goes on (ADR 159). */
#ifndef HEAP_HARMLESS_H
#define HEAP_HARMLESS_H

#include "base/atomic.h"
#include "base/base.h"

enum harmless { HARMLESS_AUTO, HARMLESS_REPORT, HARMLESS_ABORT };
extern uint64_t harmless_choice; /* option harmless_misuse; atomic */

/* Returns whether the process goes on after such a misuse. */
bool harmless_goes_on(void);

/* Returns whether a misuse that goes on is to be reported: the first of its kind. */
static inline bool harmless_is_first(uint32_t *said)
{
    return !load_relaxed(said) && !exchange_relaxed(said, 1u);
}

#endif /* HEAP_HARMLESS_H */
