/* SPDX-License-Identifier: MIT */
/* The pool of guarded objects, which guard.c fills and guard_report.c reads. */
#include "guard/guard.h"

struct guard_slot *guard_slots;
char *guard_pool;

/* Returns the word of a slot's object, which is with the slab while the slot is in use. Reports
 * call this without a lock, so another thread may be freeing the object. */
uint64_t guard_slot_word(const struct guard_slot *slot)
{
    const struct slab *slab = load_relaxed(&slot->slab);
    bool in_use = slot->state == GUARD_IN_USE && slab && object_words(slab);

    return in_use ? load_relaxed(object_words(slab)) : slot->word;
}
