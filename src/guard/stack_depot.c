/* SPDX-License-Identifier: MIT */
/*
 * The stack depot. A program allocates many times from few places, so each trace is kept once, and
 * objects remember the trace's number, the place in the depot, in words.
 *
 * The depot only grows, and is bounded by DEPOT_BYTES of address space, of which the system backs
 * the part written. When the depot is full, new traces become unknown (0), but kept ones are still
 * found. There are no locks: a thread writes a trace in words that no other thread writes, then
 * pushes the trace on a bucket's list (release), where others find it (acquire). Two threads may
 * both push the same trace, which only costs room.
 */
#include <string.h>

#include "base/atomic.h"
#include "guard/stack_depot.h"
#include "os/os.h"

_Static_assert(DEPOT_WORDS < (UINT64_C(1) << TRACE_BITS), "a place is a trace's number");

struct depot *stack_depot_kept;
static uint64_t depot_used; /* words handed out; atomic */

static struct trace *trace_at(struct depot *of, uint32_t number)
{
    return (struct trace *)&of->words[number];
}

/* Returns the stack depot, made at first use, or NULL without memory. */
static struct depot *stack_depot_ready(void)
{
    struct depot *none = NULL, *made = load_acquire(&stack_depot_kept);

    if (likely(made != NULL))
        return made;
    made = os_meta_alloc(sizeof *made);
    if (made && !compare_exchange(&stack_depot_kept, &none, made)) {
        os_meta_free(made, sizeof *made);
        made = none;
    } else if (made) {
        os_meta_note_untouched(sizeof made->words);
    }
    return made;
}

static uint32_t hash_of(void *const *frames, unsigned count, unsigned rank)
{
    uint64_t hash = (uint64_t)rank << 32 | count;

    for (unsigned i = 0; i < count; i++) {
        hash = (hash ^ (uintptr_t)frames[i]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    return (uint32_t)hash;
}

static bool has_frames(const struct trace *trace, void *const *frames)
{
    uint32_t same = 0;

    while (same < trace->count && trace->frames[same] == frames[same])
        same++;
    return same == trace->count;
}

static uint32_t stack_depot_find(struct depot *in, uint32_t hash, void *const *frames,
                                 unsigned count, unsigned rank)
{
    uint32_t number = load_acquire(&in->buckets[hash % DEPOT_BUCKETS]);

    while (number) {
        const struct trace *trace = trace_at(in, number);

        if (trace->hash == hash && trace->count == count && trace->rank == rank &&
            has_frames(trace, frames))
            break;
        number = trace->next;
    }
    return number;
}

static uint32_t stack_depot_add(struct depot *to, uint32_t hash, void *const *frames,
                                unsigned count, unsigned rank)
{
    uint64_t size = sizeof(struct trace) / sizeof(uint64_t) + count;
    uint64_t place;
    struct trace *trace;

    if (load_relaxed(&depot_used) + size >= DEPOT_WORDS)
        return 0;
    place = add_relaxed(&depot_used, size) + 1; /* place 0 stays empty */
    if (place + size > DEPOT_WORDS)
        return 0;
    os_meta_note_untouched(-(int64_t)(size * sizeof *to->words));
    trace = trace_at(to, narrow(uint32_t, place));
    trace->hash = hash;
    trace->count = count;
    trace->rank = rank;
    copy_unseen(trace->frames, frames, count * sizeof *frames);
    trace->next = load_relaxed(&to->buckets[hash % DEPOT_BUCKETS]);
    while (!compare_exchange(&to->buckets[hash % DEPOT_BUCKETS], &trace->next, (uint32_t)place))
        ;
    return (uint32_t)place;
}

static uint32_t stack_depot_number_of(void *const *frames, unsigned count)
{
    struct depot *ready = count ? stack_depot_ready() : NULL;
    uint32_t hash, number;
    unsigned rank;

    if (!ready)
        return 0;
    rank = os_trace_rank(frames, count);
    hash = hash_of(frames, count, rank);
    number = stack_depot_find(ready, hash, frames, count, rank);
    return number ? number : stack_depot_add(ready, hash, frames, count, rank);
}

uint32_t stack_depot_here(void)
{
    void *frames[OS_TRACE_MAX];
    unsigned count =
        stack_depot_frames ? os_trace_capture(frames, narrow(unsigned, stack_depot_frames)) : 0;

    return stack_depot_number_of(frames, count);
}

uint32_t stack_depot_from(const void *frame_address)
{
    void *frames[OS_TRACE_MAX];
    unsigned wanted = narrow(unsigned, stack_depot_frames), count = 0;

    if (wanted && frame_address)
        count = os_trace_capture_from(frame_address, frames, wanted);
    if (wanted && !count)
        count = os_trace_capture(frames, wanted);
    return stack_depot_number_of(frames, count);
}

const struct trace *stack_depot_trace(uint32_t number)
{
    struct depot *made = load_acquire(&stack_depot_kept);

    return number && made ? trace_at(made, number) : NULL;
}

void stack_depot_print(const char *title, uint32_t number)
{
    os_report("  %s", title);
    stack_depot_print_frames(number);
}

void stack_depot_print_frames(uint32_t number)
{
    const struct trace *trace = stack_depot_trace(number);

    if (trace)
        os_trace_print_kept(trace->frames, trace->count, trace->rank);
    else
        os_report("    (unknown)");
}
