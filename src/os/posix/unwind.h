/* SPDX-License-Identifier: MIT */
/* Unwinding without the compiler's unwinder: see unwind.c. */
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
 * How to get from a place in a function to its caller: the CFA, which is the stack pointer that the caller has when it goes on, is
 * the function's stack pointer or rbp, and `cfa` bytes. The return address is below the CFA, and the caller's rbp at
 * CFA - `saved`, or still in rbp. A word, because threads share rules by atomic loads and stores.
 *   bit 0: the function has no caller; bit 1: from rbp; 8 bits: saved / 8, 0: in rbp; 16 bits: cfa / 8, at least 1.
 */
#define RULE_OUTERMOST   UINT64_C(1)
#define RULE_FROM_RBP    UINT64_C(2)
#define RULE_SAVED(rule) (((rule) >> 2 & 0xff) * 8)
#define RULE_CFA(rule)   (((rule) >> 10) * 8)
#define RULE_BITS        26

/* unwind_table.c: the rule at `pc`, an instruction of a function, from its module's tables. 0: none, or another kind of
 * rule. Async-signal-safe; takes no lock. */
uint64_t unwind_rule_at(uintptr_t pc);

/* Up to `count` frames, beginning with this function's. 0: the tables do not lead to the outermost function, or to as many.
 * Async-signal-safe, but not inside itself; takes no lock, and allocates nothing. */
unsigned unwind_here(void **frames, unsigned count);

/* The same, beginning with the call of a function whose frame address this is: the caller's rbp and the return address lie there.
 * Calls from the code in `skipped`, before any other, are left out. */
struct code_range {
    uintptr_t start, end;
};
unsigned unwind_from(void *const *frame_address, struct code_range skipped, void **frames,
                     unsigned count);

#endif /* OS_POSIX_UNWIND_H */
