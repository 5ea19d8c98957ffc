/* SPDX-License-Identifier: MIT */
/* The words of expiry_counts.h. They are made at a slab's first expiration date and freed with the
 * slab. */
#include "shortterm/expiry_counts.h"

#include "member_parts.h"
#include "shortterm/meta.h"
#include "slab/misuse.h"

static uint64_t counts_bytes; /* of all slabs; atomic */

static size_t expiry_count_table_bytes(const struct slab *slab)
{
    return slab->capacity * sizeof(union expiry_count);
}

/* Makes the words of a slab. If two threads do so at the same time, one wins. The slab is extended
 * first, so that a thread that finds the words finds the slab extended. */
union expiry_count *expiry_counts_make(struct slab *slab)
{
    void *counts = expiry_counts_in(slab), *none = NULL;

    if (counts)
        return counts;
    counts = os_meta_alloc(expiry_count_table_bytes(slab));
    if (!counts)
        return NULL;
    extensions_add(slab, EXPIRY_COUNTS_EXTENSION);
    suspects_mark(slab, counts);
    if (!compare_exchange(&slab->side[EXPIRY_COUNTS_EXTENSION], &none, counts)) {
        os_meta_free(counts, expiry_count_table_bytes(slab));
        return none;
    }
    add_relaxed(&counts_bytes, expiry_count_table_bytes(slab));
    tell_overhead(slab, "counts", (int64_t)expiry_count_table_bytes(slab));
    return counts;
}

uint64_t expiry_counts_bytes(void)
{
    return load_relaxed(&counts_bytes);
}

/* Frees the words. All objects are free. */
static void going(struct slab *slab)
{
    union expiry_count *counts = expiry_counts_in(slab);

    if (!counts)
        return; /* there was no memory for them */
    sub_relaxed(&counts_bytes, expiry_count_table_bytes(slab));
    tell_overhead(slab, "counts", -(int64_t)expiry_count_table_bytes(slab));
    os_meta_free(counts, expiry_count_table_bytes(slab));
}

/* Returns false for short-term memory, which its dates free. */
static bool is_freed_by_hand(const struct slab *slab, const void *object, const char *what)
{
    const union expiry_count *counts = expiry_counts_in(slab);

    (void)what;
    return !counts || !expiry_count_dates(load_relaxed(&counts[slab_index(slab, object)].word));
}

/* Called when an object is freed or deferred other than by a date. Reports a short-term object.
 * Forgets the finalizer and makes the object a suspect. */
static void end(struct slab *slab, void *object, const char *what)
{
    union expiry_count *counts = expiry_counts_in(slab), *expiry;
    uint32_t word;

    if (!counts)
        return; /* there was no memory for them */
    expiry = &counts[slab_index(slab, object)];
    word = load_relaxed(&expiry->word);

    if (unlikely(expiry_count_dates(word))) {
        os_report(
            "%s: %p of cache '%s' is short-term memory: %u expiration date%s not yet processed "
            "will free it",
            what, object, slab->cache->name, expiry_count_dates(word),
            expiry_count_dates(word) == 1 ? "" : "s");
        misuse_explain_and_abort(slab, object);
    }
    expiry_count_suspect(expiry);
}

static const struct slab_extension extension = {
    .going = going, .freed = end, .deferred = end, .check_live = is_freed_by_hand};

const struct extension_part expiry_counts_part = {.number = EXPIRY_COUNTS_EXTENSION,
                                                  .extension = &extension};
ENTER(extension_parts, expiry_counts_part);
