/* SPDX-License-Identifier: MIT */
/*
 * Private to os/posix and to the process glue above it: starting the parts in order, fork, and
 * hooks for tests. The allocator itself asks only for os/os.h.
 */
#ifndef OS_POSIX_POSIX_H
#define OS_POSIX_POSIX_H

#include <signal.h>

#include "base/base.h"
#include "syscall_policy.h"

#define POSIX_NODES_MAX 64

/* Called in this order, before any other function of os/os.h. The last three are called again
 * when their options change: membarrier at any time, rseq and slices only while there is no
 * cache. */
void posix_page_size_start(void);
void posix_cpu_start(void);
extern unsigned posix_cpu_count, posix_node_count; /* as os_cpu_count(); watchers read them */
void posix_threads_start(void);
void posix_membarrier_start(bool wanted);
void posix_percpu_start(bool wanted);
void posix_slices_start(bool wanted);

/* Sets which system calls may be made from now on (syscall_policy.h). Called last at start, and by
 * the option sandbox. */
void posix_calls_set(enum os_calls calls);
void posix_process_note(void); /* records this process's id, also in a copy */
/* Returns this thread's id as locks name it, or 0 if it takes a system call that may not be made.
 * In a copy made by clone() it is the original's. */
int posix_thread_id_known(void);
/* Returns false if the thread was made in a copy that nobody had noticed, as far as the C library
 * knows (lock.c). */
bool posix_thread_is_of_original(void);

/* posix_write writes all bytes, and no signal ends the process whatever happens to the
 * descriptor (write.c). Returns 0 or the error. It is async-signal-safe and no cancellation
 * point, and keeps errno. A thread gets the same protection for libc functions that write by
 * calling them between begin and end. */
struct posix_quiet {
    uint64_t blocked, pending; /* one bit per signal, as before posix_quiet_begin */
    bool few;                  /* calls were few, so `pending` is unknown */
};
void posix_quiet_begin(struct posix_quiet *quiet);
void posix_quiet_end(const struct posix_quiet *quiet);
int posix_write(int fd, const void *bytes, size_t size);

/* Keeps the library, or the module that contains it, loaded forever. Called when that has been
 * loaded. Calls the dynamic loader, so not from inside an allocation. */
void posix_stay_loaded(void);

/* Ends traces in a static program. Called by a destructor of the default priority (trace.c). */
void posix_trace_end(void);
void posix_trace_fork_child(void);

/* posix_page_size_set pretends, before anything is mapped, that the system's pages have `size`
 * bytes. posix_page_size_possible returns whether the library can use that size, which must not
 * be less than the real one. */
bool posix_page_size_possible(uint64_t size);
void posix_page_size_set(uint64_t size);

/* Pretends that there are `cpus` CPUs on `nodes` nodes, and that a thread runs on the CPU that
 * `current` returns. posix_cpu_inject does the part of CPUs and nodes. For tests; call before
 * any cache exists, then call slab_start(), which sizes arrays by the number of CPUs. Per-CPU
 * caches then use the lock fallback. */
void posix_topology_inject(unsigned cpus, unsigned nodes, unsigned (*current)(void));
void posix_cpu_inject(unsigned cpus, unsigned nodes, unsigned (*current)(void));

/* Answers os_thread_count() instead of the system, if not 0. An injected topology sets it to the
 * number of CPUs. For tests. */
extern unsigned posix_threads_injected;

/* List of possible CPUs that replaces the one in /sys, if not NULL. Tests set it before the
 * library starts. */
extern const char *posix_cpus_possible_injected;

/* Replaces the kernel when a thread asks to be allowed longer time slices, and when it gives one
 * up; NULL restores the kernel. Afterwards longer slices are on only if `enable` is not NULL.
 * For tests. */
void posix_slices_inject(bool (*enable)(void), void (*yield)(void));

/* Replaces the system's answer to os_idle_seen; NULL restores it. For tests. */
void posix_idle_inject(bool (*idle)(unsigned cpu));

/*
 * Runs this thread on each CPU it may use, known to the library or not, then moves it back. Any
 * thread of the process that ran there has been switched out, which is a full fence and aborts an
 * rseq section. This is the slow substitute for a membarrier that the system granted at start but
 * refuses now (a seccomp filter that came later). Returns false if no CPU could be visited.
 */
bool posix_visit_cpus(void);

/* Waits longer than a sequence on another CPU takes. Nothing may rely on that, because a host
 * may take the CPU away in the middle of a sequence. */
void posix_let_sequences_end(void);

/* Reads the start of a small file as text. Returns false if there is no such file. */
bool posix_file_read(const char *path, char *text, size_t size);

/* Returns whether a descriptor is open, and not a file that may be read. Keeps errno. */
bool posix_file_refuses_mapping(int fd);

/* Clock that ages free pages. Coarse, because some milliseconds do not matter there. Tests may
 * replace it. */
extern uint64_t (*posix_clock_injected)(void);
uint64_t posix_clock_coarse_ns(void);

/* Answers os_thread_wants_cpu instead of the system. For tests. */
extern bool (*posix_cpu_injected)(int thread, bool *wants, uint64_t *had);

/* Returns whether the action is a handler of the program, neither the default action nor
 * "ignore". */
bool posix_signal_is_handled(const struct sigaction *action);

/* Installs `handler` in front of the program's, with SA_SIGINFO, SA_RESTART and `flags`. *before
 * is the program's action, just returned by sigaction; the caller stores it where the handler
 * finds it. Ours keeps the program's mask and SA_NODEFER, and does not restart system calls if the
 * program's did not. If `flags` has SA_RESETHAND and the program's handler is for one signal only,
 * so is ours. Two threads must not call this for the same signal at once. */
typedef void posix_signal_handler(int number, siginfo_t *info, void *context);
void posix_signal_stand_before(int number, posix_signal_handler *handler, int flags,
                               const struct sigaction *before);

/* Calls the handler `to`, unless it is the default action or none. Called from a handler in
 * front of that one. Async-signal-safe. */
void posix_signal_pass_on(const struct sigaction *to, int number, siginfo_t *info, void *context);

/* False keeps guarded pages from being marked in the page table, as before Linux 6.13. For
 * tests. */
extern bool posix_guard_marks;

/* From now on reads the limits, events and stalls of this control group (a folder that ends in
 * '/') instead of the process's own, and the machine's stalls from this file. For tests. */
void posix_pressure_inject(const char *group, const char *machine);

/* From now on searches for /proc/self/cgroup and for the mounts of control groups below this
 * folder. For tests. */
void posix_pressure_inject_root(const char *root);

/* Reads the limits that count while files are not read. Called at start and when calls become
 * few. `own` returns how many bytes the process has from the system, and takes no lock that
 * callers of posix_pressure_check() hold. */
void posix_pressure_start(uint64_t (*own)(void));

/* Checks whether memory is short, or would be with `more` bytes; os_memory_is_short returns the
 * result. Called before the system is asked for the bytes. */
void posix_pressure_check(uint64_t more);

/* Called around fork. */
/* Has `notice` called in the first thread of each copy, perhaps again until it calls one of the
 * next two. */
void posix_copy_start(void (*notice)(void));
/* Say that this process is repaired; the second one, that it was made without fork's handlers.
 * Return whether that is news. Without the page, posix_copy_known always does. */
bool posix_copy_known(void);
bool posix_copy_report(void);
void posix_streams_fork_prepare(void);
void posix_streams_fork_child(bool whole);
void posix_streams_fork_done(void);
void posix_membarrier_fork_child(void);
void posix_bias_fork_child(bool whole);
void posix_membarrier_register(
    void); /* registers for both membarriers, which a child has not done while calls are few */
void posix_slices_few(void); /* no thread asks any more; widen lets all ask again */
void posix_slices_widen(void);
void posix_idle_fork_child(void);

/* os_word_wait() and os_word_wake_some() for a thread of any kind. */
void posix_word_wait(uint32_t *word, uint32_t value, uint64_t nanoseconds);
void posix_word_wake(uint32_t *word, unsigned count);

/*
 * A word that the kernel knows as a lock: 0, or the id of the thread that has it, with
 * POSIX_WORD_AWAITED if others wait for it. These lend that thread their priority.
 * posix_word_lock() waits for at most `nanoseconds`, and returns 0 or an error number.
 * posix_word_pass_on() gives the word to the most urgent waiter, if this thread has it.
 */
#define POSIX_WORD_AWAITED (UINT32_C(1) << 31)
int posix_word_lock(uint32_t *word, uint64_t nanoseconds);
void posix_word_pass_on(uint32_t *word);

/* Called by each thread of the library, for itself. */
void posix_thread_begins(void);
void posix_thread_ends(void);
/* Called by the thread that starts another: with true before it does, with false if that failed. */
void posix_thread_is_made(bool made);
void posix_watch_main(void);
void posix_last_threads_fork_child(void);
/* Returns whether the thread has ended and remains only because it is the process's first. */
bool posix_thread_is_zombie(int thread);
void posix_pressure_fork_child(void);
void posix_thread_trace_fork_child(void);
/* Why this thread's last os_thread_trace() returned nothing, else NULL. */
extern HIDDEN __thread const char *posix_trace_failure __attribute__((tls_model("initial-exec")));

#endif /* OS_POSIX_POSIX_H */
