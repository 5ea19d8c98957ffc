/* SPDX-License-Identifier: MIT */
/* The end of a thread (see reader_exit.c). */
#ifndef GP_USER_READER_EXIT_H
#define GP_USER_READER_EXIT_H

#include "gp/user/domain.h"

void reader_exit_start(
    void (*ends)(bool last)); /* called by each thread that ends, in each round of destructors */
bool reader_exit_watch(void);
/* Returns whether the end of this thread will be noticed. False in the last round of
 * destructors. */
bool reader_exit_is_told(void);
bool reader_is_gone(int32_t thread, uint64_t claimed_at, bool thoroughly);
extern unsigned reader_keys_without_memory;
extern HIDDEN __thread bool reader_unwatched __attribute__((tls_model("initial-exec")));

/* Has `ends` called when a thread ends that reads or asked to be watched: in each round of
 * destructors of thread-specific data, before the thread's readers end; `last` is true in the last
 * round. A thread that first read in a destructor may end without the last call.
 * reader_exit_watch_slow() must not be called in a signal handler; returns false without memory. */
void reader_exit_tell_before(void (*ends)(bool last));
bool reader_exit_watch_slow(void);

/* Called where no signal handler comes, so this may allocate. */
static inline void reader_exit_watch_late(void)
{
    if (unlikely(reader_unwatched))
        reader_exit_watch_slow();
}

#endif /* GP_USER_READER_EXIT_H */
