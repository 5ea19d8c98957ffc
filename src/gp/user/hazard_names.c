/* SPDX-License-Identifier: MIT */
/*
 * Looks for the names in all slots of hazard pointers.
 *
 * One look at each slot is enough after a barrier, if the slots of a record are looked at from the
 * lowest up: no protection of an object that was unlinked before the barrier begins after it, and
 * one moves only to a higher slot of its record (prudence_hazard_acquire_row). Its user writes the
 * higher slot first. So a look that finds the lower slot without the name finds the higher one with
 * it (release, acquire), or the protection is over.
 *
 * Locks: none. Any number of threads look at the same time.
 */
#include "gp/user/hazard_names.h"

void hazard_names_begin(struct hazard_walk *walk)
{
    *walk = (struct hazard_walk){.chunk = load_acquire(&hazard_chunks)};
}

/* Returns the next slot that names something, and the name; NULL at the end. Acquire pairs with the
 * release of the store that ends a protection. */
const struct prudence_hazard *hazard_names_next(struct hazard_walk *walk, const void **name)
{
    for (; walk->chunk; walk->chunk = walk->chunk->next, walk->record = 0)
        for (; walk->record < load_acquire(&walk->chunk->used); walk->record++, walk->slot = 0)
            while (walk->slot < PRUDENCE_HAZARDS) {
                const struct prudence_hazard *slot =
                    &walk->chunk->records[walk->record].slots[walk->slot++];

                *name = load_acquire(&slot->name);
                if (*name)
                    return slot;
            }
    return NULL;
}

/* Follows a protection of `name` by that slot: returns the slot of the record that has it now,
 * or NULL. Acquire, from the slot up: see the head of this file. */
const struct prudence_hazard *hazard_names_follow(const struct prudence_hazard *slot,
                                                  const void *name)
{
    const struct prudence_hazards *record = prudence_hazard_record_(slot);

    for (; slot < record->slots + PRUDENCE_HAZARDS; slot++)
        if (load_acquire(&slot->name) == name)
            return slot;
    return NULL;
}

static void insert(struct hazard_names *names, uintptr_t name)
{
    unsigned at = names->count++;

    for (; at && names->at[at - 1] > name; at--)
        names->at[at] = names->at[at - 1];
    names->at[at] = name;
}

/* Takes the walk's next names. Returns false if there are no more. */
bool hazard_names_take(struct hazard_names *names, struct hazard_walk *walk)
{
    const void *name;

    names->count = 0;
    while (names->count < HAZARD_NAMES && hazard_names_next(walk, &name))
        insert(names, (uintptr_t)name);
    return names->count > 0;
}

/* Returns whether one of the names is in the object. */
bool hazard_names_have(const struct hazard_names *names, const void *object, size_t size)
{
    unsigned low = 0, high = names->count;

    while (low < high) { /* finds the first name that is not below the object */
        unsigned middle = (low + high) / 2;

        if (names->at[middle] < (uintptr_t)object)
            low = middle + 1;
        else
            high = middle;
    }
    return low < names->count && names->at[low] - (uintptr_t)object < size;
}

bool hazard_names_any(void)
{
    struct hazard_walk walk;
    const void *name;

    hazard_names_begin(&walk);
    return hazard_names_next(&walk, &name) != NULL;
}
