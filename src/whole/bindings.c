/* SPDX-License-Identifier: MIT */
/*
 * The functions that <prudence/rcu.h>, <prudence/poll.h>, <prudence/epoch.h> and the headers of
 * lists define, as functions of the library, and functions in place of macros
 * (<prudence/bindings.h>). No other file of the library calls them: prudence_read_lock here uses
 * the exported thread-local pointers, which may be another copy's (ADR 26), as the program's inline
 * readers do.
 */
#include <prudence/bindings.h>
#include <prudence/language.h>

#undef PRUDENCE_INLINE
#define PRUDENCE_INLINE PRUDENCE_API
#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* the headers have definitions only */

#include <prudence/epoch.h>
#include <prudence/hazard.h>
#include <prudence/poll.h>
#include <prudence/rcu.h>
#include <prudence/rcuhlist.h>
#include <prudence/rculist.h>

void *prudence_dereference_at(void *const *place)
{
    return prudence_dereference(*place);
}

void prudence_assign_pointer_at(void **place, void *value)
{
    prudence_assign_pointer(*place, value);
}
