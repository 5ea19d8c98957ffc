/* SPDX-License-Identifier: MIT */
/*
 * Tests whether the kernel restarts restartable sequences and whether the library uses them, and
 * compares.
 *
 * A sequence says that it has begun, and spins until a flag is raised. Another thread waits for the
 * beginning, makes the kernel restart the sequence, and raises the flag. If the sequence sees the
 * flag, it was not restarted, so the kernel is broken. Two events must restart a sequence:
 * membarrier's command and another thread on the same CPU. (A signal must as well, but some broken
 * kernels restart only for a signal.)
 *
 *     guest_sequences [uname26]
 *
 * With uname26 the kernel calls itself 2.6, as for old programs, so its version says nothing about
 * sequences.
 *
 * Exit status 0: the library uses sequences if and only if the kernel restarts them and rseq=0 is
 * not set; 1: otherwise.
 */
#define _GNU_SOURCE
#include "guest.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/personality.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TRIES      20
#define UNDECIDED  "could not be tested" /* src/core/os/posix/percpu.c */
#define ASKED_MOST '5'

extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

static struct {
    atomic_uint begun, flag;
} shared;

/* Returns true if the kernel restarted the sequence, false if the sequence saw the flag. */
static __attribute__((noinline)) bool is_restarted(void)
{
    char *area = (char *)__builtin_thread_pointer() + __rseq_offset;
    uint32_t restarted;

#if defined(__x86_64__)
    __asm__ volatile(
        ".pushsection __rseq_cs, \"aw\"\n"
        "    .balign 32\n"
        "10: .long 0, 0\n"
        "    .quad 1f, 2f - 1f, 3f\n"
        ".popsection\n"
        ".pushsection .text.unlikely, \"ax\"\n"
        "    .byte 0x0f, 0xb9, 0x3d\n" /* the signature, as an instruction that traps */
        "    .long 0x53053053\n"
        "3:  movl $1, %[restarted]\n"
        "    jmp 4f\n"
        ".popsection\n"
        "    leaq 10b(%%rip), %%rax\n"
        "    movq %%rax, 8(%[area])\n"
        "1:  movl $1, (%[shared])\n"
        "5:  pause\n"
        "    cmpl $0, 4(%[shared])\n"
        "    je 5b\n"
        "    xorl %[restarted], %[restarted]\n"
        "2:\n"
        "4:\n"
        : [restarted] "=&r"(restarted)
        : [area] "r"(area), [shared] "r"(&shared)
        : "rax", "memory", "cc");
#elif defined(__aarch64__)
    uint64_t scratch;

    __asm__ volatile(
        ".pushsection __rseq_cs, \"aw\"\n"
        "    .balign 32\n"
        "10: .long 0, 0\n"
        "    .quad 1f, 2f - 1f, 3f\n"
        ".popsection\n"
        ".pushsection .text.unlikely, \"ax\"\n"
        "    .balign 4\n"
        "    .inst 0xd428bc00\n" /* the signature */
        "3:  mov %w[restarted], #1\n"
        "    b 4f\n"
        ".popsection\n"
        "    adrp %[scratch], 10b\n"
        "    add %[scratch], %[scratch], :lo12:10b\n"
        "    str %[scratch], [%[area], #8]\n"
        "1:  mov %w[scratch], #1\n"
        "    str %w[scratch], [%[shared]]\n"
        "5:  ldr %w[scratch], [%[shared], #4]\n"
        "    cbz %w[scratch], 5b\n"
        "    mov %w[restarted], #0\n"
        "2:\n"
        "4:\n"
        : [restarted] "=&r"(restarted), [scratch] "=&r"(scratch)
        : [area] "r"(area), [shared] "r"(&shared)
        : "memory", "cc");
#else
    (void)area;
    restarted = 0;
#endif
    return restarted;
}

static bool membarrier(int command)
{
    return syscall(SYS_membarrier, command, 0, 0) == 0;
}

static void wait_until_begun(void)
{
    while (!atomic_load(&shared.begun))
        sched_yield();
}

static void *raise_after_membarrier(void *unused)
{
    (void)unused;
    wait_until_begun();
    if (!membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ))
        perror("membarrier"); /* counts as a sequence that was not restarted */
    atomic_store(&shared.flag, 1);
    return NULL;
}

/* Runs on the CPU of the sequence, so a thread that sees the beginning has preempted the
 * sequence. */
static void *raise_after_preemption(void *unused)
{
    (void)unused;
    wait_until_begun();
    atomic_store(&shared.flag, 1);
    return NULL;
}

/* Returns the number of restarted tries. The helper runs on this thread's CPUs. */
static unsigned count_restarts(void *(*helper)(void *))
{
    unsigned restarts = 0;

    for (unsigned i = 0; i < TRIES; i++) {
        pthread_t thread;

        atomic_store(&shared.begun, 0);
        atomic_store(&shared.flag, 0);
        if (pthread_create(&thread, NULL, helper, NULL) != 0)
            return 0;
        restarts += is_restarted();
        atomic_store(&shared.begun, 1); /* the restart may have come before the sequence set this */
        pthread_join(thread, NULL);
    }
    return restarts;
}

/* Returns NULL if sequences are available here, otherwise the reason why not. */
static const char *why_none(void)
{
#if !defined(__x86_64__) && !defined(__aarch64__)
    return "not on this processor";
#endif
    if (!&__rseq_size || !&__rseq_offset)
        return "the C library does not register them";
    if (__rseq_size == 0)
        return "not registered";
    if (!membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ))
        return "the kernel has no membarrier for them";
    return NULL;
}

static bool kernel_is_right(void)
{
    const char *none = why_none();
    unsigned by_membarrier, by_preemption;
    bool right;

    if (none) {
        printf("sequences: none (%s)\n", none);
        return false;
    }
    by_membarrier = count_restarts(raise_after_membarrier);
    guest_pin((unsigned)sched_getcpu(), 1);
    by_preemption = count_restarts(raise_after_preemption);
    right = by_membarrier == TRIES && by_preemption == TRIES;
    printf("sequences: restarted by membarrier %u of %d, by preemption %u of %d: %s\n",
           by_membarrier, TRIES, by_preemption, TRIES, right ? "right" : "BROKEN");
    return right;
}

/* Returns true if PRUDENCE_OPTIONS contains "rseq=0". No other option of the tests contains
 * this. */
static bool is_switched_off(void)
{
    const char *options = getenv("PRUDENCE_OPTIONS");

    return options && strstr(options, "rseq=0");
}

/* Executes the program again, because the library has already decided. Returns if this is
 * refused. */
static void start_again(char *program)
{
    char *const arguments[] = {program, NULL};

    fflush(stdout);
    execv("/proc/self/exe", arguments);
    perror("/proc/self/exe");
}

static void start_as_2_6(char *program)
{
    if (personality(PER_LINUX | UNAME26) >= 0)
        start_again(program);
    perror("uname26");
}

/* On a busy machine the library's own test may end without a verdict; the library then takes locks
 * and says so. Another process tests anew. */
static void ask_again_if_undecided(char *program, const char *percpu)
{
    const char *asked = getenv("GUEST_ASKED");
    char times[] = {asked ? (char)(asked[0] + 1) : '1', '\0'};

    if (!strstr(percpu, UNDECIDED) || times[0] > ASKED_MOST)
        return;
    printf("library: percpu %s: asked again\n", percpu);
    setenv("GUEST_ASKED", times, 1);
    start_again(program);
}

int main(int count, char **arguments)
{
    char percpu[256];
    bool wanted, uses, says_locks;

    if (count > 1) {
        start_as_2_6(arguments[0]);
        return GUEST_WRONG;
    }
    prudence_free(prudence_malloc(64));
    wanted = kernel_is_right() && !is_switched_off();
    guest_percpu(percpu, sizeof percpu);
    if (wanted)
        ask_again_if_undecided(arguments[0], percpu);
    uses = guest_begins_with(percpu, "sequences") || guest_begins_with(percpu, "rseq");
    says_locks = guest_begins_with(percpu, "lock");
    printf("library: percpu %s, wanted: %s\n", percpu[0] ? percpu : "(not said)",
           wanted ? "sequences" : "locks");
    return wanted ? (uses ? GUEST_RIGHT : GUEST_WRONG) : (says_locks ? GUEST_RIGHT : GUEST_WRONG);
}
