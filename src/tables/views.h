/* SPDX-License-Identifier: MIT */
/*
 * Arrays of words that readers search while a larger or smaller array replaces them. Each structure
 * has two caches for arrays in its domain, so that a replaced array waits for the structure's
 * readers and counts as latent: `small` has the smallest arrays, and each array in `pages` has
 * separate pages. The *first* array, one of the smallest, lies in the structure's own memory, so
 * that a small structure needs no cache. It is used again when its readers have ended.
 *
 * A structure names an array and the size in one word, the *view*: the address and, in the lowest
 * bits, the order (the logarithm of the number of words). A reader takes both in one load, so they
 * always match.
 */
#ifndef TABLES_VIEWS_H
#define TABLES_VIEWS_H

#include <prudence/rcu.h>

#include "base/base.h"
#include "tables/own_cache.h"

#define VIEW_ORDER_MASK  ((uintptr_t)63)
#define VIEW_ORDER_SMALL 6u /* the smallest order */
#define VIEW_ORDER_PAGE  9u /* the next one */
#define VIEW_ORDER_MOST  40u
_Static_assert(VIEW_ORDER_MOST <= VIEW_ORDER_MASK, "a view has its order");

#define VIEW_FIRST_BYTES (sizeof(uintptr_t) << VIEW_ORDER_SMALL)

struct views {
    struct prudence_cache *small, *pages; /* made when they are needed (own_cache.h) */
    struct cache_owner owner;
    uintptr_t *first;     /* constant; NULL: there is none */
    uint32_t first_state; /* atomic */
    prudence_gp_t cookie; /* of the first array's readers, once it was replaced */
};

/* Fills *views, which is 0. `first` is the memory of the first array, aligned to 64 bytes, or NULL.
 * Returns false, with nothing made, if there is no memory. */
bool views_make(struct views *views, const char *name, struct prudence_domain *domain, void *first);

/*
 * Returns whether the public function of this name, called from `caller`, may destroy the
 * structure: 0; EDEADLK, with a report, inside a section; or EBUSY in a handler of pthread_atfork.
 * After a 0, and once no array remains, views_unmake waits for the deferred arrays and cannot fail.
 */
int views_may_end(const struct views *views, const char *what, void *caller);
void views_unmake(const struct views *views);

/* Returns the order of the smallest array with at least `words` words. */
unsigned views_order(uint64_t words);

/* Returns the view of a new array, or 0. *zeroed says whether the words are known to be 0. */
uintptr_t views_new(struct views *views, unsigned order, bool *zeroed);
void views_free(struct views *views, uintptr_t view);
void views_defer(struct views *views, uintptr_t view);

/* Returns the bytes of the array outside of the structure's own memory. */
size_t views_bytes(const struct views *views, uintptr_t view);

/*
 * An array that was replaced inside a section, where a deferral may not wait. While latent_limit
 * has no room for this array, the structure keeps it and replaces no other, until there is room or
 * the array's readers have ended. (Other threads may take the room between the check and the
 * deferral. That overruns the limit once, and no other array goes before there is room again.)
 */
struct views_left {
    uintptr_t view; /* 0: none */
    prudence_gp_t cookie;
};

struct views_left views_leave(const struct views *views, uintptr_t view);
bool views_may_defer(const struct views *views, const struct views_left *left);
bool views_is_unread(const struct views *views, const struct views_left *left);

uint64_t views_latent_bytes(const struct views *views);

/* Pushes a grace period on and frees the arrays whose readers have ended. Returns whether at least
 * `bytes` bytes of arrays still wait for readers. Called with no lock held. */
bool views_wait(const struct views *views, uint64_t bytes);

static inline unsigned view_order(uintptr_t view)
{
    return (unsigned)(view & VIEW_ORDER_MASK);
}

static inline uint64_t view_size(uintptr_t view)
{
    return UINT64_C(1) << view_order(view);
}

static inline size_t view_bytes(uintptr_t view)
{
    return sizeof(uintptr_t) << view_order(view);
}

static inline uintptr_t *view_words(uintptr_t view)
{
    return (uintptr_t *)(view & ~VIEW_ORDER_MASK);
}

#endif /* TABLES_VIEWS_H */
