/* SPDX-License-Identifier: MIT */
/*
 * Tests whether this kernel restarts restartable sequences. On AArch64, Linux 6.19 to 7.0.13 does
 * not (a fault of its own, which other kernels with such a number may have or not), and there the
 * same object would be handed out twice.
 *
 * This thread begins a sequence that only spins until a flag is raised. A helper waits for that,
 * issues the command that must restart every sequence of the process (membarrier), and then raises
 * the flag. A sequence that sees the flag was not restarted. On one CPU the helper runs only after
 * this thread was preempted, which must restart the sequence as well. A signal would prove nothing,
 * because some broken kernels restart only for signals, so all signals are blocked.
 *
 * The helper is not a thread of the C library but a bare clone that shares the memory, so there is
 * no allocation and no SIGCHLD, and the process still counts as single-threaded. It uses this
 * thread's thread-local storage, so it only makes system calls, without errno. Both threads end
 * whatever happens to the other.
 */
#define _GNU_SOURCE /* clone, CLONE_VM */
#include "sequence_test.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h> /* __WCLONE */
#include <unistd.h>

#include "base/atomic.h"
#include "kernel_numbers.h"
#include "os_percpu.h"
#include "system_call.h"

enum sequence_verdict (*posix_sequence_verdict_injected)(void) = NULL;

/* The assembly knows the offset of `flag`. */
static struct {
    uint32_t begun, flag;
} shared;

#if OS_PERCPU_HAS_RSEQ && !defined(__SANITIZE_THREAD__)

#define RESTARTS    5       /* restarts that prove a sound kernel */
#define SPINS       5       /* of 10 ms without the helper, after which there is no verdict */
#define HELPER_MOST 1000000 /* yields of the CPU */

/* Ticks of a counter that a sequence can read without a system call. */
#if defined(__aarch64__)
static uint64_t ticks_now(void)
{
    uint64_t ticks;

    __asm__ __volatile__("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
}

static uint64_t ticks_of_10_ms(void)
{
    uint64_t hertz;

    __asm__ __volatile__("mrs %0, cntfrq_el0" : "=r"(hertz));
    return hertz / 100;
}
#else
static uint64_t ticks_now(void)
{
    return __builtin_ia32_rdtsc();
}

/* Assumes 2 GHz. */
static uint64_t ticks_of_10_ms(void)
{
    return 20000000;
}
#endif

/* Results of one try. */
enum { SAW_THE_FLAG = 0, RESTARTED = 1, RAN_OUT_OF_TIME = 2, NO_HELPER = 3 };

#if defined(__aarch64__)
static __attribute__((noinline)) int spin(char *rseq, uint64_t until)
{
    int result;

    __asm__ __volatile__(
        ".pushsection __rseq_cs, \"aw\"\n\t"
        ".balign 32\n"
        "3:\n\t"
        ".long 0, 0\n\t"
        ".quad 1f, 2f - 1f, 4f\n\t"
        ".popsection\n\t"
        ".pushsection .text.unlikely, \"ax\"\n\t"
        ".balign 4\n\t"
        ".inst 0xd428bc00\n"
        "4:\n\t"
        "b 5f\n\t"
        ".popsection\n\t"
        "adrp x9, 3b\n\t"
        "add x9, x9, :lo12:3b\n\t"
        "str x9, [%[rseq], #8]\n"
        "1:\n\t"
        "mov w9, #1\n\t"
        "str w9, [%[shared]]\n"
        "7:\n\t"
        "ldr w9, [%[shared], #4]\n\t"
        "mov %w[result], %w[saw]\n\t"
        "cbnz w9, 2f\n\t"
        "mov %w[result], %w[ran_out]\n\t"
        "mrs x9, cntvct_el0\n\t"
        "cmp x9, %[until]\n\t"
        "b.lo 7b\n"
        "2:\n\t"
        "b 6f\n"
        "5:\n\t"
        "mov %w[result], %w[restarted]\n"
        "6:"
        : [result] "=&r"(result)
        : [rseq] "r"(rseq), [shared] "r"(&shared), [until] "r"(until), [saw] "r"(SAW_THE_FLAG),
          [ran_out] "r"(RAN_OUT_OF_TIME), [restarted] "r"(RESTARTED)
        : "memory", "cc", "x9");
    return result;
}
#else
static __attribute__((noinline)) int spin(char *rseq, uint64_t until)
{
    int result;

    __asm__ __volatile__(
        ".pushsection __rseq_cs, \"aw\"\n\t"
        ".balign 32\n"
        "3:\n\t"
        ".long 0, 0\n\t"
        ".quad 1f, 2f - 1f, 4f\n\t"
        ".popsection\n\t"
        ".pushsection .text.unlikely, \"ax\"\n\t"
        ".byte 0x0f, 0xb9, 0x3d\n\t"
        ".long 0x53053053\n"
        "4:\n\t"
        "jmp 5f\n\t"
        ".popsection\n\t"
        "leaq 3b(%%rip), %%rax\n\t"
        "movq %%rax, 8(%[rseq])\n"
        "1:\n\t"
        "movl $1, (%[shared])\n"
        "7:\n\t"
        "pause\n\t"
        "movl %[saw], %[result]\n\t"
        "cmpl $0, 4(%[shared])\n\t"
        "jne 2f\n\t"
        "movl %[ran_out], %[result]\n\t"
        "rdtsc\n\t"
        "shlq $32, %%rdx\n\t"
        "orq %%rdx, %%rax\n\t"
        "cmpq %[until], %%rax\n\t"
        "jb 7b\n"
        "2:\n\t"
        "jmp 6f\n"
        "5:\n\t"
        "movl %[restarted], %[result]\n"
        "6:"
        : [result] "=&r"(result)
        : [rseq] "r"(rseq), [shared] "r"(&shared), [until] "r"(until), [saw] "i"(SAW_THE_FLAG),
          [ran_out] "i"(RAN_OUT_OF_TIME), [restarted] "i"(RESTARTED)
        : "memory", "cc", "rax", "rdx");
    return result;
}
#endif

/* If the command is refused the flag stays down, and there is no verdict. */
static __attribute__((no_sanitize("address", "undefined"))) int help(void *unused)
{
    (void)unused;
    for (unsigned i = 0; i < HELPER_MOST && !load_relaxed(&shared.begun); i++)
        bare_system_call(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
    if (bare_system_call(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ, 0, 0, 0, 0, 0) == 0)
        store_release(&shared.flag, 1u);
    return 0;
}

static int try_once(char *rseq)
{
    static char stack[16384] __attribute__((aligned(64)));
    int helper, result;

    store_relaxed(&shared.begun, 0u);
    store_relaxed(&shared.flag, 0u);
    helper = clone(help, stack + sizeof stack, CLONE_VM | CLONE_FS | CLONE_FILES, NULL);
    if (helper < 0)
        return NO_HELPER;
    result = spin(rseq, ticks_now() + ticks_of_10_ms());
    store_relaxed(&shared.begun, 1u); /* the sequence may have been restarted before it set this */
    while (syscall(SYS_wait4, helper, NULL, __WCLONE, NULL) < 0 && errno == EINTR)
        ;
    return result;
}

static enum sequence_verdict sequence_test_ask(char *rseq)
{
    unsigned restarts = 0, spins = 0;

    while (restarts < RESTARTS && spins < SPINS) {
        switch (try_once(rseq)) {
        case RESTARTED:
            restarts++;
            break;
        case RAN_OUT_OF_TIME:
            spins++;
            break;
        case SAW_THE_FLAG:
            return SEQUENCES_GO_ON;
        default:
            return SEQUENCES_UNKNOWN;
        }
    }
    return restarts == RESTARTS ? SEQUENCES_RESTART : SEQUENCES_UNKNOWN;
}

enum sequence_verdict sequence_test(char *rseq)
{
    uint64_t all = ~UINT64_C(0), before;
    enum sequence_verdict verdict;
    int saved_errno = errno;

    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof all);
    verdict = sequence_test_ask(rseq);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof before);
    errno = saved_errno;
    return verdict;
}

#else

enum sequence_verdict sequence_test(char *rseq)
{
    (void)rseq, (void)shared;
    return SEQUENCES_UNKNOWN;
}

#endif

/* Reads the next number of a version and skips a dot after it. */
static bool version_number(const char **text, unsigned *number)
{
    const char *at = *text;

    for (*number = 0; *at >= '0' && *at <= '9' && *number < 10000; at++)
        *number = 10 * *number + (unsigned)(*at - '0');
    if (at == *text)
        return false;
    *text = *at == '.' ? at + 1 : at;
    return true;
}

/* Distributions change kernels without changing these two numbers, so this only selects the
 * kernels to test. A process may also be shown 2.6 instead of the real version. */
bool sequence_test_is_wanted_for(const char *release)
{
    unsigned major, minor;

    if (!version_number(&release, &major) || !version_number(&release, &minor) || major < 3)
        return true;
    return (major == 6 && minor >= 19) || (major == 7 && minor < 1);
}

static bool sequence_test_is_due(void)
{
#if defined(__aarch64__)
    struct utsname name;

    return uname(&name) != 0 || sequence_test_is_wanted_for(name.release);
#else
    return false;
#endif
}

enum sequence_verdict posix_sequence_verdict(char *rseq)
{
    static enum sequence_verdict verdict = SEQUENCES_NOT_ASKED;

    if (posix_sequence_verdict_injected)
        return posix_sequence_verdict_injected();
    if (verdict == SEQUENCES_NOT_ASKED)
        verdict = sequence_test_is_due() ? sequence_test(rseq) : SEQUENCES_RESTART;
    return verdict;
}
