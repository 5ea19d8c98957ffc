/* SPDX-License-Identifier: MIT */
/*
 * Restartable sequences of os_percpu.h for x86-64. <prudence/sequences.h> has the sequences of the
 * fast paths and the parts common to all, because programs may inline them. Only slow paths use the
 * ones below.
 *
 * A sequence leaves rseq_cs pointing at its descriptor, so the library must never be unloaded
 * (stay_loaded.c).
 */
#ifndef OS_POSIX_PERCPU_X86_64_H
#define OS_POSIX_PERCPU_X86_64_H

#include "os_percpu_sequences.h"

#define OS_PERCPU_CLOSES 1

/* Jumps to `out` if the line in rcx is owned. */
#define RSEQ_UNOWNED(out)                                                                          \
    "cmpq $0, (%%rcx)\n\t"                                                                         \
    "jne " out "\n\t"

/* Returns the object that pop would return, but leaves it on the stack. */
static inline void *os_percpu_top(void *const *lines)
{
    const struct prudence_inline_cache *words = &os_percpu_words;
    ptrdiff_t rseq = os_percpu_rseq_offset;
    void *object;

    __asm__ __volatile__(PRUDENCE_RSEQ_BEGIN(PRUDENCE_RSEQ_NO_RESULT("object"))
                         PRUDENCE_RSEQ_LINE("4b")
                         "movq 16(%%rcx), %[object]\n\t"
                         "movzwl 8(%%rcx), %%edx\n\t"
                         "movq -8(%[object],%%rdx,8), %[object]\n"
                         "2:"
                         : [object] "=&r"(object)
                         : PRUDENCE_RSEQ_INPUTS
                         : "memory", "cc", "rcx", "rdx");
    return object;
}

/* Local take: closes the line and commits the token. Returns NULL if the line is owned or the
 * section could not end. A take interrupted in between leaves a closed line that no thread owns.
 * The next owner opens the line on release, and a thread whose fast path finds the line closed
 * becomes that owner. */
static inline struct os_percpu_line *os_percpu_take_rseq(void *const *lines, uintptr_t token)
{
    const struct prudence_inline_cache *words = &os_percpu_words;
    ptrdiff_t rseq = os_percpu_rseq_offset;
    struct os_percpu_line *taken;

    __asm__ __volatile__(PRUDENCE_RSEQ_BEGIN(PRUDENCE_RSEQ_NO_RESULT("taken"))
                         PRUDENCE_RSEQ_LINE("4b") RSEQ_UNOWNED("4b")
                         "movq %[nothing], 16(%%rcx)\n\t"
                         "movq $0, 24(%%rcx)\n\t"
                         "movq $0, 40(%%rcx)\n\t"
                         "movq %%rcx, %[taken]\n\t"
                         "movq %[token], (%%rcx)\n"
                         "2:"
                         : [taken] "=&r"(taken)
                         : PRUDENCE_RSEQ_INPUTS, [token] "r"(token), [nothing] "r"(os_percpu_nothing + 1)
                         : "memory", "cc", "rcx");
    return taken;
}

/*
 * Removes the object at the ring's head if this is `cpu` and the head is still `expected_head`.
 * Returns NULL otherwise, or if the section was interrupted. For the idle helper, which must own
 * nothing. The caller has checked that the head lies in a closed batch. The head only grows, so the
 * same head means the same batch.
 */
static inline void *os_percpu_remove(void *const *lines, unsigned cpu, uint64_t expected_head)
{
    const struct prudence_inline_cache *words = &os_percpu_words;
    ptrdiff_t rseq = os_percpu_rseq_offset;
    void *object;

    __asm__ __volatile__(PRUDENCE_RSEQ_BEGIN(PRUDENCE_RSEQ_NO_RESULT("object"))
                         "cmpl %[cpu], %%ecx\n\t"
                         "jne 4b\n\t" PRUDENCE_RSEQ_LINE("4b") RSEQ_UNOWNED("4b")
                         "movq 64(%%rcx), %%rdx\n\t"
                         "cmpq %[head], %%rdx\n\t"
                         "jne 4b\n\t"
                         "movl %%edx, %%esi\n\t"
                         "andl 80(%%rcx), %%esi\n\t"
                         "movq 72(%%rcx), %[object]\n\t"
                         "movq (%[object],%%rsi,8), %[object]\n\t"
                         "incq %%rdx\n\t"
                         "movq %%rdx, 64(%%rcx)\n"
                         "2:"
                         : [object] "=&r"(object)
                         : PRUDENCE_RSEQ_INPUTS, [cpu] "r"(cpu), [head] "r"(expected_head)
                         : "memory", "cc", "rcx", "rdx", "rsi");
    return object;
}

/* Adds to the first word of this CPU's line, where `lines` may be lines of any kind, one for
 * each number below os_percpu_cpus. Returns false, with nothing added, if the section was
 * interrupted or there is no such line. */
static inline bool os_percpu_add(void *const *lines, int64_t number)
{
    const struct prudence_inline_cache *words = &os_percpu_words;
    ptrdiff_t rseq = os_percpu_rseq_offset;

    __asm__ __volatile__ goto(PRUDENCE_RSEQ_BEGIN("jmp %l[out]\n\t") PRUDENCE_RSEQ_LINE("%l[out]")
                              "addq %[number], (%%rcx)\n"
                              "2:"
                              :
                              : PRUDENCE_RSEQ_INPUTS, [number] "r"(number)
                              : "memory", "cc", "rcx"
                              : out);
    return true;
out:
    return false;
}

#endif /* OS_POSIX_PERCPU_X86_64_H */
