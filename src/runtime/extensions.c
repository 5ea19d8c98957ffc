/* SPDX-License-Identifier: MIT */
/*
 * The extensions of the slab layer in a process, in the order in which they are called (slab/extension.h).
 *
 * Expiry counts come first, so that a short-term object that is freed by hand is reported before anything is done to
 * it; check comes before all that act on an object that may have been freed before; quarantine comes last, because
 * for all others what rests is free.
 */
#include "debug/check.h"
#include "debug/guard.h"
#include "debug/instruments.h"
#include "debug/quarantine.h"
#include "rcu/destruct.h"
#include "scm/expiry_counts.h"

const struct slab_extension *const slab_extensions[OS_EXTENSIONS] = {
    [EXPIRY_COUNTS_EXTENSION] = &expiry_counts_extension,
    [GUARD_EXTENSION] = &guard_extension,
    [CHECK_EXTENSION] = &check_extension,
    [DESTRUCT_EXTENSION] = &destruct_extension,
    [INSTRUMENTS_EXTENSION] = &instruments_extension,
    [QUARANTINE_EXTENSION] = &quarantine_extension,
};
