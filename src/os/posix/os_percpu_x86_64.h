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

#include <prudence/sequences.h>

#define OS_PERCPU_HAS_RSEQ 1
#define OS_PERCPU_CLOSES   1

/* Sequences take the words of a cache and compare with `cpus`. All caches have the same words;
 * this is the library's copy. */
extern HIDDEN struct prudence_inline_cache os_percpu_words;
#define os_percpu_cpus os_percpu_words.cpus

#define LINE_HAS(member)                                                                           \
    _Static_assert(offsetof(struct os_percpu_line, member) ==                                      \
                       offsetof(struct prudence_inline_line, member),                              \
                   "one line, two names")

_Static_assert(offsetof(struct os_percpu_line, owner) == 0, "known to the assembly");
_Static_assert(offsetof(struct os_percpu_line, stack_word) == 8, "known to the assembly");
_Static_assert(offsetof(struct os_percpu_line, pop_from) == 16, "known to the assembly");
_Static_assert(offsetof(struct os_percpu_line, stack_limit) == 24, "known to the assembly");
_Static_assert(offsetof(struct os_percpu_line, ring_tail) == 32, "known to the assembly");
_Static_assert(offsetof(struct os_percpu_line, ring_stop) == 40, "known to the assembly");
_Static_assert(offsetof(struct os_percpu_line, ring_turn) == 48, "known to the assembly");
_Static_assert(offsetof(struct os_percpu_line, stack) == 56, "known to the assembly");
_Static_assert(offsetof(struct os_percpu_line, ring_head) == 64, "known to the assembly");
_Static_assert(offsetof(struct os_percpu_line, ring) == 72, "known to the assembly");
_Static_assert(offsetof(struct os_percpu_line, ring_mask) == 80, "known to the assembly");
_Static_assert(OS_PERCPU_SHIFT == 8, "known to the assembly");
_Static_assert(OS_PERCPU_STRIDE == PRUDENCE_LINE_STRIDE, "one line, two names");
_Static_assert(STACK_POP == PRUDENCE_STACK_POP, "one line, two names");
LINE_HAS(owner);
LINE_HAS(stack_word);
LINE_HAS(pop_from);
LINE_HAS(stack_limit);
LINE_HAS(ring_tail);
LINE_HAS(ring_stop);
LINE_HAS(ring_turn);
LINE_HAS(stack);

/* Does what os_percpu.h says, but loads this thread's offset once. */
#define OS_PERCPU_HAS_APPEND_AND_POP 1
static inline __attribute__((always_inline)) bool os_percpu_append_and_pop(void *const *lines,
                                                                           void *old, void **object)
{
    ptrdiff_t rseq = os_percpu_rseq_offset;

    if (unlikely(!prudence_sequence_append(lines, &os_percpu_words, old, rseq)))
        return false;
    *object = prudence_sequence_pop(lines, &os_percpu_words, rseq);
    return true;
}

/* Jumps to `out` if the line in rcx is owned. */
#define RSEQ_UNOWNED(out)                                                                          \
    "cmpq $0, (%%rcx)\n\t"                                                                         \
    "jne " out "\n\t"

static inline void *os_percpu_pop(void *const *lines)
{
    return prudence_sequence_pop(lines, &os_percpu_words, os_percpu_rseq_offset);
}

static inline bool os_percpu_push(void *const *lines, void *object)
{
    return prudence_sequence_push(lines, &os_percpu_words, object, os_percpu_rseq_offset);
}

static inline bool os_percpu_append(void *const *lines, void *object)
{
    return prudence_sequence_append(lines, &os_percpu_words, object, os_percpu_rseq_offset);
}

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
 * section could not end. A take interrupted in between leaves a closed line that nobody owns.
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

/* Returns the number that the kernel keeps in the struct rseq at `rseq` from the thread pointer. */
static inline uint32_t os_percpu_number_at(ptrdiff_t rseq)
{
    return load_relaxed((const uint32_t *)(const void *)((char *)__builtin_thread_pointer() + rseq +
                                                         sizeof(uint32_t)));
}

#endif /* OS_POSIX_PERCPU_X86_64_H */
