/* SPDX-License-Identifier: MIT */
/*
 * The restartable sequences of os_percpu.h for x86-64.
 *
 * Shape of each: store the descriptor's address into struct rseq (rseq_cs, offset 8), which arms
 * the section [1, 2); read cpu_id (offset 4) inside the section, so that no comparison is needed;
 * work; the last instruction before label 2 is the commit. A jump to label 2, or to `out`, leaves
 * without committing. Sections with a result are plain asm with the result zeroed first: asm goto
 * with outputs is miscompiled by the gcc of Debian 12 (its outputs are taken for set on the jump).
 * The kernel sends an interrupted section to label 4, behind the signature that rseq was
 * registered with (glibc's: 0x53053053), and from there it starts again at 5. Stores before the
 * commit go to slots that nobody reads until the commit.
 *
 * rseq_cs is left pointing at the descriptor; the kernel clears it when it is out of range. That
 * is why the library must never be unloaded (stay_loaded.c).
 */
#ifndef OS_POSIX_PERCPU_X86_64_H
#define OS_POSIX_PERCPU_X86_64_H

#define OS_PERCPU_HAS_RSEQ 1

_Static_assert(offsetof(struct os_percpu_line, owner) == 0, "known to the assembly");
_Static_assert(offsetof(struct os_percpu_line, stack_word) == 8, "known to the assembly");
_Static_assert(offsetof(struct os_percpu_line, stack) == 16, "known to the assembly");
_Static_assert(offsetof(struct os_percpu_line, stack_limit) == 24, "known to the assembly");
_Static_assert(offsetof(struct os_percpu_line, ring_tail) == 32, "known to the assembly");
_Static_assert(offsetof(struct os_percpu_line, ring_stop) == 40, "known to the assembly");
_Static_assert(offsetof(struct os_percpu_line, ring_turn) == 48, "known to the assembly");
_Static_assert(offsetof(struct os_percpu_line, ring_mask) == 56, "known to the assembly");
_Static_assert(offsetof(struct os_percpu_line, ring_head) == 64, "known to the assembly");
_Static_assert(offsetof(struct os_percpu_line, ring) == 72, "known to the assembly");
_Static_assert(OS_PERCPU_SHIFT == 8, "known to the assembly");

/* The descriptor, the way back after an abort, and the start of the section: rcx = the CPU's number. */
#define RSEQ_BEGIN                                                                                 \
    ".pushsection __rseq_cs, \"aw\"\n\t"                                                           \
    ".balign 32\n"                                                                                 \
    "3:\n\t"                                                                                       \
    ".long 0, 0\n\t"                                                                               \
    ".quad 1f, 2f - 1f, 4f\n\t"                                                                    \
    ".popsection\n\t"                                                                              \
    ".pushsection .text.unlikely, \"ax\"\n\t"                                                      \
    ".byte 0x0f, 0xb9, 0x3d\n\t" /* ud1: the signature reads as an instruction that traps */       \
    ".long 0x53053053\n"                                                                           \
    "4:\n\t"                                                                                       \
    "jmp 5f\n\t"                                                                                   \
    ".popsection\n"                                                                                \
    "5:\n\t"                                                                                       \
    "leaq 3b(%%rip), %%rcx\n\t"                                                                    \
    "movq %%rcx, %%fs:8(%[rseq])\n"                                                                \
    "1:\n\t"                                                                                       \
    "movl %%fs:4(%[rseq]), %%ecx\n\t"

/* rcx = lines + cpu x stride; out when it is owned. */
#define RSEQ_LINE_UNOWNED(out)                                                                     \
    "shlq $8, %%rcx\n\t"                                                                           \
    "addq %[lines], %%rcx\n\t"                                                                     \
    "cmpq $0, (%%rcx)\n\t"                                                                         \
    "jne " out "\n\t"

#define RSEQ_INPUTS [lines] "m"(*lines), [rseq] "r"(os_percpu_rseq_offset)

/* Takes an object from this CPU's stack; NULL when it is empty or owned. */
static inline void *os_percpu_pop(void *const *lines)
{
    void *object;

    __asm__ __volatile__(RSEQ_BEGIN "xorl %k[object], %k[object]\n\t" RSEQ_LINE_UNOWNED("2f")
                         "movq 8(%%rcx), %%rdx\n\t"
                         "movzwl %%dx, %%esi\n\t"
                         "testl %%esi, %%esi\n\t"
                         "jz 2f\n\t"
                         "movq 16(%%rcx), %[object]\n\t"
                         "movq -8(%[object],%%rsi,8), %[object]\n\t"
                         "addq %[pop], %%rdx\n\t"
                         "movq %%rdx, 8(%%rcx)\n"
                         "2:"
                         : [object] "=&r"(object)
                         : RSEQ_INPUTS, [pop] "i"(STACK_POP)
                         : "memory", "cc", "rcx", "rdx", "rsi");
    return object;
}

/* Puts an object on this CPU's stack; false when it is full or owned. */
static inline bool os_percpu_push(void *const *lines, void *object)
{
    __asm__ __volatile__ goto(RSEQ_BEGIN RSEQ_LINE_UNOWNED("%l[out]")
                              "movq 8(%%rcx), %%rdx\n\t"
                              "movzwl %%dx, %%r8d\n\t"
                              "cmpq 24(%%rcx), %%r8\n\t"
                              "jae %l[out]\n\t"
                              "movq 16(%%rcx), %%r9\n\t"
                              "movq %[object], (%%r9,%%r8,8)\n\t"
                              "incq %%rdx\n\t"
                              "movq %%rdx, 8(%%rcx)\n"
                              "2:"
                              :
                              : RSEQ_INPUTS, [object] "r"(object)
                              : "memory", "cc", "rcx", "rdx", "r8", "r9"
                              : out);
    return true;
out:
    return false;
}

/*
 * Appends an object to this CPU's ring; false when its batch is full or the line owned. The slot is
 * ring[tail & mask]; but a batch ends where a turn of the ring does, so within one the slow path has
 * done that arithmetic: ring_turn + 8 x tail.
 */
static inline bool os_percpu_append(void *const *lines, void *object)
{
    __asm__ __volatile__ goto(RSEQ_BEGIN RSEQ_LINE_UNOWNED("%l[out]")
                              "movq 32(%%rcx), %%rdx\n\t"
                              "cmpq 40(%%rcx), %%rdx\n\t"
                              "je %l[out]\n\t"
                              "movq 48(%%rcx), %%r8\n\t"
                              "movq %[object], (%%r8,%%rdx,8)\n\t"
                              "incq %%rdx\n\t"
                              "movq %%rdx, 32(%%rcx)\n"
                              "2:"
                              :
                              : RSEQ_INPUTS, [object] "r"(object)
                              : "memory", "cc", "rcx", "rdx", "r8"
                              : out);
    return true;
out:
    return false;
}

/* Local take: commits the token; NULL when the line is owned. */
static inline struct os_percpu_line *os_percpu_take_rseq(void *const *lines, uintptr_t token)
{
    struct os_percpu_line *taken;

    __asm__ __volatile__(RSEQ_BEGIN "xorl %k[taken], %k[taken]\n\t" RSEQ_LINE_UNOWNED("2f")
                         "movq %%rcx, %[taken]\n\t"
                         "movq %[token], (%%rcx)\n"
                         "2:"
                         : [taken] "=&r"(taken)
                         : RSEQ_INPUTS, [token] "r"(token)
                         : "memory", "cc", "rcx");
    return taken;
}

/*
 * Removes the object at the ring's head if this is `cpu` and the head is still `expected_head`;
 * NULL otherwise. For the idle helper, which must own nothing. The caller has seen to it that the
 * head lies in a closed batch: the head only grows, so the same head means the same batch.
 */
static inline void *os_percpu_remove(void *const *lines, unsigned cpu, uint64_t expected_head)
{
    void *object;

    __asm__ __volatile__(RSEQ_BEGIN "xorl %k[object], %k[object]\n\t"
                         "cmpl %[cpu], %%ecx\n\t"
                         "jne 2f\n\t" RSEQ_LINE_UNOWNED("2f")
                         "movq 64(%%rcx), %%rdx\n\t"
                         "cmpq %[head], %%rdx\n\t"
                         "jne 2f\n\t"
                         "movq %%rdx, %%rsi\n\t"
                         "andq 56(%%rcx), %%rsi\n\t"
                         "movq 72(%%rcx), %[object]\n\t"
                         "movq (%[object],%%rsi,8), %[object]\n\t"
                         "incq %%rdx\n\t"
                         "movq %%rdx, 64(%%rcx)\n"
                         "2:"
                         : [object] "=&r"(object)
                         : RSEQ_INPUTS, [cpu] "r"(cpu), [head] "r"(expected_head)
                         : "memory", "cc", "rcx", "rdx", "rsi");
    return object;
}

#endif /* OS_POSIX_PERCPU_X86_64_H */
