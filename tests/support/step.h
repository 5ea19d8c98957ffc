/* SPDX-License-Identifier: MIT */
/*
 * Runs a function instruction by instruction, under the processor's trap flag. A test thus sees
 * what another thread could see between any two stores, and does what that thread could do, without
 * waiting for a chance.
 *
 * Unavailable under AddressSanitizer and ThreadSanitizer, because most steps would be their own,
 * and for code that blocks signals, because a blocked SIGTRAP kills. Restartable sequences abort at
 * each step, so slow paths allocate; with rseq=0 or an injected topology these are the ordinary
 * paths.
 */
#ifndef TESTS_SUPPORT_STEP_H
#define TESTS_SUPPORT_STEP_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <ucontext.h>

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define STEP_POSSIBLE 1
#else
#define STEP_POSSIBLE 0
#endif

#if STEP_POSSIBLE

/* Called before each instruction of the body, on its thread. */
static void (*step_visit)(const greg_t *registers);
static bool step_visiting;
static bool step_enough; /* set by a visit; the rest of the body runs without steps */

static void step_trap(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    if (step_visiting)
        return;
    step_visiting = true;
    step_visit(((const ucontext_t *)context)->uc_mcontext.gregs);
    step_visiting = false;
    if (step_enough)
        ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~0x100LL;
}

/* Returns whether the next instruction is this system call. */
static inline bool step_is_at_call(const greg_t *registers, long call)
{
    const unsigned char *code = (const unsigned char *)registers[REG_RIP];

    return code[0] == 0x0f && code[1] == 0x05 && registers[REG_RAX] == call;
}

static __attribute__((noinline)) void step_through(void (*body)(void *argument), void *argument,
                                                   void (*visit)(const greg_t *registers))
{
    struct sigaction action = {.sa_sigaction = step_trap, .sa_flags = SA_SIGINFO}, saved;

    step_visit = visit;
    step_enough = false;
    sigaction(SIGTRAP, &action, &saved);
    __asm__ __volatile__("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
    body(argument);
    __asm__ __volatile__("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
    sigaction(SIGTRAP, &saved, NULL);
}

#endif

#endif /* TESTS_SUPPORT_STEP_H */
