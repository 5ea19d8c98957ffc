/* SPDX-License-Identifier: MIT */
/*
 * Private to <prudence/inline.h> and the library: the restartable sequences of the fast paths for
 * x86-64 and AArch64, and the layout that they know. Both use this one copy (docs/adr/0040). A
 * change of the words that a sequence reads or writes changes PRUDENCE_INLINE_LAYOUT. Then the
 * dynamic loader refuses a program that was compiled with another layout.
 *
 * Each stores the descriptor's address into struct rseq (rseq_cs, offset 8), which arms the section
 * [1, 2). Inside the section it reads cpu_id (offset 4), leaves if there is no line for that
 * number, and works. The last instruction before label 2 is the commit. A jump to label 2, 4 or
 * `out` leaves without committing. Sections with a result are plain asm, because the gcc of Debian
 * 12 miscompiles asm goto with outputs (and assumes that outputs are set on the jump). The kernel
 * sends an interrupted section to label 4, after the signature that rseq was registered with
 * (glibc's: 0x53053053, on AArch64 0xd428bc00). There the section gives up, as if the line were
 * closed. A debugger that steps interrupts each instruction, so a section that began again would
 * never end (docs/adr/0001). Stores before the commit go to slots that no thread reads until the
 * commit.
 *
 * There is a line for each number below `cpus`. A thread that is not registered has the number -1
 * or -2, and the system may have more CPUs than the library found at start. The comparison
 * sends both to the slow path.
 *
 * The owner of a line (os/posix/os_percpu.h of the library) keeps fast paths out. On x86-64 it
 * closes that line: pop finds no objects, push has no room, and the ring's stop is reached. So a
 * fast path does not ask who owns the line. It loads the one of these words that it depends on
 * *before* the count or tail, because a release writes that word last. On AArch64 a fast path tests
 * the owner. It loads that word with acquire, so it sees all that an owner did before the release,
 * on whatever CPU. Everything else is plain: a section reads only words written on this CPU (a
 * switch of threads is a full fence) or under ownership, and a thread that takes a line from
 * another CPU makes this one execute a full fence. Modelled in tests/model/c11/src/per_cpu.rs.
 *
 * The linker discards descriptor and return path together with the code, because an inline function
 * or template of C++ may be compiled several times and is kept once: they are in the group of the
 * code's section ("?"), or in that section itself.
 *
 * rseq_cs keeps pointing at the descriptor; the kernel clears rseq_cs when the thread is out of
 * range. So code with these sequences must never be unloaded.
 */
#ifndef PRUDENCE_SEQUENCES_H
#define PRUDENCE_SEQUENCES_H

#include <prudence/platform.h> /* first */

#include <prudence/language.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Number of the layout of the lines of CPUs, and of the words in caches, slabs and the page map
 * that <prudence/inline.h> knows.
 */
#define PRUDENCE_INLINE_LAYOUT 3

/*
 * The words of a CPU's line that the sequences know, by offset in the assembly and by name here.
 * They are the first ones of the library's own line (os/posix/os_percpu.h).
 */
#define PRUDENCE_LINE_WORDS                                                                        \
    uintptr_t owner;      /*  0: 0, or the owner's token */                                        \
    uint64_t stack_word;  /*  8: pops << 16 | objects on the stack */                              \
    void **pop_from;      /* 16: `stack`; only NULL if closed or without a stack */                \
    uint64_t stack_limit; /* 24: most objects on the stack; 0 if closed */                         \
    uint64_t ring_tail;   /* 32: objects ever appended */                                          \
    uint64_t ring_stop;   /* 40: tail at which appending needs the slow path; 0 if closed */       \
    uintptr_t ring_turn;  /* 48: slot 0, minus the tail at which this turn of the ring began */    \
    void **stack;         /* 56: the slot below exists and is NULL */
struct prudence_inline_line {
    PRUDENCE_LINE_WORDS
};

/* Distance between two CPUs' lines, 1 << 8 bytes; PRUDENCE_RSEQ_LINE has it, too. */
#define PRUDENCE_LINE_STRIDE 256

/* Adds one pop and removes one object in the stack's word. */
#define PRUDENCE_STACK_POP 0xffff

#if (defined(__x86_64__) || defined(__AARCH64EL__)) && defined(__LP64__) && defined(__linux__) &&  \
    defined(__GNUC__)

#define PRUDENCE_HAS_SEQUENCES 1

#ifdef __cplusplus
extern "C" {
#endif

struct prudence_cache;

/*
 * The first words of a cache. May be read here as this type, and in the library as another
 * structure.
 */
struct __attribute__((may_alias)) prudence_inline_cache {
    void *lines;          /* first CPU's line; owned lines if fast paths are closed */
    void **const *leaves; /* leaves of the page map */
    uintptr_t window;     /* start of the window */
    uint64_t extent;      /* bytes from there on, all live slabs of one size */
    uint64_t mask;        /* selects an address's place in such a slab */
    uint64_t reciprocal;  /* reciprocal of the distance of two objects, scaled */
    uint64_t end;         /* place x reciprocal is below this at the start of an object */
    uint32_t cpus;        /* number of lines */
};

/* The first words of a slab. */
struct __attribute__((may_alias)) prudence_inline_slab {
    const struct prudence_cache *cache;
    const char *base;    /* the first object */
    uint64_t reciprocal; /* reciprocal of the distance of two objects, scaled */
    uint64_t end;        /* offset x reciprocal is below this at the start of an object */
};

/*
 * The page map. An address has a leaf, and in that leaf the word of the page: the page's slab or
 * NULL. Addresses have 48 bits on AArch64, and 47 on x86-64.
 */
#if defined(__aarch64__)
#define PRUDENCE_INLINE_LEAVES (UINT64_C(1) << 18)
#else
#define PRUDENCE_INLINE_LEAVES (UINT64_C(1) << 17)
#endif
#define PRUDENCE_INLINE_LEAF_SHIFT 30
#define PRUDENCE_INLINE_PAGE_SHIFT 12

#if defined(__x86_64__)

/*
 * Makes the descriptor, the way out after an abort, and the start of the section. Leaves the CPU's
 * number in rcx.
 */
#define PRUDENCE_RSEQ_BEGIN(aborted)                                                               \
    ".pushsection __rseq_cs, \"aw?\"\n\t"                                                          \
    ".balign 32\n"                                                                                 \
    "3:\n\t"                                                                                       \
    ".long 0, 0\n\t"                                                                               \
    ".quad 1f, 2f - 1f, 4f\n\t"                                                                    \
    ".popsection\n\t"                                                                              \
    ".pushsection .text.unlikely, \"ax?\"\n\t"                                                     \
    ".byte 0x0f, 0xb9, 0x3d\n\t" /* ud1: the signature reads as an instruction that traps */       \
    ".long 0x53053053\n"                                                                           \
    "4:\n\t" aborted                                                                               \
    ".popsection\n\t"                                                                              \
    "leaq 3b(%%rip), %%rcx\n\t"                                                                    \
    "movq %%rcx, %%fs:8(%[rseq])\n"                                                                \
    "1:\n\t"                                                                                       \
    "movl %%fs:4(%[rseq]), %%ecx\n\t"

/* Sets rcx = lines + cpu x stride. Jumps to `out` if there is no such line. */
#define PRUDENCE_RSEQ_LINE(out)                                                                    \
    "cmpl %[cpus], %%ecx\n\t"                                                                      \
    "jae " out                                                                                     \
    "\n\t"                                                                                         \
    "shlq $8, %%rcx\n\t"                                                                           \
    "addq %[lines], %%rcx\n\t"

/*
 * `words` are a cache's, of which only `cpus` is read; a pointer to that alone would cost inlined
 * loops a register. `rseq` is the offset of this thread's struct rseq from the thread pointer.
 */
#define PRUDENCE_RSEQ_INPUTS [lines] "m"(*lines), [cpus] "m"(words->cpus), [rseq] "r"(rseq)

/* Gives up in a section with a result, which is then NULL. */
#define PRUDENCE_RSEQ_NO_RESULT(result)                                                            \
    "xorl %k[" result "], %k[" result                                                              \
    "]\n\t"                                                                                        \
    "jmp 2f\n\t"

/*
 * Takes an object from this CPU's stack. Returns NULL if the stack is empty or closed, which is
 * then the word there.
 */
static inline __attribute__((always_inline)) void *
prudence_sequence_pop(void *const *lines, const struct prudence_inline_cache *words, ptrdiff_t rseq)
{
    void *object;

    __asm__ __volatile__(PRUDENCE_RSEQ_BEGIN(PRUDENCE_RSEQ_NO_RESULT("object"))
                         PRUDENCE_RSEQ_LINE("4b")
                         "movq 16(%%rcx), %[object]\n\t"
                         "movq 8(%%rcx), %%rdx\n\t"
                         "movzwl %%dx, %%esi\n\t"
                         "movq -8(%[object],%%rsi,8), %[object]\n\t"
                         "testq %[object], %[object]\n\t"
                         "jz 2f\n\t"
                         "addq %[pop], %%rdx\n\t"
                         "movq %%rdx, 8(%%rcx)\n"
                         "2:"
                         : [object] "=&r"(object)
                         : PRUDENCE_RSEQ_INPUTS, [pop] "i"(PRUDENCE_STACK_POP)
                         : "memory", "cc", "rcx", "rdx", "rsi");
    return object;
}

/*
 * Puts an object on this CPU's stack. Returns false if the stack is full or closed, or if the
 * object is on top already, which would be a double free. Below the first object is NULL.
 */
static inline __attribute__((always_inline)) bool
prudence_sequence_push(void *const *lines, const struct prudence_inline_cache *words, void *object,
                       ptrdiff_t rseq)
{
    __asm__ __volatile__ goto(PRUDENCE_RSEQ_BEGIN("jmp %l[out]\n\t") PRUDENCE_RSEQ_LINE("%l[out]")
                              "movq 24(%%rcx), %%r9\n\t"
                              "movq 8(%%rcx), %%rdx\n\t"
                              "movzwl %%dx, %%r8d\n\t"
                              "cmpq %%r9, %%r8\n\t"
                              "jae %l[out]\n\t"
                              "movq 56(%%rcx), %%r9\n\t"
                              "cmpq %[object], -8(%%r9,%%r8,8)\n\t"
                              "je %l[out]\n\t"
                              "movq %[object], (%%r9,%%r8,8)\n\t"
                              "incq %%rdx\n\t"
                              "movq %%rdx, 8(%%rcx)\n"
                              "2:"
                              :
                              : PRUDENCE_RSEQ_INPUTS, [object] "r"(object)
                              : "memory", "cc", "rcx", "rdx", "r8", "r9"
                              : out);
    return true;
out:
    return false;
}

/*
 * Appends an object to this CPU's ring. Returns false if the batch is full, the line is closed, or
 * the previous slot holds the same object. In the last case the object is deferred twice, or that
 * slot is unused by now; the slow path finds out which. The slot is ring[tail & mask], but a batch
 * ends where a turn of the ring does. So within a batch the slow path has done that arithmetic:
 * ring_turn + 8 x tail. The stack is below slot 0.
 */
static inline __attribute__((always_inline)) bool
prudence_sequence_append(void *const *lines, const struct prudence_inline_cache *words,
                         void *object, ptrdiff_t rseq)
{
    __asm__ __volatile__ goto(PRUDENCE_RSEQ_BEGIN("jmp %l[out]\n\t") PRUDENCE_RSEQ_LINE("%l[out]")
                              "movq 40(%%rcx), %%r8\n\t"
                              "movq 32(%%rcx), %%rdx\n\t"
                              "cmpq %%r8, %%rdx\n\t"
                              "jae %l[out]\n\t"
                              "movq 48(%%rcx), %%r8\n\t"
                              "cmpq %[object], -8(%%r8,%%rdx,8)\n\t"
                              "je %l[out]\n\t"
                              "movq %[object], (%%r8,%%rdx,8)\n\t"
                              "incq %%rdx\n\t"
                              "movq %%rdx, 32(%%rcx)\n"
                              "2:"
                              :
                              : PRUDENCE_RSEQ_INPUTS, [object] "r"(object)
                              : "memory", "cc", "rcx", "rdx", "r8"
                              : out);
    return true;
out:
    return false;
}

#else /* AArch64 */

/*
 * Makes the descriptor, the way out after an abort, and the start of the section. Leaves the CPU's
 * number in w9. The way out is behind the functions of the same section, so no linker moves it out
 * of reach of a branch. It may be too far away for conditional branches.
 */
#define PRUDENCE_RSEQ_BEGIN(aborted)                                                               \
    ".pushsection __rseq_cs, \"aw?\"\n\t"                                                          \
    ".balign 32\n"                                                                                 \
    "3:\n\t"                                                                                       \
    ".long 0, 0\n\t"                                                                               \
    ".quad 1f, 2f - 1f, 4f\n\t"                                                                    \
    ".popsection\n\t"                                                                              \
    ".subsection 1\n\t"                                                                            \
    ".inst 0xd428bc00\n" /* the signature, a brk */                                                \
    "4:\n\t" aborted                                                                               \
    ".previous\n\t"                                                                                \
    "adrp x9, 3b\n\t"                                                                              \
    "add x9, x9, :lo12:3b\n\t"                                                                     \
    "str x9, [%[rseq], #8]\n"                                                                      \
    "1:\n\t"                                                                                       \
    "ldr w9, [%[rseq], #4]\n\t"

/* Jumps to `out` if the number in w9 has no line. */
#define PRUDENCE_RSEQ_HAS_LINE(out)                                                                \
    "ldr w10, %[cpus]\n\t"                                                                         \
    "cmp w9, w10\n\t"                                                                              \
    "b.hs " out "\n\t"

/* Sets x9 = lines + cpu x stride. Jumps to `out` if there is no such line or it is owned. */
#define PRUDENCE_RSEQ_LINE(out)                                                                    \
    PRUDENCE_RSEQ_HAS_LINE(out)                                                                    \
    "ldr x10, %[lines]\n\t"                                                                        \
    "add x9, x10, x9, lsl #8\n\t"                                                                  \
    "ldar x10, [x9]\n\t"                                                                           \
    "cbnz x10, " out "\n\t"

/* Works as on x86-64, but sections have this thread's struct rseq itself. */
#define PRUDENCE_RSEQ_INPUTS                                                                       \
    [lines] "m"(*lines), [cpus] "m"(words->cpus),                                                  \
        [rseq] "r"(PRUDENCE_CAST(char *, __builtin_thread_pointer()) + rseq)

/* Gives up in a section with a result, which is then NULL. */
#define PRUDENCE_RSEQ_NO_RESULT(result)                                                            \
    "mov %[" result                                                                                \
    "], xzr\n\t"                                                                                   \
    "b 2f\n\t"

/* Takes an object from this CPU's stack. Returns NULL if the stack is empty or the line owned. */
static inline __attribute__((always_inline)) void *
prudence_sequence_pop(void *const *lines, const struct prudence_inline_cache *words, ptrdiff_t rseq)
{
    void *object;

    __asm__ __volatile__(PRUDENCE_RSEQ_BEGIN(PRUDENCE_RSEQ_NO_RESULT(
        "object")) "mov %[object], xzr\n\t" PRUDENCE_RSEQ_LINE("2f")
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
                         : PRUDENCE_RSEQ_INPUTS, [pop] "r"(PRUDENCE_CONVERT(uint64_t, PRUDENCE_STACK_POP))
                         : "memory", "cc", "x9", "x10", "x11");
    return object;
}

/*
 * Puts an object on this CPU's stack. Returns false if the stack is full, the line is owned, or the
 * object is on top already, which would be a double free. Below the first object is NULL.
 */
static inline __attribute__((always_inline)) bool
prudence_sequence_push(void *const *lines, const struct prudence_inline_cache *words, void *object,
                       ptrdiff_t rseq)
{
    __asm__ __volatile__ goto(PRUDENCE_RSEQ_BEGIN("b %l[out]\n\t") PRUDENCE_RSEQ_LINE("%l[out]")
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
                              : PRUDENCE_RSEQ_INPUTS, [object] "r"(object)
                              : "memory", "cc", "x9", "x10", "x11", "x12"
                              : out);
    return true;
out:
    return false;
}

/*
 * Appends an object to this CPU's ring. Returns false if the batch is full, the line is owned, or
 * the previous slot holds the same object (see x86-64, which also has the slot's address).
 */
static inline __attribute__((always_inline)) bool
prudence_sequence_append(void *const *lines, const struct prudence_inline_cache *words,
                         void *object, ptrdiff_t rseq)
{
    __asm__ __volatile__ goto(PRUDENCE_RSEQ_BEGIN("b %l[out]\n\t") PRUDENCE_RSEQ_LINE("%l[out]")
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
                              : PRUDENCE_RSEQ_INPUTS, [object] "r"(object)
                              : "memory", "cc", "x9", "x10", "x11", "x12"
                              : out);
    return true;
out:
    return false;
}

#endif /* AArch64 */

#ifdef __cplusplus
}
#endif

#endif /* Linux on these two */

#endif /* PRUDENCE_SEQUENCES_H */
