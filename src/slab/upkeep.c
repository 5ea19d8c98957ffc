/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Upkeep: what threads on a slow path do for all now and then. They tidy up, let pages decay, push grace periods on that
 * nobody else asks for, and wake the idle helper.
 */
#include "slab/upkeep.h"

#include "os/os.h"
#include "slab/cache.h"
#include "slab/preflush.h"
#include "slab/tidy.h"

/* Called from paths that run often, with no lock of this layer held: what is kept grows older though nobody takes or
 * frees any. No foreign function is called. */
void pages_decay(void)
{
    bool decaying;

    tidy_come_by();
    decaying = os_pages_decay();
    if (unlikely(preflush_enabled) && (decaying || tidy_is_worth_it()))
        os_idle_kick();
}

/* The same, and with nothing held at all: foreign functions may be called. */
void come_by(void)
{
    pages_decay();
    tidy_drive();
}

/*
 * An operation found the CPU's caches owned by another thread, and goes to the node. Returns whether its thread is to come
 * by (come_by), as any on a slow path does. Where the owner has lost its CPU, all operations of that CPU go this way until
 * it is back, and to come by each time would be a fifth of their cost.
 */
bool count_bypass(struct prudence_cache *cache)
{
    return add_relaxed(&cache->bypasses, 1) % BYPASSES_A_VISIT == 0;
}
