/* SPDX-License-Identifier: MIT */
/* The thread that does the work of decay in an idle process. See background.c. */
#ifndef HEAP_BACKGROUND_H
#define HEAP_BACKGROUND_H

#include "base/base.h"

/* background_start() is called when the library has been loaded, and calls the dynamic loader.
 * background_end() is called when the process ends; no thread is started afterwards. */
void background_start(void);
void background_end(void);

/* Sets the option background=idle. */
void background_set(bool wanted);

/* Called at the end of slow paths, with nothing held. Starts the thread if enough is kept.
 * `caller` is the return address of a call of free, and NULL for other functions. Costs a few
 * loads. */
void background_visit(const void *caller);

void background_fork_child(void);

/* Does the work of decay once. Returns the time in ns until the next check, or 0 if the thread is
 * done. Also called by tests. */
uint64_t background_look(void);

#endif /* HEAP_BACKGROUND_H */
