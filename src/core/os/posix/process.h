/* SPDX-License-Identifier: MIT */
/*
 * The life of the process. The library starts at the first call of any function of it, even from
 * the dynamic loader or from another library's constructor. process/process.c lists the parts to
 * start, so every layer can ask for the start and none needs to know the layers above.
 */
#ifndef OS_POSIX_PROCESS_H
#define OS_POSIX_PROCESS_H

#include "os/os.h"

struct process_part {
    const char *name;

    /* Initializes the part, once. May run inside an allocation and before the C runtime is
     * ready, so it must not make threads, walk the stack, or allocate except from us. */
    void (*start)(void);

    /* Acts on options that need more than being stored (threads, signal handlers, traces), and
     * does work that needs the dynamic loader. Called when the library has been loaded, then
     * whenever an option is set. Does nothing if not wanted or already done. No lock is held. */
    void (*act)(void);

    /* Does what another process asks for (os_asked). NULL in all parts but one. */
    void (*obey)(void);
};

/* Tables of parts, in the order of their start; the last is NULL. The last row of a table has no
 * name. A function is NULL if the part has nothing to do. */
extern const struct process_part *const process_parts[];

/* The table of what other parts than the core do; they start before caches. */
extern const struct process_part other_parts[];

/* Starts all parts if they have not started. Every function that may be called first calls
 * process_start. */
void process_start_slow(void);
extern uint32_t process_started;

/* Set in the thread that runs the start. Its parts may call functions that ask for the start,
 * which then return at once, and functions of libc that the program has replaced and that
 * allocate (heap/nested.c). */
extern HIDDEN __thread bool process_starting __attribute__((tls_model("initial-exec")));

static inline void process_start(void)
{
    if (unlikely(!load_acquire(&process_started)))
        process_start_slow();
}

/* Called after each change of options, with no lock held, and outside allocations. */
void process_act(void);

/* Called when the library has been loaded. Parts act now, and may act from now on. */
void process_loaded(void);

/* Returns whether this thread may take the library's locks. It may not if it was interrupted inside
 * the library, because it may hold a lock, nor in a copy of the process, where no thread may ever
 * release a lock that was held. */
bool process_is_outside(void);

/* Defined only in libprudence-malloc.so; NULL elsewhere. */
extern const char process_is_malloc[] __attribute__((weak, visibility("hidden")));

/* Defined if malloc and its relatives are ours, in static programs as well; NULL elsewhere. */
extern const char process_has_our_malloc[] __attribute__((weak, visibility("hidden")));

#endif /* OS_POSIX_PROCESS_H */
