/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Upkeep that threads on a slow path do now and then for the whole process. They tidy, let pages
 * decay, drive grace periods that no other thread asks for, and wake the idle helper.
 */
#include "slab/reclaim/decay_visit.h"

#include "os/os.h"
#include "slab/cache_type.h"
#include "slab/preflush.h"
#include "slab/reclaim/decay.h"

/* Called from paths that run often, with no lock of this layer held, because kept memory must age
 * even if no thread takes or frees any. Calls no foreign function. */
void pages_decay(void)
{
    bool decaying;

    tidy_come_by();
    decaying = os_pages_decay();
    if (unlikely(load_relaxed(&preflush_helper)) && (decaying || tidy_is_worth_it()))
        os_idle_kick();
}

/* Does the same when nothing at all is held, so that foreign functions may be called. */
void come_by(void)
{
    pages_decay();
    tidy_drive();
}

/*
 * Counts an operation that found the CPU's caches owned by another thread, and goes to the node.
 * Returns whether the thread does upkeep (come_by), as after other slow paths. If the owner has
 * lost its CPU, all operations on that CPU go this way until the owner is back, and upkeep each
 * time would be a fifth of their cost.
 */
bool count_bypass(struct prudence_cache *cache)
{
    return add_relaxed(&cache->bypasses, 1) % BYPASSES_A_VISIT == 0;
}
