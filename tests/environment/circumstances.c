/* SPDX-License-Identifier: MIT */
/* The table of circumstances (environment.h). */
#include "environment.h"

/* Calls that a sandbox may refuse. Without mmap there is no memory. */
#define CALLS                                                                                      \
    "membarrier sched_getaffinity sched_setaffinity getcpu sched_yield madvise mremap "            \
    "munmap openat open read prctl sched_setscheduler tgkill getpid gettid clock_gettime "         \
    "nanosleep uname sysinfo getrandom rt_sigaction rt_sigprocmask get_mempolicy mbind"

const struct circumstance circumstances[] = {
    {.name = "plain"},
    {.name = "refused-eperm:", .words = CALLS, .enter = refuse_with_eperm},
    {.name = "refused-enosys:", .words = CALLS, .enter = refuse_with_enosys},
    {.name = "refused-without-threads:",
     .words = "clone mprotect",
     .enter = refuse_with_eperm,
     .no_more_threads = true},
#if !ENVIRONMENT_LIBRARY /* grace periods need more calls */
    {.name = "sandbox",
     .enter = kill_unless_malloc_needs_it,
     .no_more_threads = true,
     .after_first = true},
#endif
    {.name = "rseq-unregistered", .in_thread = rseq_unregister},
    {.name = "rseq-registered-again", .in_thread = rseq_unregister_for_a_time},
    {.name = "single-step", .enter = step_through, .alone = true},
    {.name = "fork", .enter = go_on_in_child, .threads_gone = true},
    {.name = "fork-twice", .enter = go_on_in_grandchild, .threads_gone = true},
    {.name = "unshare:", .words = "mount net ipc uts files fs", .enter = unshare_word},
    {.name = "unshare-alone:", .words = "user", .enter = unshare_word, .alone = true},
    {.name = "setns:", .words = "mnt net ipc uts", .enter = setns_word},
    {.name = "limit:",
     .words = "descriptors addresses processes files locked",
     .enter = limit_word},
    {.name = "closed-descriptors", .enter = close_descriptors},
    {.name = "one-cpu", .enter = one_cpu},
    {.name = "roaming", .in_thread = roam},
    {.name = "storm-of-signals", .enter = storm_of_signals},
    {.name = "coroutines", .enter = coroutines},
    {.name = "main-leaves", .leave = main_leaves},
    {.name = "main-leaves-first", .leave = main_leaves_before_others},
    {.name = "possible-cpus:",
     .words = "0 0-1 0,2-3 0-8191 7 none nonsense",
     .enter = possible_cpus,
     .before_exec = true},
    {.name = "no-sys", .enter = no_sys, .before_exec = true},
    {.name = "no-proc", .enter = no_proc, .before_exec = true},
    {.name = "control-group:",
     .words = "max 1048576 0 18446744073709551616 nonsense none",
     .enter = control_group,
     .before_exec = true},
    {.name = "no-environment", .enter = no_environment, .before_exec = true},
};

const unsigned circumstance_count = sizeof circumstances / sizeof *circumstances;
