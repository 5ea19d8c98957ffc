/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The work of decay that threads on a slow path do now and then for the whole process. They do part
 * of a round, let pages decay, drive grace periods that no other thread asks for, and wake the idle
 * helper.
 */
#include "slab/reclaim/decay_visit.h"

#include "os/os.h"
#include "slab/cache_type.h"
#include "slab/preflush.h"
#include "slab/reclaim/decay.h"

/* Called from paths that run often, with no lock of this layer held, because kept memory must age
 * even if no thread takes or frees any. Calls no foreign function. */
void decay_visit(void)
{
    bool decaying;

    decay_part();
    decaying = os_pages_decay();
    if (unlikely(load_relaxed(&preflush_helper)) && (decaying || decay_is_worth_it()))
        os_idle_kick();
}

/* Does the same when nothing at all is held, so that foreign functions may be called. Also acts on
 * what is asked from outside. */
void decay_visit_and_drive(void)
{
    decay_visit();
    decay_drive();
    os_act_if_asked();
}

/*
 * Counts an operation that found the CPU's caches owned by another thread, and goes to the node.
 * Returns whether the thread works for decay now, as after other slow paths. If the owner has
 * lost its CPU, all operations on that CPU go this way until the owner is back, and a visit
 * each time would be a fifth of their cost.
 */
bool decay_visit_count_bypass(struct prudence_cache *cache)
{
    return add_relaxed(&cache->body->busy_bypasses, 1) % BYPASSES_A_VISIT == 0;
}
