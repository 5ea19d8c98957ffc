/* SPDX-License-Identifier: MIT */
/*
 * Searches for the names in all slots of hazard pointers.
 *
 * One check of each slot is enough after a barrier, if the slots of a record are read from the
 * lowest up: no protection of an object that was unlinked before the barrier begins after it, and
 * one moves only to a higher slot of its record (prudence_hazard_acquire_row). Its user writes the
 * higher slot first. So a check that finds the lower slot without the name finds the higher one
 * with it (release, acquire), or the protection is over.
 *
 * Locks: none. Any number of threads check at the same time.
 */
#include <string.h>

#include "gp/user/stall.h"
#include "toolkit/domains/hazard_names.h"

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
static const struct prudence_hazard *slot_that_has(const struct prudence_hazard *slot,
                                                   const void *name)
{
    const struct prudence_hazards *record = prudence_hazard_record_(slot);

    for (; slot < record->slots + PRUDENCE_HAZARDS; slot++)
        if (load_acquire(&slot->name) == name)
            return slot;
    return NULL;
}

/* Begins a watch. The caller has made a barrier. */
void hazard_names_watch(struct hazard_watch *watch)
{
    watch->count = 0;
    hazard_names_begin(&watch->walk);
}

/* Keeps the names that are still there, or have moved up in their record. */
static void look_again(struct hazard_watch *watch)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < watch->count; i++) {
        const struct prudence_hazard *slot =
            slot_that_has(watch->seen[i].slot, watch->seen[i].name);

        if (!slot)
            continue;
        watch->seen[kept].slot = slot;
        watch->seen[kept++].name = watch->seen[i].name;
    }
    watch->count = kept;
}

static void look_on(struct hazard_watch *watch)
{
    const struct prudence_hazard *slot;
    const void *name;

    while (watch->count < HAZARD_WATCHED && (slot = hazard_names_next(&watch->walk, &name))) {
        watch->seen[watch->count].slot = slot;
        watch->seen[watch->count++].name = name;
    }
    watch->reported = false;
    watch->began = watch->count ? os_clock_ns() : 0;
}

/*
 * Checks once more; returns whether no protection remains that began before the barrier. Keeps as
 * many names as there is room for, and reads further slots when all of these are gone. A late
 * check of a slot is as good as an early one, because of the head of this file.
 */
bool hazard_names_watched(struct hazard_watch *watch)
{
    look_again(watch);
    watch->is_new = !watch->count;
    if (watch->is_new)
        look_on(watch);
    return !watch->count;
}

/* Returns whether the names have stayed for the time of a stall, and were not reported. */
bool hazard_names_stall(const struct hazard_watch *watch)
{
    const uint64_t timeout = load_relaxed(&gp_stall_timeout);

    return timeout && watch->count && !watch->reported && os_clock_ns() - watch->began >= timeout;
}

/* Reports them then. The caller holds no lock. */
void hazard_names_report(struct prudence_domain *domain, struct hazard_watch *watch)
{
    if (!hazard_names_stall(watch))
        return;
    watch->reported = true;
    for (unsigned i = 0; i < watch->count; i++)
        stall_report(domain, hazard_slots_thread(watch->seen[i].slot), watch->seen[i].name,
                     os_clock_ns() - watch->began);
}

static void insert(struct hazard_names *names, uintptr_t name)
{
    unsigned at = names->count++;

    for (; at && names->at[at - 1] > name; at--)
        names->at[at] = names->at[at - 1];
    names->at[at] = name;
}

static unsigned filter_bit(const struct hazard_filter *filter, uintptr_t address)
{
    return narrow(unsigned, (uint64_t)(address >> filter->shift) * UINT64_C(0x9e3779b97f4a7c15) >>
                                (64 - HAZARD_FILTER_BITS));
}

static bool may_be_looked_for(const struct hazard_filter *filter, uintptr_t name)
{
    unsigned bit = filter_bit(filter, name);

    return filter->bits[bit / 64] >> (bit % 64) & 1;
}

/* Begins a filter for objects of at most `most` bytes. */
void hazard_names_filter(struct hazard_filter *filter, size_t most)
{
    memset(filter->bits, 0, sizeof filter->bits);
    for (filter->shift = 0; filter->shift < 63 && most > (size_t)1 << filter->shift;)
        filter->shift++;
}

void hazard_names_filter_add(struct hazard_filter *filter, const void *object, size_t size)
{
    const uintptr_t ends[2] = {(uintptr_t)object, (uintptr_t)object + size - 1};

    for (unsigned i = 0; i < 2; i++) {
        unsigned bit = filter_bit(filter, ends[i]);

        filter->bits[bit / 64] |= UINT64_C(1) << bit % 64;
    }
}

/* Takes the walk's next names, those that the filter lets through if there is one. Returns false if
 * there are no more. */
bool hazard_names_take(struct hazard_names *names, struct hazard_walk *walk,
                       const struct hazard_filter *filter)
{
    const void *name;

    names->count = 0;
    while (names->count < HAZARD_NAMES && hazard_names_next(walk, &name))
        if (!filter || may_be_looked_for(filter, (uintptr_t)name))
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

/* What an object of hazard_names_poll_objects() covers. */
struct extent {
    const void *object;
    size_t size;
};

static struct extent extent_of(const void *object, size_t size)
{
    const struct prudence_hazard_head *head = object;

    return size ? (struct extent){object, size} : (struct extent){head->object, head->size};
}

/* Puts the objects that have one of the names last; returns the number of the others. */
static unsigned put_named_last(const struct hazard_names *names, void **objects, unsigned count,
                               size_t size)
{
    for (unsigned i = 0; i < count;) {
        void *object = objects[i];
        struct extent extent = extent_of(object, size);

        if (!hazard_names_have(names, extent.object, extent.size)) {
            i++;
            continue;
        }
        objects[i] = objects[--count];
        objects[count] = object;
    }
    return count;
}

static void filter_all(struct hazard_filter *filter, void **objects, unsigned count, size_t size)
{
    size_t most = size;

    for (unsigned i = 0; i < count; i++)
        most = max_size(most, extent_of(objects[i], size).size);
    hazard_names_filter(filter, most);
    for (unsigned i = 0; i < count; i++) {
        struct extent extent = extent_of(objects[i], size);

        hazard_names_filter_add(filter, extent.object, extent.size);
    }
}

/* Checks all slots. Puts the objects that are named last, and returns the number of the others.
 * `size` 0: `objects` are heads, which have the address and the size of an object. After the first
 * names a filter keeps a check of 100,000 slots short. */
unsigned hazard_names_poll_objects(void **objects, unsigned count, size_t size)
{
    struct hazard_filter filter UNINITIALIZED;
    struct hazard_names names UNINITIALIZED;
    struct hazard_walk walk;
    bool filtered = false;

    hazard_names_begin(&walk);
    while (hazard_names_take(&names, &walk, filtered ? &filter : NULL)) {
        count = put_named_last(&names, objects, count, size);
        if (filtered || names.count < HAZARD_NAMES)
            continue;
        filtered = true;
        filter_all(&filter, objects, count, size);
    }
    return count;
}

/* Returns whether a slot that this thread may use names an address in the object. */
bool hazard_names_protect(const void *object, size_t size)
{
    const struct prudence_hazard *slot;
    struct hazard_walk walk;
    const void *name;

    hazard_names_begin(&walk);
    while ((slot = hazard_names_next(&walk, &name)))
        if ((uintptr_t)name - (uintptr_t)object < size && hazard_slots_may_use(slot))
            return true;
    return false;
}

bool hazard_names_any(void)
{
    struct hazard_walk walk;
    const void *name;

    hazard_names_begin(&walk);
    return hazard_names_next(&walk, &name) != NULL;
}
