/* SPDX-License-Identifier: MIT */
/* Quarantine: freed objects rest before they are used again (see quarantine.c). */
#ifndef HEAP_QUARANTINE_H
#define HEAP_QUARANTINE_H

#include "heap/heap.h"

extern uint64_t quarantine_limit; /* bytes; the option quarantine; 0: nothing rests */

/* Takes a freed object in, and gives to `leave` whatever has rested long enough. False when the
 * object cannot rest (it is larger than the limit, or memory ran out): it is the caller's. */
bool quarantine_put(struct slab *slab, void *object,
                    void (*leave)(struct slab *slab, void *object));

/* All objects leave that rest now. */
void quarantine_flush(void (*leave)(struct slab *slab, void *object));

/* Until the threads that had taken objects out of the quarantine have freed them. Holds nothing. */
void quarantine_wait_for_leavers(void);

void quarantine_fork_prepare(void);
void quarantine_fork_child(void);
void quarantine_fork_done(void);

#endif /* HEAP_QUARANTINE_H */
