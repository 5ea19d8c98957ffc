/* SPDX-License-Identifier: MIT */
/*
 * The environment matrix: a process gets into some circumstance, at some moment of its life, and its memory goes on being right.
 * The program is built three times (see CMakeLists.txt): on plain malloc, with the library preloaded; with the library's fast
 * paths inlined; and static, calling them.
 *
 *   main.c           the moments, and the order of things
 *   work.c           the oracle: blocks with one owner and their contents, alone and handed from thread to thread
 *   circumstances.c  their table; system_calls.c, processes.c, coroutines.c and files.c have them
 */
#ifndef TESTS_ENVIRONMENT_ENVIRONMENT_H
#define TESTS_ENVIRONMENT_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

enum { RIGHT = 0, WRONG = 1, SKIPPED = 77 };

/* When the circumstance begins: before the program's first allocation, after some, while other threads allocate. */
enum moment { FIRST, USED, THREADS, MOMENTS };

struct circumstance {
    const char *name;  /* ends with ':' if a word follows it */
    const char *words; /* those that may follow, with blanks between them; NULL: none does */
    bool (*enter)(const char *word); /* false: it cannot be had here, and errno says why */
    bool (*in_thread)(void);         /* what each thread does then, the main thread too; the same */
    void (*leave)(void);             /* instead of a return from main */
    bool before_exec; /* entered by an earlier program in the process: only at the moment FIRST */
    bool after_first; /* not before the first allocation, which starts the malloc */
    bool alone;       /* not where there are other threads */
    bool no_more_threads; /* none can be made after it */
    bool threads_gone;    /* those that were there are not there any more */
};

extern const struct circumstance circumstances[];
extern const unsigned circumstance_count;

/* The process ends as WRONG, with a message, unless all is right. Any thread. */
void work(unsigned steps);
/* Ends when all of the threads have. */
void work_in_threads(unsigned threads, unsigned steps);
/* So much that memory is given back to the system later, by whichever thread. */
void free_much(void);
void wrong(const char *what) __attribute__((noreturn));

/* How each subject allocates. Deferred where it can be. */
void *subject_alloc(size_t size);
void *subject_realloc(void *block, size_t size);
void subject_free(void *block);
void subject_retire(void *block); /* other threads may look at it still */
void subject_read_begin(void);
void subject_read_end(void);
void subject_settle(void); /* nothing is deferred any more */

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
