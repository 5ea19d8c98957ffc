/* SPDX-License-Identifier: MIT */
/*
 * Private to <prudence/inline.h> and to the library: the restartable sequences of the fast paths for x86-64, and the
 * layout that they know. They stand here once, for both (docs/adr/0040). A change of what a sequence reads or
 * writes changes PRUDENCE_INLINE_LAYOUT: a program that was compiled with another layout is then refused
 * by the dynamic loader, unless the library still has the names of that layout (heap/inline.c of the library).
 *
 * Shape of each: store the descriptor's address into struct rseq (rseq_cs, offset 8), which arms
 * the section [1, 2); read cpu_id (offset 4) inside the section, and leave if there is no line for that number;
 * work; the last instruction before label 2 is the commit. A jump to label 2, 4 or `out` leaves
 * without committing. Sections with a result are plain asm: asm goto
 * with outputs is miscompiled by the gcc of Debian 12 (its outputs are taken for set on the jump).
 * The kernel sends an interrupted section to label 4, behind the signature that rseq was
 * registered with (glibc's: 0x53053053). There the section gives up, as if the line were closed: a debugger that
 * steps interrupts each instruction, so a section that began again would never end (docs/adr/0124). Stores before the
 * commit go to slots that nobody reads until the commit.
 *
 * There is a line for each number below `cpus`. A thread that is not registered has the number -1 or -2, and the
 * system may have more CPUs than the library was told of when it started: the comparison sends both to the slow path.
 *
 * The owner of a line (os/posix/os_percpu.h of the library) has closed it: there are no objects where pop takes them
 * from, no room to push, and the ring's stop is reached. So a fast path does not ask who owns the line. It loads the one
 * of these words that it depends on *before* the count or tail: a release writes that word last.
 *
 * Descriptor and way back are put into the group of the section that the code is in ("?"), so that the linker
 * discards them with it: an inline function or template of C++ may be compiled several times, and kept once.
 *
 * rseq_cs is left pointing at the descriptor; the kernel clears it when it is out of range. That
 * is why code with these sequences must never be unloaded.
 */
#ifndef PRUDENCE_SEQUENCES_H
#define PRUDENCE_SEQUENCES_H

#include <prudence/platform.h> /* first */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of the lines of CPUs, and of what <prudence/inline.h> says of caches, slabs and the page map. */
#define PRUDENCE_INLINE_LAYOUT 3

#if defined(__x86_64__) && defined(__LP64__) && defined(__linux__) && defined(__GNUC__)

#define PRUDENCE_HAS_SEQUENCES 1

#ifdef __cplusplus
extern "C" {
#endif

struct prudence_cache;

/* What the sequences know of a CPU's line: by offset in the assembly, here by name. */
struct prudence_inline_line {
    uintptr_t owner;      /*  0: 0, or the owner's token */
    uint64_t stack_word;  /*  8: pops << 16 | objects on the stack */
    void **pop_from;      /* 16: the stack, and NULL below it; closed: only NULL */
    uint64_t stack_limit; /* 24: objects that may be on the stack; closed: 0 */
    uint64_t ring_tail;   /* 32: objects ever appended */
    uint64_t ring_stop;   /* 40: the tail from which on appending needs the slow path; closed: 0 */
    uintptr_t ring_turn;  /* 48: slot 0, less the tail at which this turn of the ring began */
    void **stack;         /* 56: and NULL below it */
};

/* The first words of a cache. Reading them as what they are here, and the library as another structure, is no error. */
struct __attribute__((may_alias)) prudence_inline_cache {
    void *lines;          /* the first CPU's; owned ones where fast paths are closed */
    void **const *leaves; /* of the page map */
    uintptr_t window;     /* where its window begins */
    uint64_t extent;      /* bytes of it, all of which are live slabs of one size */
    uint64_t mask;        /* of an address: where it is in such a slab */
    uint64_t reciprocal;  /* of the distance of two objects, scaled */
    uint64_t end;         /* of what that place x reciprocal may be for the start of an object */
    uint32_t cpus;        /* how many lines there are */
};

/* The first words of a slab. */
struct __attribute__((may_alias)) prudence_inline_slab {
    const struct prudence_cache *cache;
    const char *base;    /* the first object */
    uint64_t reciprocal; /* of the distance of two objects, scaled */
    uint64_t end;        /* of what offset x reciprocal may be for the start of an object */
};

/* The page map: an address has a leaf, and in that the word of its page, which is its slab or NULL. */
#define PRUDENCE_INLINE_LEAVES     (UINT64_C(1) << 17)
#define PRUDENCE_INLINE_LEAF_SHIFT 30
#define PRUDENCE_INLINE_PAGE_SHIFT 12

/* From one CPU's line to the next: 1 << 8 bytes, which PRUDENCE_RSEQ_LINE knows. */
#define PRUDENCE_LINE_STRIDE 256

/* Of the stack's word: one pop more, one object less. */
#define PRUDENCE_STACK_POP 0xffff

/* The descriptor, the way out after an abort, and the start of the section: rcx = the CPU's number. */
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

/* rcx = lines + cpu x stride; `out` when there is no such line. */
#define PRUDENCE_RSEQ_LINE(out)                                                                    \
    "cmpl %[cpus], %%ecx\n\t"                                                                      \
    "jae " out                                                                                     \
    "\n\t"                                                                                         \
    "shlq $8, %%rcx\n\t"                                                                           \
    "addq %[lines], %%rcx\n\t"

/* `words`: of a cache, of which `cpus` is looked at; a pointer to that alone would cost inlined loops a register.
 * `rseq`: where this thread's struct rseq lies, from the thread pointer. */
#define PRUDENCE_RSEQ_INPUTS [lines] "m"(*lines), [cpus] "m"(words->cpus), [rseq] "r"(rseq)

/* A section with a result gives up: it has none. */
#define PRUDENCE_RSEQ_NO_RESULT(result)                                                            \
    "xorl %k[" result "], %k[" result                                                              \
    "]\n\t"                                                                                        \
    "jmp 2f\n\t"

/* Takes an object from this CPU's stack; NULL when it is empty or closed: then that is what lies there. */
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

/* Puts an object on this CPU's stack; false when it is full or closed, or the object is on top of it: then it is freed
 * twice. Below the first there is NULL. */
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
 * Appends an object to this CPU's ring; false when its batch is full, the line is closed, or the slot before holds the same
 * object: then it is deferred twice, or that slot is not used any more, and the slow path tells which. The slot is
 * ring[tail & mask]; but a batch ends where a turn of the ring does, so within one the slow path has
 * done that arithmetic: ring_turn + 8 x tail. Below slot 0 lies the stack.
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

#ifdef __cplusplus
}
#endif

#endif /* x86-64 Linux */

#endif /* PRUDENCE_SEQUENCES_H */
