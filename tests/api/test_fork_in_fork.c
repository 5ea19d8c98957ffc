/* SPDX-License-Identifier: MIT */
/*
 * A signal handler forks while the library's own fork handlers run after the system call, in the
 * parent or in the child: at many of their instructions, most of them the first and the last ones.
 * All processes then use everything, with a further thread.
 *
 * ctest: cost 5
 * ctest: needs steps
 */
#define _GNU_SOURCE

#include <dlfcn.h>
#include <limits.h>
#include <sys/mman.h>

#include <prudence/prudence.h>
#include <prudence/rcu.h>

#include "gp/user/readers.h"
#include "support/gp_child.h"
#include "support/step.h"
#include "support/suite.h"
#include "support/threads.h"

static unsigned at;    /* instruction before which the handler forks */
static unsigned *seen; /* instructions; shared with the child, where they may be */
static bool in_child, system_called;
static pid_t top, forked, nested;

static bool is_of_library(const greg_t *registers)
{
    Dl_info here, library;

    return dladdr((void *)registers[REG_RIP], &here) &&
           dladdr((void *)(uintptr_t)prudence_malloc, &library) &&
           here.dli_fbase == library.dli_fbase;
}

static void fork_at_step(const greg_t *registers)
{
    if (step_is_at_call(registers, SYS_clone) || step_is_at_call(registers, SYS_fork)) {
        system_called = true;
    } else if (system_called && (getpid() != top) == in_child && is_of_library(registers) &&
               (*seen)++ == at) {
        step_enough = true;
        nested = fork();
    }
}

static void forks(void *unused)
{
    (void)unused;
    forked = fork();
}

static void *uses_everything(void *unused)
{
    for (unsigned i = 0; i < 5; i++) {
        prudence_free(prudence_malloc(i * 7000));
        prudence_free_deferred(prudence_malloc(i * 130));
    }
    prudence_synchronize();
    prudence_trim();
    return unused;
}

/* Runs in all three processes, and returns in the first one. */
static void all_go_on(void)
{
    /* Otherwise this thread counts as gone, and its sections as left. */
    if (readers_slot(&prudence_default)->thread != os_thread_id())
        abort();
    in_thread(uses_everything, NULL);
    if (nested > 0 && status_of(nested))
        abort();
    if (getpid() != top)
        _exit(0);
    if (status_of(forked))
        fail_msg("interrupted at instruction %u", at);
}

static void kill_all(int signal)
{
    (void)signal;
    kill(0, SIGKILL);
}

static void interrupt_at(unsigned instruction)
{
    alarm(CHILD_PATIENCE);
    at = instruction;
    *seen = 0;
    system_called = false;
    nested = -1;
    step_through(forks, NULL, fork_at_step);
    all_go_on();
}

static int fork_at_many_steps(void *child)
{
    unsigned last;

    prudence_option_set("rseq", "0");
    uses_everything(NULL);
    top = getpid();
    setpgid(0, 0);
    signal(SIGALRM, kill_all); /* the first process waits, or its child hangs in fork */
    in_child = child != NULL;
    seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    interrupt_at(UINT_MAX);
    last = *seen - 1;
    for (unsigned i = 0; i <= last / 2; i += 1 + i / 3) {
        interrupt_at(i);
        interrupt_at(last - i);
    }
    return last > 1000 ? 42 : 2;
}

TEST(a_handler_forks_while_the_fork_ends_in_the_parent)
{
    assert_child(fork_at_many_steps, NULL);
}

TEST(a_handler_forks_while_the_fork_ends_in_the_child)
{
    assert_child(fork_at_many_steps, "child");
}

SUITE()
