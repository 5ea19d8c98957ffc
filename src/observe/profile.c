/* SPDX-License-Identifier: MIT */
/*
 * The extension profile records which calls allocated the live objects and deferred the latent
 * ones, and for how long.
 *
 * Bytes are sampled (sampling.c). So that only sampled objects cost more, each is alone on pages of
 * its own, like a guarded object (slab_large_make_lone). Only these slabs have this extension;
 * frees and deferrals of all other objects keep their fast paths. The fast path of allocations is
 * closed, because bytes must be counted; object_alloc_aside() counts them and takes the object by
 * the same sequence.
 *
 * Sampled in place are:
 *   - objects of caches with constructors, destructors or type-safe memory, whose identity outlives
 *     a free. Slabs of these caches have this extension, and a table with a word for each object.
 *   - large blocks, each of which is already a slab of one object.
 *
 * A sample goes from live to latent to over (deferred), or from live to over (freed). The state
 * changes by compare-and-swap, so a double free counts once. The sample is kept outside the object,
 * and freed when the object's place is used again or the slab goes. `safe` may run under a node's
 * lock and on an owned CPU, so it only changes sums and frees nothing.
 *
 * A profile may begin when there are caches already. Objects that exist then have no sample. In
 * caches that are sampled in place, all objects of slabs that exist have none.
 *
 * Without memory for a sample, the allocation proceeds unsampled, and the sample counts as dropped.
 */
#include "observe/profile.h"

#include <string.h>

#include "guard/annotate.h"
#include "guard/settings.h"
#include "heap/object.h"
#include "observe/profile_sites.h"
#include "os/os.h"
#include "slab/large.h"

enum sample_state { SAMPLE_LIVE, SAMPLE_LATENT, SAMPLE_OVER };

struct sample {
    uint32_t state; /* atomic */
    struct profile_site *allocated_by;
    struct profile_site *deferred_by; /* NULL before, or if there was no memory for the site */
    uint64_t objects;                 /* number represented, in units of 1 / SAMPLING_UNIT */
    size_t size;
    uint64_t since; /* ns; time of the allocation or deferral */
};

uint64_t profile_samples_dropped; /* atomic */

uint64_t profile_dropped(void)
{
    return load_relaxed(&profile_samples_dropped);
}

COLD void profile_start(void)
{
    if (load_relaxed(&sampling_rate) && !profile_sites_start()) {
        os_report("option 'profile': no memory for its tables; nothing is sampled");
        store_relaxed(&sampling_rate, UINT64_C(0));
    }
}

COLD void profile_prime(void)
{
    if (load_relaxed(&sampling_rate) && load_relaxed(&stack_depot_frames))
        os_trace_prime();
}

bool profile_begin(void)
{
    profile_start();
    if (!load_relaxed(&sampling_rate))
        return false;
    extensions_begin(PROFILE_EXTENSION);
    return true;
}

bool profile_keeps_from(uint64_t rate)
{
    uint64_t now = load_relaxed(&sampling_rate);

    return now && rate != now;
}

/* -------------------------------------------------------------------------------- which caches */

static bool stays_in_place(const struct cache_layout *layout)
{
    return layout->no_cpu_caches || layout->constructor || layout->destructor ||
           layout->flags & CACHE_TYPESAFE;
}

COLD static enum extension_wish profile_wants(const struct cache_layout *layout)
{
    if (!load_relaxed(&sampling_rate) || layout->flags & (CACHE_CLOSED | CACHE_COMMON))
        return EXTENSION_UNWANTED;
    return stays_in_place(layout) ? EXTENSION_WANTED : EXTENSION_INSTEAD;
}

/* --------------------------------------------------------------------------- where samples are */

/* Returns whether the slab has one object, and so a word instead of a table. */
static bool has_one_object(const struct slab *slab)
{
    return slab->alone || !slab->cache->percpu;
}

/* Returns the place of an object's sample, or NULL if there was no memory for the slab's table. */
static struct sample **profile_place_of(struct slab *slab, const void *object)
{
    struct sample **table = slab->side[PROFILE_EXTENSION];

    if (has_one_object(slab))
        return (struct sample **)&slab->side[PROFILE_EXTENSION];
    return table ? table + slab_index(slab, object) : NULL;
}

static struct sample *sample_of(struct slab *slab, const void *object)
{
    struct sample **place = profile_place_of(slab, object);

    return place ? *place : NULL;
}

static size_t places_bytes(const struct slab *slab)
{
    return slab->capacity * sizeof(struct sample *);
}

static bool profile_made(struct slab *slab)
{
    if (!has_one_object(slab))
        slab->side[PROFILE_EXTENSION] = os_meta_alloc(places_bytes(slab));
    return true; /* without a table, samples of the slab are dropped */
}

static void sample_free(struct sample *sample)
{
    if (sample)
        os_meta_free(sample, sizeof *sample);
}

/* Frees the slab's samples, and the pages of a sampled lone object. Without a sample, the caller of
 * slab_large_make_lone() still owns the pages. */
static void profile_going(struct slab *slab)
{
    if (!slab->side[PROFILE_EXTENSION])
        return;
    for (unsigned i = 0; i < slab->capacity; i++)
        sample_free(sample_of(slab, slab_object(slab, i, slab->cache->body->stride)));
    if (!has_one_object(slab)) {
        os_meta_free(slab->side[PROFILE_EXTENSION], places_bytes(slab));
    } else if (slab->alone) {
        if (zero_on_free)
            memset(slab->pages, 0, slab->bytes);
        annotate_pages_pass(slab);
        os_pages_free(slab->pages, slab->bytes);
    }
}

/* ----------------------------------------------------------------------------- a sample's life */

/* Makes a sample; returns NULL if it was dropped. */
static struct sample *sample_make(const struct prudence_cache *cache, size_t size,
                                  const void *frame_address)
{
    struct profile_site *site = profile_site_here(SITE_ALLOCATES, cache, frame_address);
    struct sample *sample = site ? os_meta_alloc(sizeof *sample) : NULL;

    if (!sample) {
        add_relaxed(&profile_samples_dropped, 1);
        return NULL;
    }
    *sample = (struct sample){.allocated_by = site,
                              .objects = sampling_weight(size),
                              .size = size,
                              .since = os_clock_ns()};
    return sample;
}

/* Drops a sample that has not begun. */
static void drop(struct sample *sample)
{
    if (sample)
        add_relaxed(&profile_samples_dropped, 1);
    sample_free(sample);
}

static void sample_begins(const struct sample *sample)
{
    profile_site_begins(sample->allocated_by, sample->objects, sample->size);
}

/* Moves a sample to another state. Returns false if it is not in `from`, or NULL. The thread that
 * moved the sample owns the fields. */
static bool profile_change(struct sample *sample, enum sample_state from, enum sample_state to)
{
    uint32_t state = from;

    return sample && compare_exchange(&sample->state, &state, (uint32_t)to);
}

/* Ends the live part of a sample. Returns the time. */
static uint64_t life_ends(const struct sample *sample)
{
    uint64_t now = os_clock_ns();

    profile_site_ends(sample->allocated_by, sample->objects, sample->size, now - sample->since);
    return now;
}

static void profile_freed(struct slab *slab, void *object, const char *what)
{
    struct sample *sample = sample_of(slab, object);

    (void)what;
    if (profile_change(sample, SAMPLE_LIVE, SAMPLE_OVER))
        life_ends(sample);
}

/* Runs before any other thread can find the object safe. */
static void profile_deferred(struct slab *slab, void *object, const char *what)
{
    struct sample *sample = sample_of(slab, object);

    (void)what;
    if (!profile_change(sample, SAMPLE_LIVE, SAMPLE_LATENT))
        return;
    sample->since = life_ends(sample);
    sample->deferred_by = profile_site_here(SITE_DEFERS, slab->cache, NULL);
    if (sample->deferred_by)
        profile_site_begins(sample->deferred_by, sample->objects, sample->size);
    else
        add_relaxed(&profile_samples_dropped, 1);
}

static bool profile_safe(struct slab *slab, void *object)
{
    struct sample *sample = sample_of(slab, object);

    if (profile_change(sample, SAMPLE_LATENT, SAMPLE_OVER) && sample->deferred_by)
        profile_site_ends(sample->deferred_by, sample->objects, sample->size,
                          os_clock_ns() - sample->since);
    return true;
}

/* ------------------------------------------------------------------------------ taking samples */

static struct slab *make_lone(struct prudence_cache *cache)
{
    size_t bytes = round_up(cache->body->stride, os_page_size);
    void *pages = os_pages_alloc_as(bytes, os_page_size, os_node_of_cpu(os_cpu_current()), NULL,
                                    os_alloc_first(OS_ALLOC_DEFAULT));
    struct slab *slab;

    if (!pages)
        return NULL;
    annotate_pages_taken();
    slab = slab_large_make_lone(cache, pages, bytes, pages, EXTENSION_BIT(PROFILE_EXTENSION));
    if (!slab)
        os_pages_free(pages, bytes);
    return slab;
}

/* Returns a lone object if this allocation is sampled, else NULL. Clears object_entry, which is
 * valid only for this allocation, because a constructor called later may allocate. */
static void *sampled_alloc(struct prudence_cache *cache, size_t size)
{
    const void *frame_address = object_entry;
    struct sample *sample;
    struct slab *slab;

    object_entry = NULL;
    if (load_relaxed(&cache->slab_extensions) & EXTENSION_BIT(PROFILE_EXTENSION) ||
        !sampling_is_due(size))
        return NULL;
    sample = sample_make(cache, size, frame_address);
    slab = sample ? make_lone(cache) : NULL;
    if (!slab) {
        drop(sample);
        return NULL;
    }
    sample_begins(sample);
    slab->side[PROFILE_EXTENSION] = sample;
    return slab->base;
}

/* Samples an object in place. A large block that was resized counts as another one, as if moved. */
static void profile_count(struct slab *slab, void *object, size_t size)
{
    struct sample **place = profile_place_of(slab, object);
    struct sample *sample = sampling_is_due(size) ? sample_make(slab->cache, size, NULL) : NULL;

    if (!place) {
        drop(sample);
        return;
    }
    sample_free(*place);
    *place = sample;
    if (sample)
        sample_begins(sample);
}

static void profile_allocated(struct slab *slab, void *object, size_t size, bool zeroed)
{
    (void)zeroed;
    if (!slab->alone)
        profile_count(slab, object, size);
}

/* Follows a change of size. An object of a size class keeps its place down to half the class's
 * size, mostly unseen here, so the sample goes on, with the present size and the first size's
 * probability. */
static void profile_resized(struct slab *slab, void *object, size_t size)
{
    struct sample *sample = sample_of(slab, object);

    if (!slab->cache->percpu) {
        profile_freed(slab, object, NULL);
        profile_count(slab, object, size);
    } else if (sample && load_relaxed(&sample->state) == SAMPLE_LIVE) {
        profile_site_resized(sample->allocated_by, sample->objects, sample->size, size);
        sample->size = size;
    }
}

const struct slab_extension profile_extension = {.wants = profile_wants,
                                                 .made = profile_made,
                                                 .going = profile_going,
                                                 .instead = sampled_alloc,
                                                 .allocated = profile_allocated,
                                                 .resized = profile_resized,
                                                 .freed = profile_freed,
                                                 .deferred = profile_deferred,
                                                 .safe = profile_safe};
