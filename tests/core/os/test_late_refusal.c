/* SPDX-License-Identifier: MIT */
/*
 * membarrier is refused in the middle of a grace period, when readers rely on it. The driver must
 * visit every CPU instead before this grace period ends. A seccomp filter turns both calls into
 * signals; the handler refuses membarrier, and counts and makes sched_setaffinity.
 *
 * ctest: not-with thread (one thread)
 */
#define _GNU_SOURCE

#include <errno.h>
#include <linux/filter.h>
#include <linux/membarrier.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <prudence/prudence.h>
#include <prudence/rcu.h>

#include "gp/user/domain.h"
#include "support/gp_child.h"
#include "support/suite.h"

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)

static gp_cookie cookie;
static cpu_set_t visited;
static unsigned refused, too_late;

/* Calls of the library name the calling thread by 0, and those of the handler by its id. */
static void trap_calls(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_setaffinity, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof filter / sizeof filter[0], .filter = filter};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program))
        _exit(77);
}

static void visit(greg_t *registers)
{
    const cpu_set_t *set = (const cpu_set_t *)registers[REG_RDX];

    too_late += gp_poll(&prudence_default, cookie);
    if (CPU_COUNT(set) == 1)
        CPU_OR(&visited, &visited, set);
    registers[REG_RAX] = syscall(SYS_sched_setaffinity, gettid(), registers[REG_RSI], set);
    if (registers[REG_RAX] < 0)
        registers[REG_RAX] = -errno;
}

static void trapped(int number, siginfo_t *info, void *context)
{
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;

    if (info->si_syscall == SYS_sched_setaffinity) {
        visit(registers);
        return;
    }
    refused += registers[REG_RDI] == MEMBARRIER_CMD_PRIVATE_EXPEDITED;
    registers[REG_RAX] = -EPERM;
}

static bool is_fenced_for_good(void)
{
    return load_relaxed(&prudence_default.shared.fenced) &&
           load_relaxed(&prudence_default.readers_fence_themselves) && !os_membarrier_available();
}

static int drive_one_grace_period(void *unused)
{
    struct sigaction action = {.sa_sigaction = trapped, .sa_flags = SA_SIGINFO};
    cpu_set_t allowed, after;

    if (prudence_option_set("reader_mode", "free"))
        return 1;
    sigaction(SIGSYS, &action, NULL);
    sched_getaffinity(0, sizeof allowed, &allowed);
    store_relaxed(&prudence_default.choosing,
                  1u); /* as if another thread chose, so no mode is chosen in between */
    cookie = gp_snapshot(&prudence_default);
    trap_calls();
    if (!gp_wait(&prudence_default, cookie, 0) || refused != 1 || too_late)
        return 2;
    CPU_AND(&visited, &visited, &allowed); /* the driver may try other CPUs */
    if (!CPU_EQUAL(&visited, &allowed))
        return 3;
    sched_getaffinity(0, sizeof after, &after);
    if (!CPU_EQUAL(&after, &allowed))
        return 4;
    store_release(&prudence_default.choosing, 0u);
    store_relaxed(&prudence_default.chosen_at, (uint64_t)0);
    prudence_synchronize();
    return is_fenced_for_good() ? 42 : 5;
}

TEST(all_cpus_are_visited_before_it_ends)
{
    struct child_result result;

    if (!os_membarrier_available())
        skip();
    child_run(drive_one_grace_period, NULL, &result);
    if (child_exited_with(&result, 77))
        skip(); /* no seccomp here */
    assert_child_result(&result);
}

SUITE()

#else
int main(void)
{
    print_message("skipped: no registers to read\n");
    return 0;
}
#endif
