/* SPDX-License-Identifier: MIT */
/*
 * Suspects are objects that may be free or deferred when they get their first date.
 *
 * An object that was freed other than by a date, in a slab that has expiry counts, is marked as a
 * suspect. So is one that was in a CPU's caches when the counts were made. The mark stays when the
 * object is allocated again, because allocations are not watched. So when a suspect gets a date or
 * a finalizer, we search for the object, and then it is no suspect. A slab knows all free objects
 * in it; in CPUs' caches only the newest objects are searched (slab/recent_frees.c).
 *
 * An object that only dates free costs nothing. One that was freed otherwise before becoming
 * short-term again costs some ten nanoseconds.
 */
#include "shortterm/expiry_counts.h"
#include "slab/latent_cache.h"
#include "slab/misuse.h"
#include "slab/recent_frees.h"

#define MARKED_MOST 1024 /* most objects marked per stack or ring, once per slab */
#define LOOKED_MOST 16   /* newest objects of a stack or ring among which a suspect is searched */

struct marking {
    struct recent_search search;
    const struct slab *slab;
    union expiry_count *counts;
};

static void suspect_mark(const struct marking *marking, const void *object)
{
    const struct slab *slab = marking->slab;

    if (slab_offset(slab, object) < slab->bytes && slab_has(slab, object))
        expiry_count_suspect(&marking->counts[slab_index(slab, object)]);
}

/* Returns whether the program has freed or deferred an object there, and not only allocated
 * refilled objects (see stats.c). */
static bool was_given_any(const struct cpu_cache *cpu)
{
    return load_relaxed(&cpu->line.ring_tail) ||
           stack_count(&cpu->line) + stack_pops(&cpu->line) + cpu->counts.unstacked !=
               cpu->counts.stacked;
}

static void mark_all(struct recent_search *search, const struct cpu_cache *cpu)
{
    const struct marking *marking = (const struct marking *)search;
    unsigned count = (unsigned)min_size(stack_count(&cpu->line), MARKED_MOST);

    if (!was_given_any(cpu))
        return;
    for (unsigned i = 0; i < count; i++)
        suspect_mark(marking, recent_free(cpu, i));
    count = (unsigned)min_size(latent_cache_count(cpu), MARKED_MOST);
    for (unsigned i = 0; i < count; i++)
        suspect_mark(marking, recent_latent(cpu, i));
}

void suspects_mark(const struct slab *slab, union expiry_count *counts)
{
    struct marking marking = {{mark_all, false}, slab, counts};

    recent_frees_look(slab->cache, &marking.search);
}

void suspect_check_live(const struct slab *slab, union expiry_count *expiry, const void *object,
                        const char *what)
{
    uint32_t word = load_relaxed(&expiry->word);
    bool latent, is_suspect = expiry_count_is_suspect(word);

    if (is_suspect && recent_frees_have(slab->cache, object, LOOKED_MOST, &latent))
        misuse_report_not_live(slab, object, latent, what);
    misuse_check_live(slab, object, what);
    if (is_suspect)
        compare_exchange(&expiry->word, &word, 0u); /* unless another thread has given it a date */
}
