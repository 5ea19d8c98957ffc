/* SPDX-License-Identifier: MIT */
/* The thread that tidies a process which has fallen idle. See background.c. */
#ifndef HEAP_BACKGROUND_H
#define HEAP_BACKGROUND_H

#include "base/base.h"

/* The first is called when the library has been loaded; it calls the dynamic loader. The second when the process
 * ends: no thread is made any more. */
void background_start(void);
void background_end(void);

/* The option background=idle, and whether it is set. */
void background_set(bool wanted);

/* Called at the end of slow paths, with nothing held: makes the thread if there is enough for it to do. `caller`:
 * where the program called free; NULL: it called another function. Costs a few loads. */
void background_come_by(const void *caller);

void background_fork_child(void);

/* What the thread does each time it wakes up. Returns after how many ns it should wake up again; 0: it is done. For
 * tests, too. */
uint64_t background_look(void);

#endif /* HEAP_BACKGROUND_H */
