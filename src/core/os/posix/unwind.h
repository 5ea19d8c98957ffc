/* SPDX-License-Identifier: MIT */
/* Unwinding without the compiler's unwinder (see unwind.c). */
#ifndef OS_POSIX_UNWIND_H
#define OS_POSIX_UNWIND_H

#include "base/base.h"

#if defined(__x86_64__) && defined(__LP64__) && defined(__GLIBC__)
#if __GLIBC_PREREQ(2, 35)
#define UNWIND_BY_RULES 1
#endif
#endif
#ifndef UNWIND_BY_RULES
#define UNWIND_BY_RULES 0
#endif

/*
 * A rule leads from a place in a function to the caller. The CFA, which is the caller's stack
 * pointer after the return, is the function's stack pointer or rbp, plus `cfa` bytes. The return
 * address lies below the CFA, and the caller's rbp lies at CFA - `saved` or is still in rbp. A rule
 * is one word, because threads share rules by atomic loads and stores:
 *   bit 0: the function has no caller
 *   bit 1: the CFA is relative to rbp
 *   bits 2 to 9: saved / 8, or 0 if still in rbp
 *   bits 10 to 25: cfa / 8, at least 1
 */
#define RULE_OUTERMOST   UINT64_C(1)
#define RULE_FROM_RBP    UINT64_C(2)
#define RULE_SAVED(rule) (((rule) >> 2 & 0xff) * 8)
#define RULE_CFA(rule)   (((rule) >> 10) * 8)
#define RULE_BITS        26

/* Reads the rule at `pc`, an instruction of a function, from the module's tables
 * (unwind_table.c). Returns 0 if there is none, or one of another kind. Async-signal-safe; takes
 * no lock. */
uint64_t unwind_rule_at(uintptr_t pc);

/* Stores up to `count` frames, beginning with this function's. Returns 0 if the tables lead
 * neither to the outermost function nor to `count` frames. Async-signal-safe, but not reentrant;
 * takes no lock, and allocates nothing. */
unsigned unwind_here(void **frames, unsigned count);

/* Does the same, but begins with the call of the function that has this frame address, where the
 * caller's rbp and the return address lie. Leaves out leading calls from the code in `skipped`. */
struct code_range {
    uintptr_t start, end;
};
unsigned unwind_from(void *const *frame_address, struct code_range skipped, void **frames,
                     unsigned count);

#endif /* OS_POSIX_UNWIND_H */
