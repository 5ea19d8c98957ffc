/* SPDX-License-Identifier: MIT */
/*
 * Spans: blocks of more than 32 MiB (or aligned to more than a region), and smaller ones that have
 * grown beyond 2 MiB, each a mapping of its own that begins at a multiple of 2 MiB.
 *
 * A free span is in the bin of its size, and in the list of all by age; not in the index. What is
 * dirty of it lies at its start. The lists and the index are guarded by pages_lock; a used span is
 * its user's, a span taken out belongs to the thread that took it: they make system calls for it without the lock.
 *
 * Mappings: one for each span, used or free. A mapping is never cut in the middle, but where a
 * free span is split between two spans.
 */
#include "base/checked.h"
#include "pages/page_source.h"

/* Bins by size: four a doubling, from 2 MiB on. */
#define BIN_SHIFT  21
#define BIN_STEPS  4
#define BINS       (BIN_STEPS * (PAGE_MAP_ADDRESS_BITS - BIN_SHIFT))
#define BIN_LOOKS  16 /* spans of a bin that are compared, at most */
#define SPAN_MAX   (((size_t)1 << PAGE_MAP_ADDRESS_BITS) - 1)
#define SPAN_WORTH SPAN_ALIGNMENT /* no smaller one is split off */

static struct list bins[BINS];
static uint64_t bins_used[(BINS + BITS_PER_WORD - 1) / BITS_PER_WORD];
static struct list by_age = {&by_age, &by_age};

/* The bin with the largest bound that is not above `bytes`; the first has all the smaller ones. */
static unsigned bin_of(size_t bytes)
{
    unsigned doubling;

    bytes = clamp_size(bytes, SPAN_WORTH, SPAN_MAX);
    doubling = 63 - (unsigned)__builtin_clzll(bytes);
    return (doubling - BIN_SHIFT) * BIN_STEPS +
           (unsigned)(bytes >> (doubling - 2) & (BIN_STEPS - 1));
}

static void bin_add(struct span *span)
{
    unsigned bin = bin_of(span->mapped);

    if (!bins[bin].next)
        list_init(&bins[bin]);
    list_add_head(&bins[bin], &span->link);
    bits_set(bins_used, bin);
}

static struct span *take_out(struct span *span)
{
    unsigned bin = bin_of(span->mapped);

    list_remove(&span->link);
    list_remove(&span->age);
    if (list_is_empty(&bins[bin]))
        bits_clear(bins_used, bin);
    return span;
}

void span_put(struct span *span)
{
    bin_add(span);
    list_add_tail(&by_age, &span->age);
}

struct span *span_take_oldest(void)
{
    struct span *span = list_first(&by_age, struct span, age);

    return span ? take_out(span) : NULL;
}

/* -------------------------------------------------------------------------------- which of them */

static bool suits(const struct span *span, size_t alignment, unsigned node)
{
    return span->node == node && ((uintptr_t)span->base & (alignment - 1)) == 0;
}

/* The smallest that suits and has `bytes`, of the first few of its bin. */
static struct span *best_of_bin(unsigned bin, size_t bytes, size_t alignment, unsigned node)
{
    struct span *best = NULL;
    unsigned looks = 0;
    struct list *item;

    list_for_each(item, &bins[bin])
    {
        struct span *span = list_entry(item, struct span, link);

        if (looks++ == BIN_LOOKS)
            break;
        if (span->mapped >= bytes && suits(span, alignment, node) &&
            (!best || span->mapped < best->mapped))
            best = span;
    }
    return best;
}

/* Keeps what is beyond `bytes` as a free span of its own, if that is worth it: older than any, since
 * nobody has wanted it. */
static void split(struct span *span, size_t bytes)
{
    size_t front = round_up(bytes, SPAN_ALIGNMENT);
    struct span *rest;

    if (front + SPAN_WORTH > span->mapped)
        return;
    rest = os_meta_alloc(sizeof *rest);
    if (!rest)
        return;
    rest->base = span->base + front;
    rest->bytes = span->bytes > front ? span->bytes - front : 0;
    rest->mapped = span->mapped - front;
    rest->node = span->node;
    span->mapped = front;
    span->bytes = min_size(span->bytes, front);
    bin_add(rest);
    list_add_head(&by_age, &rest->age);
}

struct span *span_take(size_t bytes, size_t alignment, unsigned node)
{
    unsigned bin = bin_of(bytes);
    struct span *best = NULL;

    for (; !best && (bin = bits_find_set(bins_used, bin, BINS)) < BINS; bin++)
        best = best_of_bin(bin, bytes, alignment, node);
    if (!best)
        return NULL;
    take_out(best);
    split(best, bytes);
    return best;
}

struct span *span_take_smaller(size_t bytes, unsigned node)
{
    unsigned bin = bin_of(bytes) + 1;
    struct span *best = NULL;
    struct list *item;

    while (!best && (bin = bits_find_set_before(bins_used, bin)) > 0) {
        unsigned looks = 0;

        bin--;
        list_for_each(item, &bins[bin])
        {
            struct span *span = list_entry(item, struct span, link);

            if (looks++ == BIN_LOOKS)
                break;
            if (span->node == node && span->bytes >= bytes / 2 && span->mapped < bytes &&
                (!best || span->bytes > best->bytes))
                best = span;
        }
    }
    return best ? take_out(best) : NULL;
}

/* ------------------------------------------------------------------------------- without the lock */

struct span *span_make(size_t bytes, size_t alignment, unsigned node)
{
    struct span *span;
    size_t rounded;

    if (!checked_round_up(bytes, SPAN_ALIGNMENT, &rounded)) /* the next mapping is aligned, too */
        return NULL;
    span = os_meta_alloc(sizeof *span);
    if (!span)
        return NULL;
    span->base = mapping_make_on_node(rounded, max_size(alignment, SPAN_ALIGNMENT), node);
    if (!span->base)
        goto no_pages;
    span->bytes = bytes;
    span->mapped = rounded;
    span->node = node;
    if (rounded > bytes && mapping_unmake(span->base + bytes, rounded - bytes))
        span->mapped = bytes;
    if (!index_prepare(span->base, rounded))
        goto no_index;
    mapping_wish_huge(span->base, span->mapped);
    return span;

no_index:
    mapping_unmake(span->base, span->mapped);
no_pages:
    os_meta_free(span, sizeof *span);
    return NULL;
}

bool span_unmake(struct span *span)
{
    if (!mapping_unmake(span->base, span->mapped))
        return false;
    os_meta_free(span, sizeof *span);
    return true;
}

void span_lose(struct span *span, size_t bytes)
{
    if (span->mapped > bytes)
        mapping_unmake(span->base + bytes, span->mapped - bytes);
    os_meta_free(span, sizeof *span);
}

/* Less than half of it is unmapped from: that keeps address space for growing again. */
bool span_cut(struct span *span, size_t bytes)
{
    if (bytes < span->mapped / 2 && mapping_unmake(span->base + bytes, span->mapped - bytes)) {
        span->mapped = bytes;
        return true;
    }
    return mapping_give_back(span->base + bytes, span->bytes - bytes);
}

/* A span that was grown once will be grown again: what to reserve behind it, of address space. */
size_t span_reserve_for(size_t bytes)
{
    return round_up(bytes / 4, OS_PAGE_SIZE);
}

bool span_reserve(struct span *span, size_t bytes)
{
    size_t wanted, more;

    if (!checked_add(bytes, span_reserve_for(bytes), &wanted))
        return false;
    more = wanted - span->mapped;
    if (!mapping_extend(span->base, span->mapped, more))
        return false;
    if (!index_prepare(span->base, span->mapped + more)) {
        mapping_unmake(span->base + span->mapped, more);
        return false;
    }
    span->mapped += more;
    return true;
}

/*
 * Moves a used span, by its page tables, to where it has room for `bytes` and a reserve: then it is one
 * mapping. Its first `owned` bytes have `owner` in the page map (NULL: none yet), and have it
 * afterwards. The old address can be another thread's as soon as it is unmapped, so its entries are
 * cleared before. False: nothing has changed; then what the system has left of the target is not
 * unmapped, since another thread may have mapped something there meanwhile (address space, and no
 * memory).
 */
bool span_move(struct span *span, size_t bytes, size_t reserve, void *owner, size_t owned)
{
    size_t mapped;
    char *target =
        checked_add(bytes, reserve, &mapped) && checked_round_up(mapped, SPAN_ALIGNMENT, &mapped)
            ? mapping_make_on_node(mapped, SPAN_ALIGNMENT, span->node)
            : NULL;

    if (!target)
        return false;
    if (!index_prepare(target, mapped) || !os_page_owner_prepare(target, mapped)) {
        mapping_unmake(target, mapped);
        return false;
    }
    if (owner)
        os_page_owner_set(span->base, owned, NULL);
    if (!mapping_move(span->base, span->bytes, target, mapped)) {
        if (owner)
            os_page_owner_set(span->base, owned, owner);
        return false;
    }
    if (owner)
        os_page_owner_set(target, owned, owner);
    if (span->mapped > span->bytes)
        mapping_unmake(span->base + span->bytes, span->mapped - span->bytes);
    span->base = target;
    span->mapped = mapped;
    return true;
}
