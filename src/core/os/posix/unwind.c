/* SPDX-License-Identifier: MIT */
/*
 * Unwinds by remembered rules. A program has few places that call, and a sample of the profiler
 * meets most of them again. The compiler's unwinder reads tables of a dozen cache lines for each
 * frame; here a frame costs one word of `rules`, and two of the stack.
 *
 * Rules are stored by place in the code. A rule is wrong if another module was loaded at the place
 * of an unloaded one. So
 *  - remembered rules read only the part of a thread's stack that an unwinding by the tables alone
 *    has found (up to `known_end`), and always upwards. If the rules leave that part, or lead to no
 *    function, the whole trace is read from the tables again, and remembered.
 *  - A trace may still have wrong frames above such a place, as it may above code without tables.
 *
 * `rules` is a table of words, each a rule and the whole place it is for. Threads load and store
 * them relaxed, because a word depends on nothing else. A later rule replaces an earlier one in the
 * slot, which only costs time.
 */
#include <string.h>

#include "base/atomic.h"
#include "unwind.h"

#if UNWIND_BY_RULES

/* ----------------------------------------------------------------------------- remembered rules */

#define PLACE_BITS 47 /* bits of a code address */
#define INDEX_BITS 11
#define PLACE_MASK ((UINT64_C(1) << PLACE_BITS) - 1)

static uint64_t rules[1 << INDEX_BITS]; /* atomic */

_Static_assert(PLACE_BITS - INDEX_BITS + RULE_BITS <= 64,
               "a word has a rule, and the rest of its place");

/* Maps addresses one to one, because the factor is odd. The upper bits are the index, and the
 * lower ones distinguish all places with that index. */
static uint64_t scrambled(uintptr_t pc)
{
    return pc * UINT64_C(0x9e3779b97f4a7c15) & PLACE_MASK;
}

static uint64_t *unwind_slot_of(uintptr_t pc)
{
    return &rules[scrambled(pc) >> (PLACE_BITS - INDEX_BITS)];
}

static uint64_t tag_of(uintptr_t pc)
{
    return scrambled(pc) << RULE_BITS;
}

/* Returns 0 if there is none. */
static uint64_t remembered(uintptr_t pc)
{
    uint64_t word = load_relaxed(unwind_slot_of(pc)) ^ tag_of(pc);

    return word >> RULE_BITS || pc > PLACE_MASK ? 0 : word;
}

/* Subtracts 1, because a return address follows the call, which may be the function's last
 * instruction. */
static uint64_t rule_from_tables(uintptr_t pc)
{
    uint64_t rule = unwind_rule_at(pc - 1);

    if (rule && pc <= PLACE_MASK)
        store_relaxed(unwind_slot_of(pc), tag_of(pc) | rule);
    return rule;
}

/* Slots of the rules for the first frames of this thread's last trace. A program that allocates
 * much evicts the rules from the CPU's caches between two samples, and a rule's address is known
 * only after the frame below has ended. But most frames of two traces are the same, so all are
 * prefetched at once. */
#define RECENT 16
static __thread uint16_t recent[RECENT];
_Static_assert(INDEX_BITS <= 16, "an index is two bytes");

static void fetch_recent(void)
{
    for (unsigned i = 0; i < RECENT; i++)
        __builtin_prefetch(&rules[recent[i]]);
}

static void note_recent(unsigned frame, uintptr_t pc)
{
    if (frame < RECENT)
        recent[frame] = (uint16_t)(unwind_slot_of(pc) - rules);
}

/* --------------------------------------------------------------------------------------- frames */

struct frame {
    uintptr_t pc, sp, bp;
};

/* End of this thread's stack, as far as the tables alone have led. */
static __thread uintptr_t known_end;

static uintptr_t word_at(uintptr_t place)
{
    uintptr_t word;

    memcpy(&word, (const void *)place, sizeof word); /* NOLINT(performance-no-int-to-ptr) */
    return word;
}

/* Moves to the caller's frame. Returns false if that is outside the known stack. */
static bool unwind_leave(struct frame *frame, uint64_t rule, uintptr_t end)
{
    uintptr_t cfa = (rule & RULE_FROM_RBP ? frame->bp : frame->sp) + RULE_CFA(rule);
    uintptr_t saved = RULE_SAVED(rule);

    if (cfa <= frame->sp || cfa > end || cfa % sizeof(uintptr_t))
        return false;
    if (saved && cfa - saved < frame->sp)
        return false;
    if (saved)
        frame->bp = word_at(cfa - saved);
    frame->pc = word_at(cfa - sizeof(uintptr_t));
    frame->sp = cfa;
    return true;
}

static bool is_in(struct code_range range, uintptr_t pc)
{
    return pc - range.start < range.end - range.start;
}

/* Walks up to the outermost function, or for `count` frames, at least one. Returns 0 if it does
 * not get so far. */
static unsigned walk(struct frame frame, struct code_range skipped, void **frames, unsigned count,
                     bool by_tables)
{
    uintptr_t end = by_tables ? UINTPTR_MAX : known_end;
    unsigned found = 0;

    for (unsigned i = 0;; i++) {
        uint64_t rule;

        if (found || !is_in(skipped, frame.pc))
            frames[found++] = (void *)frame.pc; /* NOLINT(performance-no-int-to-ptr) */
        if (found == count)
            break;
        note_recent(i, frame.pc);
        rule = by_tables ? 0 : remembered(frame.pc);
        rule = rule ? rule : rule_from_tables(frame.pc);
        if (rule == RULE_OUTERMOST)
            break;
        if (!rule || !unwind_leave(&frame, rule, end))
            return 0;
    }
    if (by_tables)
        known_end = frame.sp;
    return found;
}

static unsigned walk_twice(struct frame frame, struct code_range skipped, void **frames,
                           unsigned count)
{
    unsigned found;

    fetch_recent();
    found = walk(frame, skipped, frames, count, false);
    return found ? found : walk(frame, skipped, frames, count, true);
}

__attribute__((noinline)) unsigned unwind_here(void **frames, unsigned count)
{
    struct code_range none = {0, 0};
    struct frame here;

    __asm__ __volatile__(
        "leaq 1f(%%rip), %[pc]\n"
        "1:\n\t"
        "movq %%rsp, %[sp]\n\t"
        "movq %%rbp, %[bp]"
        : [pc] "=&r"(here.pc), [sp] "=&r"(here.sp), [bp] "=&r"(here.bp));
    return walk_twice(here, none, frames, count);
}

unsigned unwind_from(void *const *frame_address, struct code_range skipped, void **frames,
                     unsigned count)
{
    struct frame caller = {.bp = (uintptr_t)frame_address[0],
                           .pc = (uintptr_t)frame_address[1],
                           .sp = (uintptr_t)(frame_address + 2)};

    return walk_twice(caller, skipped, frames, count);
}

#else

unsigned unwind_here(void **frames, unsigned count)
{
    (void)frames;
    (void)count;
    return 0;
}

unsigned unwind_from(void *const *frame_address, struct code_range skipped, void **frames,
                     unsigned count)
{
    (void)frame_address;
    (void)skipped;
    (void)frames;
    (void)count;
    return 0;
}

#endif /* UNWIND_BY_RULES */
