/* SPDX-License-Identifier: MIT */
/*
 * Private to os/posix and to the process glue above: starting the parts in order, fork, and what
 * tests inject. Not part of what the allocator asks of a system (os/os.h).
 */
#ifndef OS_POSIX_POSIX_H
#define OS_POSIX_POSIX_H

#include <signal.h>

#include "base/base.h"
#include "few_calls.h"

#define POSIX_NODES_MAX 64

/* Called in this order, before any other function of os/os.h. The last three again when their options
 * change: membarrier at any time, rseq and slices while there is no cache. */
void posix_page_size_start(void);
void posix_cpu_start(void);
void posix_threads_start(void);
void posix_membarrier_start(bool wanted);
void posix_percpu_start(bool wanted);
void posix_slices_start(bool wanted);

/* Which calls may be made from then on (few_calls.h): last at start, and by the option sandbox. */
void posix_calls_set(enum os_calls calls);
void posix_process_note(void); /* which process this is: also in a copy */

/* Writes all bytes, whatever becomes of the descriptor: no signal ends the process (write.c). 0, or the error. Async-signal-safe, no
 * cancellation point; keeps errno. The same of functions of libc that write: between begin and end, by one thread. */
struct posix_quiet {
    uint64_t blocked, pending; /* signals that were so before, a bit each */
    bool few;                  /* calls were: `pending` is not known */
};
void posix_quiet_begin(struct posix_quiet *quiet);
void posix_quiet_end(const struct posix_quiet *quiet);
int posix_write(int fd, const void *bytes, size_t size);

/* Called when the library, or what it is linked into, has been loaded: from then on it is never unloaded.
 * Calls the dynamic loader, so not from inside an allocation. */
void posix_stay_loaded(void);

/* From now on there are no traces, if the program is a static one: called by a destructor of the default
 * priority (trace.c). */
void posix_trace_end(void);

/* Pretend that the system's pages have `size` bytes, if that is possible: not less than they have. Before anything is mapped. */
bool posix_page_size_possible(uint64_t size);
void posix_page_size_set(uint64_t size);

/* Pretend to have `cpus` CPUs on `nodes` nodes; `current` says which one a thread runs on. For
 * tests: before any cache is made, and followed by slab_start(), which sizes its arrays by the
 * number of CPUs. Per-CPU caches then use the lock fallback. */
void posix_topology_inject(unsigned cpus, unsigned nodes, unsigned (*current)(void));
void posix_cpu_inject(unsigned cpus, unsigned nodes, unsigned (*current)(void)); /* of that */

/* Stands in for the list of possible CPUs in /sys, before the library starts; NULL: the system's. For tests. */
extern const char *posix_cpus_possible_injected;

/* Stand in for the kernel, where a thread asks to be allowed longer time slices and where it gives one up; NULL: ask nobody, the
 * kernel again. Longer slices are then wanted if `enable` is not NULL. For tests. */
void posix_slices_inject(bool (*enable)(void), void (*yield)(void));

/* Pretend to know whether CPUs have idle time (os_idle_seen); NULL: ask the system again. For tests. */
void posix_idle_inject(bool (*idle)(unsigned cpu));

/*
 * Runs on each CPU that this thread may move to, whether the library knows of it or not, then goes back: whatever thread of
 * the process ran there has been switched out, which is a full fence for it and aborts its rseq
 * section. The slow substitute for a membarrier that the system refuses after it granted it at
 * start (a seccomp filter that came later). False when no CPU could be visited.
 */
bool posix_visit_cpus(void);

/* Waits for longer than a sequence of another CPU takes. Nothing may rely on it: a host may have taken that CPU away in the middle
 * of one. */
void posix_let_sequences_end(void);

/* The start of a small file, as text; false when there is none. */
bool posix_file_read(const char *path, char *text, size_t size);

/* The clock that ages free pages; coarse, since some milliseconds do not matter there. A test can
 * stand in for it. */
extern uint64_t (*posix_clock_injected)(void);
uint64_t posix_clock_coarse_ns(void);

/* Tells instead of the system whether threads want CPUs (os_thread_wants_cpu). For tests. */
extern bool (*posix_cpu_injected)(int thread, bool *wants, uint64_t *had);

/* Whether the program has a handler there, not the default action and not none. */
bool posix_signal_is_handled(const struct sigaction *action);

/* Installs a handler, with SA_SIGINFO, SA_RESTART and `flags`, in front of the program's, which is *before: what sigaction has just told
 * the caller, who has to have it where the handler finds it. The program's mask stays, and that its signal ends system calls; with
 * SA_RESETHAND in `flags`, also that it is for one signal: then ours is as well. Not for one signal by two threads at a time. */
typedef void posix_signal_handler(int number, siginfo_t *info, void *context);
void posix_signal_stand_before(int number, posix_signal_handler *handler, int flags,
                               const struct sigaction *before);

/* From a handler that stands in front of `to`: calls that one, unless it is the default action or none. Async-signal-safe. */
void posix_signal_pass_on(const struct sigaction *to, int number, siginfo_t *info, void *context);

/* Whether guarded pages may be marked in the page table: false as before Linux 6.13. For tests. */
extern bool posix_guard_marks;

/* Reads the limits, events and stalls of this control group (a folder that ends in '/') from now on,
 * instead of the process's own, and this file for the machine's stalls. For tests. */
void posix_pressure_inject(const char *group, const char *machine);

/* Looks for /proc/self/cgroup, and for the mounts of control groups, below this folder from now on. For tests. */
void posix_pressure_inject_root(const char *root);

/* At start, and when calls become few: reads the limits that count while files are not read. `own` tells how many bytes the process
 * has of the system, and takes no lock that callers of posix_pressure_check() hold. */
void posix_pressure_start(uint64_t (*own)(void));

/* Whether memory is short, or would be with `more` bytes: told to os_memory_is_short. Called before
 * the system is asked for them. */
void posix_pressure_check(uint64_t more);

/* Around fork. */
void posix_copy_start(void (*when_copied)(void));
void posix_copy_known(void); /* by fork's own handlers */
void posix_streams_fork_prepare(void);
void posix_streams_fork_child(bool whole);
void posix_streams_fork_done(void);
void posix_membarrier_fork_child(void);
void posix_membarrier_register(
    void); /* again, and for sequences: what a child has not done while calls are few */
void posix_slices_few(void); /* no thread asks any more; and all may again */
void posix_slices_widen(void);
void posix_idle_fork_child(void);

/* Of threads of the library, by themselves. */
void posix_thread_begins(void);
void posix_thread_ends(void);
/* By the thread that starts one: before it does, and if it could not. */
void posix_thread_is_made(bool made);
void posix_watch_main(void);
void posix_last_threads_fork_child(void);
/* It has ended, and stays because it is the process's first. */
bool posix_thread_is_zombie(int thread);
void posix_pressure_fork_child(void);
void posix_thread_trace_fork_child(void);

#endif /* OS_POSIX_POSIX_H */
