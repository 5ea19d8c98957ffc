/* SPDX-License-Identifier: MIT */
/*
 * Restartable sequences of os_percpu.h for aarch64.
 *
 * Each has the shape it has on x86-64 (os_percpu_x86_64.h). It arms the section [1, 2) by storing
 * the descriptor's address into struct rseq (rseq_cs, offset 8, from the thread pointer in
 * tpidr_el0), reads cpu_id (offset 4) and the lines' address inside the section, and works; the
 * store before label 2 commits. A jump to label 2, or to `out`, leaves without committing. The
 * kernel sends an interrupted section to label 4, which follows the signature that glibc registers
 * rseq with (0xd428bc00, a brk). There the section gives up, as it does if the CPU's number has no
 * line (docs/adr/0001). Label 4 is too far away for conditional branches.
 *
 * Order. The owner is loaded with acquire, so a section sees all that an owner did before its
 * release, on whatever CPU. Everything else is plain: a section reads only words written on this
 * CPU (a switch of threads is a full fence) or under ownership, and a thread that takes a line from
 * another CPU makes this one execute a full fence. Modelled in tests/model/c11/src/per_cpu.rs.
 */
#ifndef OS_POSIX_PERCPU_AARCH64_H
#define OS_POSIX_PERCPU_AARCH64_H

#define OS_PERCPU_HAS_RSEQ 1
#define OS_PERCPU_CLOSES                                                                           \
    0 /* the owner test is the one acquire that all loads need: docs/adr/0001 */

extern HIDDEN uint32_t os_percpu_cpus;

_Static_assert(offsetof(struct os_percpu_line, owner) == 0, "known to the assembly");
_Static_assert(offsetof(struct os_percpu_line, stack_word) == 8, "known to the assembly");
_Static_assert(offsetof(struct os_percpu_line, stack_limit) == 24, "known to the assembly");
_Static_assert(offsetof(struct os_percpu_line, ring_tail) == 32, "known to the assembly");
_Static_assert(offsetof(struct os_percpu_line, ring_stop) == 40, "known to the assembly");
_Static_assert(offsetof(struct os_percpu_line, ring_turn) == 48, "known to the assembly");
_Static_assert(offsetof(struct os_percpu_line, stack) == 56, "known to the assembly");
_Static_assert(offsetof(struct os_percpu_line, ring_head) == 64, "known to the assembly");
_Static_assert(offsetof(struct os_percpu_line, ring) == 72, "known to the assembly");
_Static_assert(offsetof(struct os_percpu_line, ring_mask) == 80, "known to the assembly");
_Static_assert(OS_PERCPU_SHIFT == 8, "known to the assembly");

/* The descriptor, the way out after an abort, and the start of the section; sets w9 to the CPU's
 * number. */
#define RSEQ_BEGIN(aborted)                                                                        \
    ".pushsection __rseq_cs, \"aw\"\n\t"                                                           \
    ".balign 32\n"                                                                                 \
    "3:\n\t"                                                                                       \
    ".long 0, 0\n\t"                                                                               \
    ".quad 1f, 2f - 1f, 4f\n\t"                                                                    \
    ".popsection\n\t"                                                                              \
    ".pushsection .text.unlikely, \"ax\"\n\t"                                                      \
    ".balign 4\n\t"                                                                                \
    ".inst 0xd428bc00\n"                                                                           \
    "4:\n\t" aborted                                                                               \
    ".popsection\n\t"                                                                              \
    "adrp x9, 3b\n\t"                                                                              \
    "add x9, x9, :lo12:3b\n\t"                                                                     \
    "str x9, [%[rseq], #8]\n"                                                                      \
    "1:\n\t"                                                                                       \
    "ldr w9, [%[rseq], #4]\n\t"

/* Ends an aborted section that has a result, with none. */
#define RSEQ_NO_RESULT(result)                                                                     \
    "mov %[" result                                                                                \
    "], xzr\n\t"                                                                                   \
    "b 2f\n\t"

/* Jumps to `out` if the number in w9 has no line. */
#define RSEQ_HAS_LINE(out)                                                                         \
    "ldr w10, %[cpus]\n\t"                                                                         \
    "cmp w9, w10\n\t"                                                                              \
    "b.hs " out "\n\t"

/* Sets x9 to lines + cpu x stride. Jumps to `out` if there is no such line or it is owned. */
#define RSEQ_LINE_UNOWNED(out)                                                                     \
    RSEQ_HAS_LINE(out)                                                                             \
    "ldr x10, %[lines]\n\t"                                                                        \
    "add x9, x10, x9, lsl #8\n\t"                                                                  \
    "ldar x10, [x9]\n\t"                                                                           \
    "cbnz x10, " out "\n\t"

#define RSEQ_INPUTS                                                                                \
    [lines] "m"(*lines), [cpus] "m"(os_percpu_cpus),                                               \
        [rseq] "r"((char *)__builtin_thread_pointer() + os_percpu_rseq_offset)

/* Takes an object from this CPU's stack. Returns NULL if the stack is empty or the line owned. */
static inline void *os_percpu_pop(void *const *lines)
{
    void *object;

    __asm__ __volatile__(RSEQ_BEGIN(RSEQ_NO_RESULT("object")) "mov %[object], xzr\n\t" RSEQ_LINE_UNOWNED("2f")
                         "ldr x10, [x9, #8]\n\t"
                         "ands x11, x10, #0xffff\n\t"
                         "b.eq 2f\n\t"
                         "ldr %[object], [x9, #56]\n\t"
                         "sub x11, x11, #1\n\t"
                         "ldr %[object], [%[object], x11, lsl #3]\n\t"
                         "add x10, x10, %[pop]\n\t"
                         "str x10, [x9, #8]\n"
                         "2:"
                         : [object] "=&r"(object)
                         : RSEQ_INPUTS, [pop] "r"(STACK_POP)
                         : "memory", "cc", "x9", "x10", "x11");
    return object;
}

/* Returns the object that pop would return, but leaves it on the stack. */
static inline void *os_percpu_top(void *const *lines)
{
    void *object;

    __asm__ __volatile__(RSEQ_BEGIN(RSEQ_NO_RESULT("object")) "mov %[object], xzr\n\t" RSEQ_LINE_UNOWNED("2f")
                         "ldr x10, [x9, #8]\n\t"
                         "ands x11, x10, #0xffff\n\t"
                         "b.eq 2f\n\t"
                         "ldr %[object], [x9, #56]\n\t"
                         "sub x11, x11, #1\n\t"
                         "ldr %[object], [%[object], x11, lsl #3]\n"
                         "2:"
                         : [object] "=&r"(object)
                         : RSEQ_INPUTS
                         : "memory", "cc", "x9", "x10", "x11");
    return object;
}

/* Puts an object on this CPU's stack. Returns false if the stack is full, the line is owned, or
 * the object is on top already, which is a double free. The slot below the first holds NULL. */
static inline bool os_percpu_push(void *const *lines, void *object)
{
    __asm__ __volatile__ goto(RSEQ_BEGIN("b %l[out]\n\t") RSEQ_LINE_UNOWNED("%l[out]")
                              "ldr x10, [x9, #8]\n\t"
                              "and x11, x10, #0xffff\n\t"
                              "ldr x12, [x9, #24]\n\t"
                              "cmp x11, x12\n\t"
                              "b.hs %l[out]\n\t"
                              "ldr x12, [x9, #56]\n\t"
                              "add x12, x12, x11, lsl #3\n\t"
                              "ldur x11, [x12, #-8]\n\t"
                              "cmp x11, %[object]\n\t"
                              "b.eq %l[out]\n\t"
                              "str %[object], [x12]\n\t"
                              "add x10, x10, #1\n\t"
                              "str x10, [x9, #8]\n"
                              "2:"
                              :
                              : RSEQ_INPUTS, [object] "r"(object)
                              : "memory", "cc", "x9", "x10", "x11", "x12"
                              : out);
    return true;
out:
    return false;
}

/* Appends an object to this CPU's ring. Returns false if the batch is full, the line is owned,
 * or the slot before holds the same object. The slot is ring_turn + 8 x tail (see
 * <prudence/sequences.h>). */
static inline bool os_percpu_append(void *const *lines, void *object)
{
    __asm__ __volatile__ goto(RSEQ_BEGIN("b %l[out]\n\t") RSEQ_LINE_UNOWNED("%l[out]")
                              "ldp x10, x11, [x9, #32]\n\t"
                              "cmp x10, x11\n\t"
                              "b.eq %l[out]\n\t"
                              "ldr x11, [x9, #48]\n\t"
                              "add x11, x11, x10, lsl #3\n\t"
                              "ldur x12, [x11, #-8]\n\t"
                              "cmp x12, %[object]\n\t"
                              "b.eq %l[out]\n\t"
                              "str %[object], [x11]\n\t"
                              "add x10, x10, #1\n\t"
                              "str x10, [x9, #32]\n"
                              "2:"
                              :
                              : RSEQ_INPUTS, [object] "r"(object)
                              : "memory", "cc", "x9", "x10", "x11", "x12"
                              : out);
    return true;
out:
    return false;
}

/* Local take: commits the token. Returns NULL if the line is owned or the section could not end. */
static inline struct os_percpu_line *os_percpu_take_rseq(void *const *lines, uintptr_t token)
{
    struct os_percpu_line *taken;

    __asm__ __volatile__(RSEQ_BEGIN(RSEQ_NO_RESULT("taken")) "mov %[taken], xzr\n\t" RSEQ_LINE_UNOWNED("2f")
                         "mov %[taken], x9\n\t"
                         "str %[token], [x9]\n"
                         "2:"
                         : [taken] "=&r"(taken)
                         : RSEQ_INPUTS, [token] "r"(token)
                         : "memory", "cc", "x9", "x10");
    return taken;
}

/*
 * Removes the object at the ring's head if this is `cpu` and the head is still `expected_head`.
 * Returns NULL otherwise, or if the section was interrupted (see os_percpu_x86_64.h).
 */
static inline void *os_percpu_remove(void *const *lines, unsigned cpu, uint64_t expected_head)
{
    void *object;

    __asm__ __volatile__(RSEQ_BEGIN(RSEQ_NO_RESULT("object")) "mov %[object], xzr\n\t"
                         "cmp w9, %w[cpu]\n\t"
                         "b.ne 2f\n\t" RSEQ_LINE_UNOWNED("2f")
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
                         : RSEQ_INPUTS, [cpu] "r"(cpu), [head] "r"(expected_head)
                         : "memory", "cc", "x9", "x10", "x11", "x12");
    return object;
}

/* Adds to the first word of this CPU's line, where `lines` may be lines of any kind, one for
 * each number below os_percpu_cpus. Returns false, with nothing added, if the section was
 * interrupted or there is no such line. */
static inline bool os_percpu_add(void *const *lines, int64_t number)
{
    __asm__ __volatile__ goto(RSEQ_BEGIN("b %l[out]\n\t") RSEQ_HAS_LINE("%l[out]")
                              "ldr x10, %[lines]\n\t"
                              "add x9, x10, x9, lsl #8\n\t"
                              "ldr x10, [x9]\n\t"
                              "add x10, x10, %[number]\n\t"
                              "str x10, [x9]\n"
                              "2:"
                              :
                              : RSEQ_INPUTS, [number] "r"(number)
                              : "memory", "cc", "x9", "x10"
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

#endif /* OS_POSIX_PERCPU_AARCH64_H */
