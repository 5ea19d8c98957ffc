/* SPDX-License-Identifier: MIT */
/*
 * The restartable sequences of os_percpu.h for aarch64.
 *
 * Shape of each as on x86-64 (os_percpu_x86_64.h): arm the section [1, 2) by storing the descriptor's
 * address into struct rseq (rseq_cs, offset 8, from the thread pointer in tpidr_el0); read cpu_id
 * (offset 4) and the lines' address inside it; work; the store before label 2 is the commit. A jump to
 * label 2, or to `out`, leaves without committing. The kernel sends an interrupted section to label 4,
 * behind the signature that glibc registers rseq with (0xd428bc00, a brk), where it gives up. So it does where there is
 * no line for the CPU's number (docs/adr/0124). Conditional branches do not reach the section that label 4 is in.
 *
 * Order. The owner is tested by a load with acquire: a section sees all that an owner did before its
 * release, on whatever CPU that was. Everything else is plain: what a section reads was written on
 * this CPU (a switch of threads is a full fence) or under ownership; a thread that takes a line from another
 * CPU makes this one execute a full fence. Modelled in tests/model/c11/src/per_cpu.rs.
 */
#ifndef OS_POSIX_PERCPU_AARCH64_H
#define OS_POSIX_PERCPU_AARCH64_H

#define OS_PERCPU_HAS_RSEQ 1
#define OS_PERCPU_CLOSES                                                                           \
    0 /* the owner test is the one acquire that all loads need: docs/adr/0051 */

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

/* The descriptor, the way out after an abort, and the start of the section: w9 = the CPU's number. */
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

/* A section with a result gives up: it has none. */
#define RSEQ_NO_RESULT(result)                                                                     \
    "mov %[" result                                                                                \
    "], xzr\n\t"                                                                                   \
    "b 2f\n\t"

/* Out when there is no line for the number in w9. */
#define RSEQ_HAS_LINE(out)                                                                         \
    "ldr w10, %[cpus]\n\t"                                                                         \
    "cmp w9, w10\n\t"                                                                              \
    "b.hs " out "\n\t"

/* x9 = lines + cpu x stride; out when there is no such line, or it is owned. */
#define RSEQ_LINE_UNOWNED(out)                                                                     \
    RSEQ_HAS_LINE(out)                                                                             \
    "ldr x10, %[lines]\n\t"                                                                        \
    "add x9, x10, x9, lsl #8\n\t"                                                                  \
    "ldar x10, [x9]\n\t"                                                                           \
    "cbnz x10, " out "\n\t"

#define RSEQ_INPUTS                                                                                \
    [lines] "m"(*lines), [cpus] "m"(os_percpu_cpus),                                               \
        [rseq] "r"((char *)__builtin_thread_pointer() + os_percpu_rseq_offset)

/* Takes an object from this CPU's stack; NULL when it is empty or owned. */
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

/* As pop, but the object stays. */
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

/* Puts an object on this CPU's stack; false when it is full or owned, or the object is on top of it: then it is freed
 * twice. Below the first there is NULL. */
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

/* Appends an object to this CPU's ring; false when its batch is full, the line is owned, or the slot before holds the same
 * object. The slot is ring_turn + 8 x tail (see <prudence/sequences.h>). */
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

/* Local take: commits the token; NULL when the line is owned, or the section could not end. */
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
 * Removes the object at the ring's head if this is `cpu` and the head is still `expected_head`;
 * NULL otherwise, or when the section was interrupted (see os_percpu_x86_64.h).
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

/* Adds to the first word of this CPU's line: lines of any kind, one for each number below os_percpu_cpus. False: the
 * section was interrupted, or there is no such line; then nothing was added. */
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

#endif /* OS_POSIX_PERCPU_AARCH64_H */
