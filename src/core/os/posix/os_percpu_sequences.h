/* SPDX-License-Identifier: MIT */
/*
 * What the processors with restartable sequences share: the library's fast paths, which are those
 * that programs may inline (<prudence/sequences.h>), and the layout that all sequences know.
 */
#ifndef OS_POSIX_PERCPU_SEQUENCES_H
#define OS_POSIX_PERCPU_SEQUENCES_H

#include <prudence/sequences.h>

#define OS_PERCPU_HAS_RSEQ 1

/* Sequences take the words of a cache and compare with `cpus`. All caches have the same words;
 * this is the library's copy. */
extern HIDDEN struct prudence_inline_cache os_percpu_words;
#define os_percpu_cpus os_percpu_words.cpus

#define LINE_HAS(member, offset)                                                                   \
    _Static_assert(offsetof(struct os_percpu_line, member) == (offset), "known to the assembly")

LINE_HAS(owner, 0);
LINE_HAS(stack_word, 8);
LINE_HAS(pop_from, 16);
LINE_HAS(stack_limit, 24);
LINE_HAS(ring_tail, 32);
LINE_HAS(ring_stop, 40);
LINE_HAS(ring_turn, 48);
LINE_HAS(stack, 56);
LINE_HAS(ring_head, 64);
LINE_HAS(ring, 72);
LINE_HAS(ring_mask, 80);

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

/* Returns the address from which glibc counts the offset of struct rseq. */
static inline char *os_percpu_thread_pointer(void)
{
#if defined(__x86_64__) && !defined(__clang__) && __GNUC__ < 11
    char *pointer; /* the word at %fs:0 has its own address */

    __asm__("movq %%fs:0, %0" : "=r"(pointer));
    return pointer;
#else
    return (char *)__builtin_thread_pointer();
#endif
}

/* Returns the number that the kernel keeps in the struct rseq at `rseq` from the thread pointer. */
static inline uint32_t os_percpu_number_at(ptrdiff_t rseq)
{
    return load_relaxed(
        (const uint32_t *)(const void *)(os_percpu_thread_pointer() + rseq + sizeof(uint32_t)));
}

#endif /* OS_POSIX_PERCPU_SEQUENCES_H */
