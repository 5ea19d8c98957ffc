/* SPDX-License-Identifier: MIT */
/* Functions that notify a thread that it is blocking (see kick.c). */
#ifndef GP_USER_KICK_H
#define GP_USER_KICK_H

#include <prudence/epoch.h>

#include "gp/user/domain.h"

void kick_begin(struct reader_slot *slot, const struct prudence_kick *kick);
bool kick_end(struct reader_slot *slot);
void kick_forget(struct reader_slot *slot);
void kick_call(struct reader_slot *slot, uint64_t section, uint64_t stayed);

/* The section of that sequence has been blocking for `stayed` ns. The caller holds no lock, since
 * a foreign function may be called. */
static inline void kick_note(struct reader_slot *slot, uint64_t section, uint64_t stayed)
{
    if (unlikely(load_relaxed(&slot->kick) != NULL))
        kick_call(slot, section, stayed);
}

#endif /* GP_USER_KICK_H */
