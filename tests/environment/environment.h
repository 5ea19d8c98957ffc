/* SPDX-License-Identifier: MIT */
/*
 * The environment matrix. A process enters some circumstance at some moment of its life, and the
 * contents of its memory stay right. The program is built three times (see CMakeLists.txt): on
 * plain malloc, to be run with the library preloaded; with inlined fast paths; and statically
 * linked.
 *
 *   main.c           the moments and the order of events
 *   work.c           the oracle: each block has one owner and known contents, or is shared
 *   circumstances.c  the table of circumstances, which are implemented in system_calls.c,
 *                    processes.c, coroutines.c and files.c
 */
#ifndef TESTS_ENVIRONMENT_ENVIRONMENT_H
#define TESTS_ENVIRONMENT_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

enum { RIGHT = 0, WRONG = 1, SKIPPED = 77 };

/* The circumstance begins before the program's first allocation, after some allocations, or with
 * other threads that have allocated and go on to do so. */
enum moment { FIRST, USED, THREADS, MOMENTS };

struct circumstance {
    const char *name;                /* ends with ':' if a word follows it */
    const char *words;               /* words that may follow, separated by blanks, or NULL */
    bool (*enter)(const char *word); /* returns false if unavailable here, with errno */
    bool (*in_thread)(void);         /* called in each thread, the main thread too; as `enter` */
    void (*leave)(void);             /* called instead of a return from main */
    bool before_exec;                /* entered before an exec, so only at the moment FIRST */
    bool after_first;                /* not before the first allocation, which starts the malloc */
    bool alone;                      /* not with other threads */
    bool no_more_threads;            /* afterwards the process cannot make threads */
    bool threads_gone;               /* afterwards the process has lost the other threads */
};

extern const struct circumstance circumstances[];
extern const unsigned circumstance_count;

/* Allocates, frees and checks blocks in `steps` steps. Ends the process as WRONG, with a message,
 * if something is wrong. Any thread may call it. */
void work(unsigned steps);
/* Returns when all of the threads have ended. */
void work_in_threads(unsigned threads, unsigned steps);
/* Frees enough for some thread to purge memory later. */
void free_much(void);
void wrong(const char *what) __attribute__((noreturn));

/* Allocation by each subject, which defers frees if it can. */
void *subject_alloc(size_t size);
void *subject_realloc(void *block, size_t size);
void subject_free(void *block);
void subject_retire(void *block); /* other threads may still read the block */
void subject_read_begin(void);
void subject_read_end(void);
void subject_settle(void); /* waits until no block is deferred */

/* system_calls.c */
bool refuse_with_eperm(const char *call);
bool refuse_with_enosys(const char *call);
bool kill_unless_malloc_needs_it(const char *word);
bool rseq_unregister(void);
bool rseq_unregister_for_a_time(void);

/* processes.c */
bool step_through(const char *word);
bool go_on_in_child(const char *word);
bool go_on_in_grandchild(const char *word);
bool unshare_word(const char *word);
bool setns_word(const char *word);
bool limit_word(const char *word);
bool close_descriptors(const char *word);
bool one_cpu(const char *word);
bool roam(void);
bool storm_of_signals(const char *word);
void main_leaves(void);
void main_leaves_before_others(void);

/* coroutines.c */
bool coroutines(const char *word);

/* files.c */
bool possible_cpus(const char *word);
bool no_sys(const char *word);
bool no_proc(const char *word);
bool control_group(const char *word);
bool no_environment(const char *word);

#endif /* TESTS_ENVIRONMENT_ENVIRONMENT_H */
