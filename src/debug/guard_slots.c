/* SPDX-License-Identifier: MIT */
/* The pool of guarded objects, as guard.c fills it and guard_report.c reads it. */
#include "debug/guard.h"

struct guard_slot *guard_slots;
char *guard_pool;

/* The trace of a slot in use is with its slab. Reports read it without a lock: another thread may be freeing the
 * object at that moment. */
uint64_t guard_word(const struct guard_slot *slot)
{
    const struct slab *slab = load_relaxed(&slot->slab);
    bool in_use = slot->state == GUARD_IN_USE && slab && object_words(slab);

    return in_use ? load_relaxed(object_words(slab)) : slot->word;
}
