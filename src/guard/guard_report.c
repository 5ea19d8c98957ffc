/* SPDX-License-Identifier: MIT */
/*
 * Reports of guarded sampling, about an access that faulted, bytes written next to an object, or a
 * pointer in a report of misuse. May run in a signal handler, so nothing here allocates or takes a
 * lock of the library.
 */
#include "guard/check.h"
#include "guard/guard.h"
#include "guard/stack_depot.h"
#include "slab/misuse.h"

/*
 * Returns the slot to which an address in the pool belongs. A closed page lies between two slots:
 * an access to the lower half is an overflow of the slot before, to the upper half an underflow of
 * the slot after. If one of the two was never used, the access belongs to the other.
 */
static const struct guard_slot *slot_about(const void *address)
{
    uintptr_t offset = (uintptr_t)address - (uintptr_t)guard_pool;
    unsigned page = (unsigned)(offset / os_page_size);
    const struct guard_slot *before = page >= 2 ? &guard_slots[page / 2 - 1] : NULL;
    const struct guard_slot *behind = page / 2 < GUARD_SLOTS ? &guard_slots[page / 2] : NULL;
    bool lower = offset % os_page_size < os_page_size / 2;

    if (page % 2)
        return behind;
    if (before && before->state == GUARD_UNUSED)
        before = NULL;
    if (behind && behind->state == GUARD_UNUSED)
        behind = NULL;
    if (!before || !behind)
        return before ? before : behind;
    return lower ? before : behind;
}

static bool is_released(const struct guard_slot *slot)
{
    return slot->state == GUARD_FREED || state_of_word(guard_slot_word(slot)) == OBJECT_FREE;
}

/* Names the fault of an access by the place relative to the object. */
static const char *kind_of(const struct guard_slot *slot, const char *address)
{
    if (address < slot->object)
        return "underflow";
    if (address >= slot->object + slot->size)
        return "overflow";
    return is_released(slot) ? "use after free" : "access";
}

static void print_place(const struct guard_slot *slot, const char *address)
{
    const char *end = slot->object + slot->size;
    const char *released = is_released(slot) ? "freed " : "";

    if (address < slot->object)
        os_report("  %p is %zu bytes before the %s%zu-byte object %p of cache '%s'",
                  (const void *)address, (size_t)(slot->object - address), released, slot->size,
                  (const void *)slot->object, slot->cache_name);
    else if (address >= end)
        os_report("  %p is %zu bytes after the %s%zu-byte object %p of cache '%s'",
                  (const void *)address, (size_t)(address - end), released, slot->size,
                  (const void *)slot->object, slot->cache_name);
    else
        os_report("  %p is byte %zu of the %s%zu-byte object %p of cache '%s'",
                  (const void *)address, (size_t)(address - slot->object), released, slot->size,
                  (const void *)slot->object, slot->cache_name);
}

/* Prints the calls that led to the access, without the frames of the handler and the kernel above
 * them. */
static void print_access(const struct fault *fault)
{
    void *frames[OS_TRACE_MAX];
    unsigned count = os_trace_capture(frames, OS_TRACE_MAX), first = 0;

    while (first < count && frames[first] != fault->code)
        first++;
    if (first == count)
        first = 0;
    os_report("  accessed by:");
    os_trace_print(frames + first, count - first);
}

void guard_report_fault(const struct fault *fault)
{
    static const char *const accesses[] = {"access", "read", "write"};
    const struct guard_slot *slot;

    if (!guard_has(fault->address))
        return;
    slot = slot_about(fault->address);
    if (!slot || slot->state == GUARD_UNUSED) {
        os_report_misuse(
            "wild %s of %p, in a part of the pool of guarded objects that has held no object yet",
            accesses[fault->access], fault->address);
        print_access(fault);
        return;
    }
    os_report_misuse("%s: %s of %p", kind_of(slot, fault->address), accesses[fault->access],
                     fault->address);
    print_place(slot, fault->address);
    print_access(fault);
    check_print_word(guard_slot_word(slot));
}

void guard_report_damage(const struct guard_slot *slot, const char *byte)
{
    os_report_misuse("%s: write of %p, found after the object was freed",
                     byte < slot->object ? "underflow" : "overflow", (const void *)byte);
    print_place(slot, byte);
    check_print_word(guard_slot_word(slot));
    os_abort();
}

void guard_report_freed(const void *object, const char *what)
{
    const struct guard_slot *slot = guard_has(object) ? slot_about(object) : NULL;

    if (!slot || slot->state != GUARD_FREED || slot->object != object)
        return;
    os_report_misuse("%s: %p of cache '%s' is already free", what, object, slot->cache_name);
    misuse_explain_and_abort(NULL, object);
}

/* Prints the known facts about the object at `pointer`, if that lies in the pool. */
void guard_report_object(const struct slab *slab, const void *pointer)
{
    const struct guard_slot *slot;

    (void)slab;
    if (!guard_has(pointer))
        return;
    slot = slot_about(pointer);
    if (!slot || slot->state == GUARD_UNUSED)
        return;
    print_place(slot, pointer);
    check_print_word(guard_slot_word(slot));
}
