/* SPDX-License-Identifier: MIT */
/*
 * Calls a function for a debugger that can write general registers alone (ADR 89). Where the
 * processor has AMX, gdb 13.1 cannot write vector registers back after a call of its own. The stub
 * saves them here, in the process, and restores them.
 *
 * The debugger writes these registers and lets the thread run, and no other:
 *
 *     rip  posix_call_stub       rbp  &posix_call_state
 *     rax  the function          rsp  below the red zone, a multiple of 16
 *     orig_rax  -1, so that the system does not repeat an interrupted system call here
 *     rdi, rsi, rdx, rcx, r8, r9  arguments
 *
 * The stub ends with a breakpoint, so the debugger writes none into code; rbx then has
 * what the function returned. Signals are blocked from the beginning until there, except those that
 * faults raise: a signal that arrives waits in the system. It stops the thread before the
 * breakpoint, when the handler's frame is not made yet, so the handler runs where the program was,
 * once the debugger has put the registers back.
 *
 * If the function faults, or another breakpoint stops it, the debugger lets the thread go on from
 * `back`, with rbp and rsp as above. `phase` says what `back` has to restore.
 *
 * One call at a time, because the state is one: a debugger that finds a phase other than CALL_NONE
 * calls nothing.
 */
#include "call_stub.h"

#if defined(HAS_CALL_STUB)

struct call_state posix_call_state;

#define AT(member, offset)                                                                         \
    _Static_assert(offsetof(struct call_state, member) == (offset), "the stub knows it")
AT(phase, 0);
AT(function, 8);
AT(back, 16);
AT(mask, 24);
AT(blocked, 32);
AT(refusal, 40);
AT(has_xsave, 48);
AT(area, 64);

#define TEXT_OF(number)          TEXT_OF_EXPANDED(number)
#define TEXT_OF_EXPANDED(number) #number

/* SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV and SIGSYS stay open: the system ends a process that
 * blocks the signal of a fault. */
#define OPEN "0x400004d8"

/* Two words of 0 end the stack for a debugger or a trace. A function may expect the x87 unit and
 * MXCSR in their first state. XSAVE wants a header of zeros. */
__attribute__((naked, used, noinline)) void posix_call_stub(void)
{
    __asm__("movq %rax, 8(%rbp)\n\t"
            "leaq 6f(%rip), %rax\n\t"
            "movq %rax, 16(%rbp)\n\t"
            "movq %rdi, %r12\n\t"
            "movq %rsi, %r13\n\t"
            "movq %rdx, %r14\n\t"
            "movq %rcx, %r15\n\t"
            "pushq $2\n\t"
            "popfq\n\t"
            "pushq $0\n\t"
            "pushq $0\n\t"

            "movabsq $~" OPEN ", %rax\n\t"
            "movq %rax, 32(%rbp)\n\t"
            "movq $2, 40(%rbp)\n\t" /* CALL_SIGNALS_OPEN */
            "movl $14, %eax\n\t"    /* rt_sigprocmask(SIG_BLOCK, &blocked, &mask, 8) */
            "xorl %edi, %edi\n\t"
            "leaq 32(%rbp), %rsi\n\t"
            "leaq 24(%rbp), %rdx\n\t"
            "movl $8, %r10d\n\t"
            "syscall\n\t"
            "testq %rax, %rax\n\t"
            "jnz 8f\n\t"
            "movq $1, 0(%rbp)\n\t"  /* CALL_SIGNALS_BLOCKED */
            "movq $1, 40(%rbp)\n\t" /* CALL_NO_ROOM */

            "xorl %edi, %edi\n\t"
            "movl $1, %eax\n\t"
            "cpuid\n\t"
            "btl $27, %ecx\n\t" /* OSXSAVE */
            "jnc 1f\n\t"
            "movl $13, %eax\n\t"
            "xorl %ecx, %ecx\n\t"
            "cpuid\n\t"
            "cmpl $" TEXT_OF(CALL_ROOM) ", %ebx\n\t"
            "ja 6f\n\t"
            "incl %edi\n"
            "1:\t"
            "movq %rdi, 48(%rbp)\n\t"
            "testl %edi, %edi\n\t"
            "jz 2f\n\t"
            "leaq 64+512(%rbp), %rdi\n\t"
            "xorl %eax, %eax\n\t"
            "movl $8, %ecx\n\t"
            "rep stosq\n\t"
            "movl $-1, %eax\n\t"
            "movl $-1, %edx\n\t"
            "xsave64 64(%rbp)\n\t"
            "jmp 3f\n"
            "2:\t"
            "fxsave64 64(%rbp)\n"
            "3:\t"
            "movq $2, 0(%rbp)\n\t" /* CALL_STATE_SAVED */
            "movq $0, 40(%rbp)\n\t"
            "fninit\n\t"
            "movl $0x1f80, (%rsp)\n\t"
            "ldmxcsr (%rsp)\n\t"
            "movl $0, (%rsp)\n\t"

            "movq %r12, %rdi\n\t"
            "movq %r13, %rsi\n\t"
            "movq %r14, %rdx\n\t"
            "movq %r15, %rcx\n\t"
            "xorl %eax, %eax\n\t"
            "call *8(%rbp)\n\t"
            "movq %rax, %rbx\n"

            "6:\t" /* back */
            "cmpq $2, 0(%rbp)\n\t"
            "jb 4f\n\t"
            "movl $-1, %eax\n\t"
            "movl $-1, %edx\n\t"
            "cmpq $0, 48(%rbp)\n\t"
            "je 5f\n\t"
            "xrstor64 64(%rbp)\n\t"
            "jmp 4f\n"
            "5:\t"
            "fxrstor64 64(%rbp)\n"
            "4:\t"
            "movq $0, 0(%rbp)\n\t" /* CALL_NONE */
            "movl $14, %eax\n\t"   /* rt_sigprocmask(SIG_SETMASK, &mask, NULL, 8) */
            "movl $2, %edi\n\t"
            "leaq 24(%rbp), %rsi\n\t"
            "xorl %edx, %edx\n\t"
            "movl $8, %r10d\n\t"
            "syscall\n"
            "8:\t"
            "int3\n\t" /* done */
            "jmp 8b");
}

#endif
