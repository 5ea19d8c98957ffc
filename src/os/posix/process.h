/* SPDX-License-Identifier: MIT */
/*
 * The life of the process. It starts at the first call of whatever function comes first, be it in the dynamic loader or
 * in another library's constructor. What starts then is a table of the embedding program's (runtime/process.c), so that
 * every layer can ask for the start, and none needs to know what stands above it.
 */
#ifndef OS_POSIX_PROCESS_H
#define OS_POSIX_PROCESS_H

#include "os/os.h"

struct process_part {
    const char *name;

    /* Makes what the part needs, once. It may run inside an allocation and before the C runtime is ready: nothing may
     * allocate but from us, make a thread, or walk the stack. */
    void (*start)(void);

    /* Does what options want beyond being remembered (threads, signal handlers, traces), and what needs the dynamic
     * loader. First when the library has been loaded, then whenever an option is set; it does nothing when it is not
     * wanted, or done. No lock is held. */
    void (*act)(void);
};

/* In the order of their start; functions are NULL where there is nothing to do. */
extern const struct process_part process_parts[];
extern const unsigned process_parts_count;

/* Makes all parts ready; cheap when they are. Called by whatever may come first. */
void process_start_slow(void);
extern uint32_t process_started;

/* This thread is at it. The parts call functions that ask for the start, which then goes on; and
 * functions of libc, in whose place a program may have its own, which allocate (heap/nested.c). */
extern HIDDEN __thread bool process_starting __attribute__((tls_model("initial-exec")));

static inline void process_start(void)
{
    if (unlikely(!load_acquire(&process_started)))
        process_start_slow();
}

/* After each change of options; with no lock held, and not inside an allocation. */
void process_act(void);

/* The library has been loaded: parts may act from now on, and do. */
void process_loaded(void);

/* Defined in libprudence-malloc.so only; NULL elsewhere. */
extern const char process_is_malloc[] __attribute__((weak, visibility("hidden")));

/* Defined where malloc and its relatives are ours, in static programs as well; NULL elsewhere. */
extern const char process_has_our_malloc[] __attribute__((weak, visibility("hidden")));

#endif /* OS_POSIX_PROCESS_H */
