/* SPDX-License-Identifier: MIT */
/*
 * States of objects. Each object's state changes by compare-and-swap, so one of two frees is
 * caught. The word also records which calls allocated and released the object, so the report for
 * the thread that is caught shows whose free came first.
 */
#include "guard/check.h"

#include "guard/guard.h"
#include "guard/quarantine.h"
#include "guard/stack_depot.h"
#include "slab/misuse.h"

/* Quarantine and shuffle need states too, because a resting object seems live to the slab. */
COLD static enum extension_wish check_wants(const struct cache_layout *layout)
{
    (void)layout;
    return extension_wanted_if(check_wanted || quarantine_limit || shuffle_wanted);
}

static size_t words_bytes(const struct slab *slab)
{
    return slab->capacity * sizeof(uint64_t);
}

static bool check_made(struct slab *slab)
{
    slab->side[CHECK_EXTENSION] = os_meta_alloc(words_bytes(slab));
    return slab->side[CHECK_EXTENSION] != NULL;
}

static void check_going(struct slab *slab)
{
    os_meta_free(slab->side[CHECK_EXTENSION], words_bytes(slab));
}

/* ---------------------------------------------------------------------------- changes of state */

static uint64_t word_after(uint64_t word, enum object_state to, uint32_t trace)
{
    uint64_t allocation = allocation_trace_of_word(word), release = release_trace_of_word(word);
    uint64_t deferred = word & WORD_DEFERRED;

    if (to == OBJECT_LIVE) {
        allocation = trace;
    } else if (state_of_word(word) == OBJECT_LIVE) {
        release = trace;
        deferred = to == OBJECT_LATENT ? WORD_DEFERRED : 0;
    }
    return release << (3 + TRACE_BITS) | allocation << 3 | deferred | (uint64_t)to;
}

void check_state_change(const struct slab *slab, const void *object, enum object_state from,
                        enum object_state to, const char *what)
{
    static const char *const names[] = {"free", "live", "deferred and not yet safe"};
    uint64_t *place = &object_words(slab)[slab_index(slab, object)], word = load_relaxed(place);
    bool by_caller =
        from == OBJECT_LIVE || to == OBJECT_LIVE; /* otherwise by the end of a grace period */
    uint32_t trace = by_caller && (check_wanted || guard_interval) ? stack_depot_here() : 0;

    while (state_of_word(word) == from)
        if (compare_exchange(place, &word, word_after(word, to, trace)))
            return;
    os_report_misuse("%s: %p of cache '%s' is already %s", what, object, slab->cache->name,
                     names[state_of_word(word)]);
    misuse_explain_and_abort(slab, object);
}

uint32_t check_trace(const struct prudence_cache *cache)
{
    return !cache || is_checked(cache) ? stack_depot_here() : 0;
}

void check_resizes(struct slab *slab, bool begins)
{
    static const char what[] = "prudence_realloc";

    if (!object_words(slab))
        return;
    if (begins)
        check_state_change(slab, slab->base, OBJECT_LIVE, OBJECT_FREE, what);
    else
        check_state_change(slab, slab->base, OBJECT_FREE, OBJECT_LIVE, what);
}

static void check_allocated(struct slab *slab, void *object, size_t size, bool zeroed)
{
    (void)size, (void)zeroed;
    check_state_change(slab, object, OBJECT_FREE, OBJECT_LIVE, "allocation");
}

static void check_freed(struct slab *slab, void *object, const char *what)
{
    check_state_change(slab, object, OBJECT_LIVE, OBJECT_FREE, what);
}

static void deferred(struct slab *slab, void *object, const char *what)
{
    (void)what;
    check_state_change(slab, object, OBJECT_LIVE, OBJECT_LATENT, "deferred free");
}

static bool check_safe(struct slab *slab, void *object)
{
    check_state_change(slab, object, OBJECT_LATENT, OBJECT_FREE, "merge");
    return true;
}

/* ------------------------------------------------------------------------------------- reports */

static bool check_live(const struct slab *slab, const void *object, const char *what)
{
    enum object_state state =
        state_of_word(load_relaxed(&object_words(slab)[slab_index(slab, object)]));

    if (state != OBJECT_LIVE)
        misuse_report_not_live(slab, object, state == OBJECT_LATENT, what);
    return true;
}

void check_print_word(uint64_t word)
{
    static const char *const titles[] = {
        [OBJECT_FREE] = "freed by:",
        [OBJECT_LIVE] = "its memory was last freed by:",
        [OBJECT_LATENT] = "",
        [WORD_DEFERRED + OBJECT_FREE] = "deferred, and safe now, by:",
        [WORD_DEFERRED + OBJECT_LIVE] = "its memory was last deferred by:",
        [WORD_DEFERRED + OBJECT_LATENT] = "deferred by:",
    };

    if (!check_wanted && !allocation_trace_of_word(word) && !release_trace_of_word(word)) {
        os_report("  with the option check=1 this report says who allocated and who freed it");
        return;
    }
    stack_depot_print("allocated by:", allocation_trace_of_word(word));
    if (state_of_word(word) != OBJECT_LIVE || release_trace_of_word(word))
        stack_depot_print(titles[word & (WORD_DEFERRED | 3)], release_trace_of_word(word));
}

/* Adds traces to a report. guard_report.c adds the traces of a guarded object, from the slot,
 * because the slab may be gone. */
static void check_explain(const struct slab *slab, const void *pointer)
{
    uint32_t here = stack_depot_here();

    if (slab && !object_words(slab))
        os_report("  the option check=1 tells who allocated and who freed it");
    if (here)
        stack_depot_print("called by:", here);
    if (slab && object_words(slab) && !slab->alone && slab_has(slab, pointer))
        check_print_word(load_relaxed(&object_words(slab)[slab_index(slab, pointer)]));
}

const struct slab_extension check_extension = {.wants = check_wants,
                                               .made = check_made,
                                               .going = check_going,
                                               .allocated = check_allocated,
                                               .freed = check_freed,
                                               .deferred = deferred,
                                               .safe = check_safe,
                                               .check_live = check_live,
                                               .explain = check_explain};
