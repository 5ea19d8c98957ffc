/* SPDX-License-Identifier: MIT */
/*
 * Restartable sequences of os_percpu.h for aarch64. <prudence/sequences.h> has the sequences of the
 * fast paths, the parts common to all, and what orders their accesses, because programs may inline
 * them. Only slow paths use the ones below.
 *
 * A sequence leaves rseq_cs pointing at its descriptor, so the library must never be unloaded
 * (stay_loaded.c).
 */
#ifndef OS_POSIX_PERCPU_AARCH64_H
#define OS_POSIX_PERCPU_AARCH64_H

#include "os_percpu_sequences.h"

#define OS_PERCPU_CLOSES                                                                           \
    0 /* the owner test is the one acquire that all loads need: docs/adr/0001 */

/* Returns the object that pop would return, but leaves it on the stack. */
static inline void *os_percpu_top(void *const *lines)
{
    const struct prudence_inline_cache *words = &os_percpu_words;
    ptrdiff_t rseq = os_percpu_rseq_offset;
    void *object;

    __asm__ __volatile__(PRUDENCE_RSEQ_BEGIN(PRUDENCE_RSEQ_NO_RESULT("object")) "mov %[object], xzr\n\t" PRUDENCE_RSEQ_LINE("2f")
                         "ldr x10, [x9, #8]\n\t"
                         "ands x11, x10, #0xffff\n\t"
                         "b.eq 2f\n\t"
                         "ldr %[object], [x9, #56]\n\t"
                         "sub x11, x11, #1\n\t"
                         "ldr %[object], [%[object], x11, lsl #3]\n"
                         "2:"
                         : [object] "=&r"(object)
                         : PRUDENCE_RSEQ_INPUTS
                         : "memory", "cc", "x9", "x10", "x11");
    return object;
}

/* Local take: commits the token. Returns NULL if the line is owned or the section could not end. */
static inline struct os_percpu_line *os_percpu_take_rseq(void *const *lines, uintptr_t token)
{
    const struct prudence_inline_cache *words = &os_percpu_words;
    ptrdiff_t rseq = os_percpu_rseq_offset;
    struct os_percpu_line *taken;

    __asm__ __volatile__(PRUDENCE_RSEQ_BEGIN(PRUDENCE_RSEQ_NO_RESULT("taken")) "mov %[taken], xzr\n\t" PRUDENCE_RSEQ_LINE("2f")
                         "mov %[taken], x9\n\t"
                         "str %[token], [x9]\n"
                         "2:"
                         : [taken] "=&r"(taken)
                         : PRUDENCE_RSEQ_INPUTS, [token] "r"(token)
                         : "memory", "cc", "x9", "x10");
    return taken;
}

/*
 * Removes the object at the ring's head if this is `cpu` and the head is still `expected_head`.
 * Returns NULL otherwise, or if the section was interrupted (see os_percpu_x86_64.h).
 */
static inline void *os_percpu_remove(void *const *lines, unsigned cpu, uint64_t expected_head)
{
    const struct prudence_inline_cache *words = &os_percpu_words;
    ptrdiff_t rseq = os_percpu_rseq_offset;
    void *object;

    __asm__ __volatile__(PRUDENCE_RSEQ_BEGIN(PRUDENCE_RSEQ_NO_RESULT("object")) "mov %[object], xzr\n\t"
                         "cmp w9, %w[cpu]\n\t"
                         "b.ne 2f\n\t" PRUDENCE_RSEQ_LINE("2f")
                         "ldr x10, [x9, #64]\n\t"
                         "cmp x10, %[head]\n\t"
                         "b.ne 2f\n\t"
                         "ldr w11, [x9, #80]\n\t"
                         "and x11, x11, x10\n\t"
                         "ldr x12, [x9, #72]\n\t"
                         "ldr %[object], [x12, x11, lsl #3]\n\t"
                         "add x10, x10, #1\n\t"
                         "str x10, [x9, #64]\n"
                         "2:"
                         : [object] "=&r"(object)
                         : PRUDENCE_RSEQ_INPUTS, [cpu] "r"(cpu), [head] "r"(expected_head)
                         : "memory", "cc", "x9", "x10", "x11", "x12");
    return object;
}

/* Adds to the first word of this CPU's line, where `lines` may be lines of any kind, one for
 * each number below os_percpu_cpus. Returns false, with nothing added, if the section was
 * interrupted or there is no such line. */
static inline bool os_percpu_add(void *const *lines, int64_t number)
{
    const struct prudence_inline_cache *words = &os_percpu_words;
    ptrdiff_t rseq = os_percpu_rseq_offset;

    __asm__ __volatile__ goto(PRUDENCE_RSEQ_BEGIN("b %l[out]\n\t") PRUDENCE_RSEQ_HAS_LINE("%l[out]")
                              "ldr x10, %[lines]\n\t"
                              "add x9, x10, x9, lsl #8\n\t"
                              "ldr x10, [x9]\n\t"
                              "add x10, x10, %[number]\n\t"
                              "str x10, [x9]\n"
                              "2:"
                              :
                              : PRUDENCE_RSEQ_INPUTS, [number] "r"(number)
                              : "memory", "cc", "x9", "x10"
                              : out);
    return true;
out:
    return false;
}

#endif /* OS_POSIX_PERCPU_AARCH64_H */
