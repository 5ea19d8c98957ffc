/* SPDX-License-Identifier: MIT */
/*
 * Huge mappings, for blocks of more than 32 MiB (or aligned to more than a region), for smaller
 * ones that have grown beyond 2 MiB, and for those for which there is no room for a region. Each is
 * a separate mapping that begins at a multiple of 2 MiB.
 *
 * A free huge mapping is in the bin of its size and in the list of all by age, but not in the
 * index. Dirty pages lie at the start. The lists and the index are protected by pages_lock. A used
 * huge mapping belongs to the user, and one taken out belongs to the thread that took it. They make
 * system calls for the mapping without the lock.
 *
 * The second half of this file takes, grows, shrinks and frees used ones, with their accounting
 * (working_set.c): bytes count as asked for before the system is asked, and as used when it has
 * given them.
 *
 * Each huge mapping, used or free, is one mapping of the system. A mapping is never cut in the
 * middle, except when a free huge mapping is split in two.
 */
#include "base/checked.h"
#include "pages/page_source.h"

/* Most excess (an eighth) that may be dirty in a huge mapping; more is cut off. */
#define SLACK_SHIFT 3

/* Bins by size, four per doubling, from 2 MiB on. */
#define BIN_SHIFT          21
#define BIN_STEPS          4
#define BINS               (BIN_STEPS * (PAGE_MAP_ADDRESS_BITS - BIN_SHIFT))
#define BIN_LOOKS          16 /* most huge mappings of a bin that are compared */
#define HUGE_MAPPING_MAX   (((size_t)1 << PAGE_MAP_ADDRESS_BITS) - 1)
#define HUGE_MAPPING_WORTH HUGE_MAPPING_ALIGNMENT /* least bytes worth splitting off */

static struct list bins[BINS];
static uint64_t bins_used[(BINS + BITS_PER_WORD - 1) / BITS_PER_WORD];
static struct list by_age = {&by_age, &by_age};
unsigned huge_mappings_free;

/* Returns the bin with the largest bound not above `bytes`. The first bin has all smaller ones
 * too. */
static unsigned bin_of(size_t bytes)
{
    unsigned doubling;

    bytes = clamp_size(bytes, HUGE_MAPPING_WORTH, HUGE_MAPPING_MAX);
    doubling = 63 - (unsigned)__builtin_clzll(bytes);
    return (doubling - BIN_SHIFT) * BIN_STEPS +
           (unsigned)(bytes >> (doubling - 2) & (BIN_STEPS - 1));
}

static void bin_add(struct huge_mapping *huge)
{
    unsigned bin = bin_of(huge->mapped);

    if (!bins[bin].next)
        list_init(&bins[bin]);
    list_add_head(&bins[bin], &huge->link);
    bits_set(bins_used, bin);
    huge_mappings_free++;
}

static struct huge_mapping *huge_mapping_unlink(struct huge_mapping *huge)
{
    unsigned bin = bin_of(huge->mapped);

    list_remove(&huge->link);
    list_remove(&huge->age);
    if (list_is_empty(&bins[bin]))
        bits_clear(bins_used, bin);
    huge_mappings_free--;
    return huge;
}

void huge_mapping_put(struct huge_mapping *huge)
{
    bin_add(huge);
    list_append(&by_age, &huge->age);
}

struct huge_mapping *huge_mapping_take_oldest(void)
{
    struct huge_mapping *huge = list_first(&by_age, struct huge_mapping, age);

    return huge ? huge_mapping_unlink(huge) : NULL;
}

/* -------------------------------------------------------------------------------- which of them */

static bool suits(const struct huge_mapping *huge, size_t alignment, unsigned node)
{
    return huge->node == node && ((uintptr_t)huge->base & (alignment - 1)) == 0;
}

/* Returns the smallest huge mapping of at least `bytes` that suits, among the first few of the
 * bin. */
static struct huge_mapping *best_of_bin(unsigned bin, size_t bytes, size_t alignment, unsigned node)
{
    struct huge_mapping *best = NULL;
    unsigned looks = 0;
    struct list *item;

    list_for_each(item, &bins[bin])
    {
        struct huge_mapping *huge = list_entry(item, struct huge_mapping, link);

        if (looks++ == BIN_LOOKS)
            break;
        if (huge->mapped >= bytes && suits(huge, alignment, node) &&
            (!best || huge->mapped < best->mapped))
            best = huge;
    }
    return best;
}

/* Splits the part beyond `bytes` off as a free huge mapping, if that is worthwhile. The part counts
 * as older than all others, because no thread has wanted it. */
static void huge_mapping_split(struct huge_mapping *huge, size_t bytes)
{
    size_t front = round_up(bytes, HUGE_MAPPING_ALIGNMENT);
    struct huge_mapping *rest;

    if (front + HUGE_MAPPING_WORTH > huge->mapped)
        return;
    rest = os_meta_alloc(sizeof *rest);
    if (!rest)
        return;
    rest->base = huge->base + front;
    rest->bytes = huge->bytes > front ? huge->bytes - front : 0;
    rest->mapped = huge->mapped - front;
    rest->node = huge->node;
    huge->mapped = front;
    huge->bytes = min_size(huge->bytes, front);
    bin_add(rest);
    list_add_head(&by_age, &rest->age);
}

static struct huge_mapping *huge_mapping_take(size_t bytes, size_t alignment, unsigned node)
{
    unsigned bin = bin_of(bytes);
    struct huge_mapping *best = NULL;

    for (; !best && (bin = bits_find_set(bins_used, bin, BINS)) < BINS; bin++)
        best = best_of_bin(bin, bytes, alignment, node);
    if (!best)
        return NULL;
    huge_mapping_unlink(best);
    huge_mapping_split(best, bytes);
    return best;
}

static struct huge_mapping *huge_mapping_take_smaller(size_t bytes, unsigned node)
{
    unsigned bin = bin_of(bytes) + 1;
    struct huge_mapping *best = NULL;
    struct list *item;

    while (!best && (bin = bits_find_set_before(bins_used, bin)) > 0) {
        unsigned looks = 0;

        bin--;
        list_for_each(item, &bins[bin])
        {
            struct huge_mapping *huge = list_entry(item, struct huge_mapping, link);

            if (looks++ == BIN_LOOKS)
                break;
            if (huge->node == node && huge->bytes >= bytes / 2 && huge->mapped < bytes &&
                (!best || huge->bytes > best->bytes))
                best = huge;
        }
    }
    return best ? huge_mapping_unlink(best) : NULL;
}

/* ----------------------------------------------------------------------------- without the lock */

static struct huge_mapping *huge_mapping_make(size_t bytes, size_t alignment, unsigned node)
{
    struct huge_mapping *huge;
    size_t rounded;

    if (!checked_round_up(bytes, HUGE_MAPPING_ALIGNMENT,
                          &rounded)) /* keeps the next mapping aligned */
        return NULL;
    huge = os_meta_alloc(sizeof *huge);
    if (!huge)
        return NULL;
    huge->base = mapping_make_on_node(rounded, max_size(alignment, HUGE_MAPPING_ALIGNMENT), node);
    if (!huge->base)
        goto no_pages;
    huge->bytes = bytes;
    huge->mapped = rounded;
    huge->node = node;
    if (rounded > bytes && mapping_unmake(huge->base + bytes, rounded - bytes))
        huge->mapped = bytes;
    if (!page_index_prepare(huge->base, rounded))
        goto no_index;
    mapping_wish_huge(huge->base, huge->mapped);
    return huge;

no_index:
    mapping_unmake(huge->base, huge->mapped);
no_pages:
    os_meta_free(huge, sizeof *huge);
    return NULL;
}

bool huge_mapping_unmake(struct huge_mapping *huge)
{
    if (!mapping_unmake(huge->base, huge->mapped))
        return false;
    os_meta_free(huge, sizeof *huge);
    return true;
}

static void huge_mapping_lose(struct huge_mapping *huge, size_t bytes)
{
    if (huge->mapped > bytes)
        mapping_unmake(huge->base + bytes, huge->mapped - bytes);
    os_meta_free(huge, sizeof *huge);
}

/* Unmaps the part beyond `bytes` if less than half remains. Otherwise purges that part, which keeps
 * the address space for growing again. */
static bool huge_mapping_cut(struct huge_mapping *huge, size_t bytes)
{
    if (bytes < huge->mapped / 2 && mapping_unmake(huge->base + bytes, huge->mapped - bytes)) {
        huge->mapped = bytes;
        return true;
    }
    return mapping_purge(huge->base + bytes, huge->bytes - bytes);
}

/* Returns the address space to reserve after a block of `bytes`, because a huge mapping that grew
 * once will grow again. */
static size_t huge_mapping_reserve_for(size_t bytes)
{
    return round_up(bytes / 4, os_page_size);
}

static bool huge_mapping_reserve(struct huge_mapping *huge, size_t bytes)
{
    size_t wanted, more;

    if (!checked_add(bytes, huge_mapping_reserve_for(bytes), &wanted))
        return false;
    more = wanted - huge->mapped;
    if (!mapping_extend(huge->base, huge->mapped, more))
        return false;
    if (!page_index_prepare(huge->base, huge->mapped + more)) {
        mapping_unmake(huge->base + huge->mapped, more);
        return false;
    }
    huge->mapped += more;
    return true;
}

/*
 * Moves a used huge mapping, by moving page tables, to one mapping with room for `bytes` and a
 * reserve. The first `owned` bytes have `owner` in the page map (NULL for none yet) before and
 * after. Another thread can get the old address as soon as it is unmapped, so the entries there are
 * cleared before. Returns false with nothing changed. Then the target is not unmapped, because
 * another thread may have mapped something there since; that loses address space, but no memory.
 */
static bool huge_mapping_move(struct huge_mapping *huge, size_t bytes, size_t reserve, void *owner,
                              size_t owned)
{
    size_t mapped;
    char *target = checked_add(bytes, reserve, &mapped) &&
                           checked_round_up(mapped, HUGE_MAPPING_ALIGNMENT, &mapped)
                       ? mapping_make_on_node(mapped, HUGE_MAPPING_ALIGNMENT, huge->node)
                       : NULL;

    if (!target)
        return false;
    if (!page_index_prepare(target, mapped) || !os_page_owner_prepare(target, bytes) ||
        !os_page_owner_prepare(target, owned)) {
        mapping_unmake(target, mapped);
        return false;
    }
    if (owner)
        os_page_owner_set(huge->base, owned, NULL);
    if (!mapping_move(huge->base, huge->bytes, target, mapped)) {
        if (owner)
            os_page_owner_set(huge->base, owned, owner);
        return false;
    }
    if (owner)
        os_page_owner_set(target, owned, owner);
    if (huge->mapped > huge->bytes)
        mapping_unmake(huge->base + huge->bytes, huge->mapped - huge->bytes);
    huge->base = target;
    huge->mapped = mapped;
    return true;
}

/* ---------------------------------------------------------------------- used, with accounting */

/* Counts `bytes` as asked for, after which the system may be asked. Returns false if they exceed
 * the limit. */
static bool huge_mapping_ask(size_t bytes)
{
    bool fits;

    os_lock_take(&pages_lock);
    fits = working_set_ask(bytes);
    os_lock_release(&pages_lock);
    if (fits)
        os_hands_full(); /* until the answer is noted */
    return fits;
}

/* Records whether the system gave the bytes that the caller asked for, for `huge`. */
static void note_answer(struct huge_mapping *huge, size_t bytes, bool got)
{
    os_lock_take(&pages_lock);
    working_set_answered(bytes);
    if (got)
        working_set_took(HUGE_MAPPINGS, bytes, 0);
    if (huge)
        page_index_set_huge_mapping(huge, true);
    os_lock_release(&pages_lock);
    os_hands_empty();
}

/* Counts used bytes that went straight to the system. */
static void count_back(size_t bytes)
{
    os_lock_take(&pages_lock);
    working_set_freed(HUGE_MAPPINGS, bytes);
    working_set_purged(HUGE_MAPPINGS, bytes);
    os_lock_release(&pages_lock);
}

/* Takes a free huge mapping that has room, and cuts the excess if that is large. */
struct huge_mapping *huge_mapping_reuse(size_t bytes, size_t alignment, unsigned node, bool *clean)
{
    struct huge_mapping *huge;
    size_t dirty = 0;

    os_lock_take(&pages_lock);
    huge = huge_mapping_take(bytes, alignment, node);
    if (huge) {
        dirty = huge->bytes;
        if (working_set_fits(bytes - min_size(bytes, dirty))) {
            huge->bytes = max_size(bytes, dirty);
            working_set_took(HUGE_MAPPINGS, huge->bytes, dirty);
            page_index_set_huge_mapping(huge, true);
        } else {
            huge_mapping_put(huge);
            huge = NULL;
        }
    }
    os_lock_release(&pages_lock);
    *clean = dirty == 0;
    if (huge && dirty > bytes + (bytes >> SLACK_SHIFT) && huge_mapping_cut(huge, bytes)) {
        huge->bytes = bytes;
        count_back(dirty - bytes);
    }
    return huge;
}

/* Takes a smaller free huge mapping and grows it, so that the dirty pages need not be faulted in
 * again. */
static struct huge_mapping *huge_mapping_reuse_smaller(size_t bytes, unsigned node)
{
    struct huge_mapping *huge;
    size_t dirty = 0;
    bool moved;

    os_lock_take(&pages_lock);
    huge = working_set_fits(bytes) ? huge_mapping_take_smaller(bytes, node) : NULL;
    if (huge) {
        os_hands_full();
        dirty = huge->bytes;
        working_set_ask(bytes - dirty);
        working_set_in_hand(dirty, true);
    }
    os_lock_release(&pages_lock);
    if (!huge)
        return NULL;
    moved = huge_mapping_move(huge, bytes, 0, NULL, 0);
    os_lock_take(&pages_lock);
    working_set_answered(bytes - dirty);
    working_set_in_hand(dirty, false);
    if (moved) {
        huge->bytes = bytes;
        working_set_took(HUGE_MAPPINGS, bytes, dirty);
        page_index_set_huge_mapping(huge, true);
    } else {
        huge_mapping_put(huge);
    }
    os_lock_release(&pages_lock);
    os_hands_empty();
    return moved ? huge : NULL;
}

struct huge_mapping *huge_mapping_fresh(size_t bytes, size_t alignment, unsigned node)
{
    struct huge_mapping *huge;

    if (!huge_mapping_ask(bytes))
        return NULL;
    posix_pressure_check(bytes);
    huge = huge_mapping_make(bytes, alignment, node);
    note_answer(huge, bytes, huge != NULL);
    return huge;
}

void *huge_mapping_alloc(size_t bytes, size_t alignment, unsigned node, bool *clean)
{
    struct huge_mapping *huge = huge_mapping_reuse(bytes, alignment, node, clean);

    if (!huge && alignment <= HUGE_MAPPING_ALIGNMENT) {
        huge = huge_mapping_reuse_smaller(bytes, node);
        *clean = false;
    }
    if (!huge) {
        huge = huge_mapping_fresh(bytes, alignment, node);
        *clean = true;
    }
    return huge ? huge->base : NULL;
}

/* Makes room in the reserve after the huge mapping, or in free addresses there, or moves the
 * mapping, which note_answer() enters into the index again. */
static bool huge_mapping_make_room(struct huge_mapping *huge, size_t bytes, size_t wanted,
                                   void *owner)
{
    if (wanted <= huge->mapped || huge_mapping_reserve(huge, wanted))
        return os_page_owner_prepare(huge->base, wanted);
    os_lock_take(&pages_lock);
    page_index_set_huge_mapping(huge, false);
    os_lock_release(&pages_lock);
    return huge_mapping_move(huge, wanted, huge_mapping_reserve_for(wanted), owner, bytes);
}

bool huge_mapping_grow(struct huge_mapping *huge, size_t bytes, size_t wanted, void *owner)
{
    size_t more = wanted - min_size(wanted, huge->bytes);
    bool done;

    if (!huge_mapping_ask(more))
        return false;
    posix_pressure_check(more);
    done = huge_mapping_make_room(huge, bytes, wanted, owner);
    note_answer(huge, more, done);
    if (!done)
        return false;
    huge->bytes += more;
    os_page_owner_resize(huge->base, bytes, huge->base, wanted, owner);
    return true;
}

/* Shrinks a huge mapping. A failure to cut leaves the mapping as it was, with more pages than the
 * user sees. */
void huge_mapping_shrink(struct huge_mapping *huge, size_t bytes, size_t wanted, void *owner)
{
    size_t before = huge->bytes;

    os_page_owner_resize(huge->base, bytes, huge->base, wanted, owner);
    if (huge_mapping_cut(huge, wanted)) {
        huge->bytes = wanted;
        count_back(before - wanted);
    }
}

/*
 * Joins the memory that came from a run and the memory after it, which are two mappings
 * (mapping_move says why that is bad), by one more move while only the first `bytes` bytes have
 * been used. After a refusal the huge mapping stays as it is, and growing on will copy it.
 */
void huge_mapping_weld(struct huge_mapping *huge, size_t bytes)
{
    size_t wanted = huge->bytes;

    os_lock_take(&pages_lock);
    page_index_set_huge_mapping(huge, false);
    os_lock_release(&pages_lock);
    huge->bytes = bytes;
    huge_mapping_move(huge, wanted, huge_mapping_reserve_for(wanted), NULL, 0);
    huge->bytes = wanted;
    os_lock_take(&pages_lock);
    page_index_set_huge_mapping(huge, true);
    os_lock_release(&pages_lock);
}

/* Drops a used huge mapping whose first bytes may be unmapped, so that it is never handed out
 * again. */
void huge_mapping_drop(struct huge_mapping *huge, size_t bytes)
{
    os_lock_take(&pages_lock);
    page_index_set_huge_mapping(huge, false);
    os_lock_release(&pages_lock);
    count_back(huge->bytes);
    huge_mapping_lose(huge, bytes);
}

/* Frees a used huge mapping. Called under the lock. */
void huge_mapping_free(struct huge_mapping *huge)
{
    page_index_set_huge_mapping(huge, false);
    working_set_freed(HUGE_MAPPINGS, huge->bytes);
    if (unlikely(huge->advised))
        advice_owe_huge(huge);
    else
        huge_mapping_put(huge);
}

void huge_mapping_give_up(struct huge_mapping *huge)
{
    os_lock_take(&pages_lock);
    huge_mapping_free(huge);
    os_lock_release(&pages_lock);
}
