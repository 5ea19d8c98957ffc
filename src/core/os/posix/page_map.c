/* SPDX-License-Identifier: MIT */
/* Slow side of the page map: makes leaves and enters owners (see os_page_map.h). */
#include "mapping.h"

void **os_page_map[PAGE_MAP_LEAVES];
void **os_page_map_whole; /* published */

#define LEAF_CHUNKS ((size_t)1 << (PAGE_MAP_LEAF_SHIFT - PAGE_MAP_CHUNK_SHIFT))
#define LEAF_WORDS  (PAGE_MAP_LEAF_PAGES + LEAF_CHUNKS)

void *os_page_owner_by_chunk(const void *address)
{
    uintptr_t number = (uintptr_t)address;
    size_t index = number >> PAGE_MAP_LEAF_SHIFT;
    void **leaf, **whole, *owner = NULL;

    if (unlikely(index >= PAGE_MAP_LEAVES))
        return NULL;
    leaf = load_relaxed(&os_page_map[index]);
    if (leaf)
        owner = load_relaxed(
            &leaf[PAGE_MAP_LEAF_PAGES + (number >> PAGE_MAP_CHUNK_SHIFT & (LEAF_CHUNKS - 1))]);
    whole = load_relaxed(&os_page_map_whole);
    return owner || !whole ? owner : load_relaxed(&whole[index]);
}

/* ------------------------------------------------------------------------ the words of an owner */

enum unit { PAGES, CHUNKS, LEAVES, UNITS };

/* Numbers of units, from `first` up to but not including `end`, counted from address 0. */
struct part {
    size_t first, end;
};

/* The words of an owner: the rest at both ends by the next larger unit. */
struct cover {
    struct part ends[UNITS][2];
};

/* Takes the larger units that lie in `part` out of it, and returns them. */
static struct part take_units(struct part part, unsigned shift, struct part ends[2])
{
    struct part units = {(part.first + ((size_t)1 << shift) - 1) >> shift, part.end >> shift};

    ends[0] = part;
    ends[1] = (struct part){0};
    if (units.first >= units.end)
        return (struct part){0};
    ends[0].end = units.first << shift;
    ends[1] = (struct part){units.end << shift, part.end};
    return units;
}

static struct cover cover_of(const void *pages, size_t bytes)
{
    uintptr_t first = (uintptr_t)pages >> PAGE_MAP_PAGE_SHIFT;
    struct part part = {first, first + (bytes >> PAGE_MAP_PAGE_SHIFT)};
    struct cover cover = {0};

    part = take_units(part, PAGE_MAP_CHUNK_SHIFT - PAGE_MAP_PAGE_SHIFT, cover.ends[PAGES]);
    part = take_units(part, PAGE_MAP_LEAF_SHIFT - PAGE_MAP_CHUNK_SHIFT, cover.ends[CHUNKS]);
    cover.ends[LEAVES][0] = part;
    if (bytes && cover.ends[PAGES][0].end == first) /* for lookups of the object, and for walks */
        cover.ends[PAGES][0].end++;
    return cover;
}

/* Where words of pages and chunks are: in leaves, 1 << shift in each. */
static const struct {
    unsigned shift, offset;
} in_leaf[] = {[PAGES] = {PAGE_MAP_LEAF_SHIFT - PAGE_MAP_PAGE_SHIFT, 0},
               [CHUNKS] = {PAGE_MAP_LEAF_SHIFT - PAGE_MAP_CHUNK_SHIFT, PAGE_MAP_LEAF_PAGES}};

/* ------------------------------------------------------------------------------- making leaves */

/* Makes a table unless there is one. Compare-and-swap publishes it, with zeros. */
static bool table_prepare(void ***at, size_t words)
{
    size_t bytes = round_up(words * sizeof(void *), os_page_size);
    void **none = NULL;
    void **table;

    if (likely(load_acquire(at)))
        return true;
    if (injected_failure())
        return false;
    table = mapping_make_own_sparse(bytes);
    if (!table)
        return false;
    if (!compare_exchange(at, &none, table))
        mapping_unmake_own(table, bytes); /* another thread was first */
    return true;
}

static bool cover_prepare(const struct cover *cover)
{
    const struct part *whole = &cover->ends[LEAVES][0];

    for (unsigned i = 0; i < 4; i++) {
        const struct part *part = &cover->ends[i / 2][i % 2];
        unsigned shift = in_leaf[i / 2].shift;

        for (size_t at = part->first; at < part->end; at = ((at >> shift) + 1) << shift)
            if (!table_prepare(&os_page_map[at >> shift], LEAF_WORDS))
                return false;
    }
    return whole->first == whole->end || table_prepare(&os_page_map_whole, PAGE_MAP_LEAVES);
}

/* Returns whether addresses of the range are in the map. */
static bool is_in_map(const void *pages, size_t bytes)
{
    return ((uintptr_t)pages + bytes - 1) >> PAGE_MAP_LEAF_SHIFT < PAGE_MAP_LEAVES;
}

bool os_page_owner_prepare(const void *pages, size_t bytes)
{
    struct cover cover = cover_of(pages, bytes);

    return is_in_map(pages, bytes) && cover_prepare(&cover);
}

/* ------------------------------------------------------------------------------ entering owners */

/* Returns the word of a unit, whose leaf exists. */
static void **owner_word(unsigned unit, size_t at)
{
    unsigned shift;

    if (unit == LEAVES)
        return load_relaxed(&os_page_map_whole) + at;
    shift = in_leaf[unit].shift;
    return load_relaxed(&os_page_map[at >> shift]) + in_leaf[unit].offset +
           (at & (((size_t)1 << shift) - 1));
}

/* Release: pairs with os_page_owner_next. */
static void words_set(unsigned unit, struct part part, void *owner)
{
    for (size_t at = part.first; at < part.end; at++)
        store_release(owner_word(unit, at), owner);
}

/* Enters the owner in the words of `cover` that are not among those of `other`; the parts of each
 * are in order. */
static void cover_enter(const struct cover *cover, const struct cover *other, void *owner)
{
    for (unsigned i = 0; i < 2 * UNITS; i++) {
        struct part part = cover->ends[i / 2][i % 2];

        for (unsigned j = 0; j < 2; j++) {
            const struct part *kept = &other->ends[i / 2][j];

            if (kept->end <= part.first)
                continue;
            if (kept->first >= part.end)
                break;
            words_set(i / 2, (struct part){part.first, kept->first}, owner);
            part.first = kept->end;
        }
        words_set(i / 2, part, owner);
    }
}

bool os_page_owner_set(void *pages, size_t bytes, void *owner)
{
    const struct cover none = {0};
    struct cover cover = cover_of(pages, bytes);

    if (owner && !(is_in_map(pages, bytes) && cover_prepare(&cover)))
        return false;
    cover_enter(&cover, &none, owner);
    return true;
}

void os_page_owner_resize(void *pages, size_t bytes, void *new_pages, size_t new_bytes, void *owner)
{
    struct cover before = cover_of(pages, bytes), after = cover_of(new_pages, new_bytes);

    cover_enter(&after, &before, owner);
    cover_enter(&before, &after, NULL);
}

void *os_page_owner_next(uintptr_t *address, uintptr_t end)
{
    uintptr_t page = *address >> PAGE_MAP_PAGE_SHIFT;
    uintptr_t last = min_size(end >> PAGE_MAP_PAGE_SHIFT, PAGE_MAP_LEAVES * PAGE_MAP_LEAF_PAGES);
    void *owner = NULL;

    while (!owner && page < last) {
        void **leaf = load_acquire(&os_page_map[page / PAGE_MAP_LEAF_PAGES]);

        if (leaf)
            owner = load_acquire(&leaf[page % PAGE_MAP_LEAF_PAGES]);
        if (!owner)
            page = leaf ? page + 1 : (page / PAGE_MAP_LEAF_PAGES + 1) * PAGE_MAP_LEAF_PAGES;
    }
    /* Past the end *address stays, because an owner found before may reach over that end. */
    if (*address < end)
        *address = min_size(page, last) << PAGE_MAP_PAGE_SHIFT;
    return owner;
}
