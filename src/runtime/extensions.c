/* SPDX-License-Identifier: MIT */
/*
 * The extensions of the slab layer in a process, in the order of their calls (slab/extension.h).
 *
 * Expiry counts come first, so that a short-term object freed by hand is reported before anything
 * else happens to the object. Profile comes before guard, which serves only allocations that were
 * not sampled. Check comes before all extensions that act on an object that may have been freed
 * before. Red zones come after instruments, which look at a new object before anything is written
 * there. Shuffle and quarantine come last, because to all others a resting object is free. A cache
 * that one of these wants is never cold, except for instruments without red zones.
 */
#include "debug/check.h"
#include "debug/closed.h"
#include "debug/guard.h"
#include "debug/instruments.h"
#include "debug/large_guard.h"
#include "debug/profile.h"
#include "debug/quarantine.h"
#include "debug/red_zones.h"
#include "debug/shuffle.h"
#include "heap/cold.h"
#include "member_parts.h"
#include "rcu/destruct.h"
#include "runtime/extensions.h"
#include "scm/expiry_counts.h"

/* Has no function in a program without short-term memory. */
static struct slab_extension expiry_counts;

/* Places of extensions that enter themselves. */
static struct slab_extension *const extension_places[OS_EXTENSIONS] = {
    [EXPIRY_COUNTS_EXTENSION] = &expiry_counts,
};

void extensions_enter(void)
{
    const struct extension_part *const *at;

    for_each_entered(at, extension_parts)
    {
        if (!extension_places[(*at)->number])
            os_panic("extension %u has no place for an entry", (*at)->number);
        *extension_places[(*at)->number] = *(*at)->extension;
    }
}

const struct slab_extension *const slab_extensions[OS_EXTENSIONS] = {
    [EXPIRY_COUNTS_EXTENSION] = &expiry_counts,
    [PROFILE_EXTENSION] = &profile_extension,
    [GUARD_EXTENSION] = &guard_extension,
    [CHECK_EXTENSION] = &check_extension,
    [DESTRUCT_EXTENSION] = &destruct_extension,
    [INSTRUMENTS_EXTENSION] = &instruments_extension,
    [RED_ZONES_EXTENSION] = &red_zones_extension,
    [LARGE_GUARD_EXTENSION] = &large_guard_extension,
    [CLOSED_EXTENSION] = &closed_extension,
    [SHUFFLE_EXTENSION] = &shuffle_extension,
    [QUARANTINE_EXTENSION] = &quarantine_extension,
    [COLD_EXTENSION] = &cold_extension,
};
