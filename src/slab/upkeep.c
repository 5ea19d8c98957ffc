/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Upkeep: what threads on a slow path do now and then for the whole process. They tidy up, let pages decay, push on
 * grace periods for which no other thread asks, and wake the idle helper.
 */
#include "slab/upkeep.h"

#include "os/os.h"
#include "slab/cache.h"
#include "slab/preflush.h"
#include "slab/tidy.h"

/* Called from paths that run often, with no lock of this layer held: what is kept grows older even if no thread takes
 * or frees any. No foreign function is called. */
void pages_decay(void)
{
    bool decaying;

    tidy_come_by();
    decaying = os_pages_decay();
    if (unlikely(load_relaxed(&preflush_helper)) && (decaying || tidy_is_worth_it()))
        os_idle_kick();
}

/* The same, and with nothing held at all: foreign functions may be called. */
void come_by(void)
{
    pages_decay();
    tidy_drive();
}

/*
 * An operation found the CPU's caches owned by another thread, and goes to the node. Returns whether its thread is to
 * do upkeep (come_by), as any on a slow path does. If the owner has lost its CPU, all operations of that CPU go this
 * way until it is back, and upkeep each time would be a fifth of their cost.
 */
bool count_bypass(struct prudence_cache *cache)
{
    return add_relaxed(&cache->bypasses, 1) % BYPASSES_A_VISIT == 0;
}
