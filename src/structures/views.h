/* SPDX-License-Identifier: MIT */
/*
 * Arrays of words that readers search while a larger or smaller one takes their place. Each structure has two caches
 * for them, in its domain, so that an array that was replaced waits for the structure's readers, and counts as latent:
 * `small` has the smallest arrays, and in `pages` each array has pages of its own.
 *
 * A structure names its array and the array's size in one word, its *view*: the address, and in the lowest bits the
 * order (the logarithm of the number of words). So a reader takes both in one load, and they always fit each other.
 */
#ifndef STRUCTURES_VIEWS_H
#define STRUCTURES_VIEWS_H

#include <prudence/rcu.h>

#include "base/base.h"

struct prudence_cache;

#define VIEW_ORDER_MASK  ((uintptr_t)63)
#define VIEW_ORDER_SMALL 6u /* there is no smaller one, ... */
#define VIEW_ORDER_PAGE  9u /* ... and none between this one and it */
#define VIEW_ORDER_MOST  40u

struct views {
    struct prudence_cache *small, *pages;
};

/* False, and nothing is made, where there is no memory for it. */
bool views_make(struct views *views, const char *name, struct prudence_domain *domain);

/* Whether the structure may be destroyed here, on behalf of `what`, called from `caller`: 0; EDEADLK, which is reported:
 * inside a section; EBUSY: in a handler of pthread_atfork. Then, with no array left, views_unmake waits for those that were
 * deferred, and finds no other error. */
int views_may_end(const struct views *views, const char *what, void *caller);
void views_unmake(struct views *views);

/* An array of `words` words at least: its order. */
unsigned views_order(uint64_t words);

/* A view of a new array; 0: there is no memory. *zeroed: its words are known to be 0. */
uintptr_t views_new(const struct views *views, unsigned order, bool *zeroed);
void views_free(const struct views *views, uintptr_t view);
void views_defer(const struct views *views, uintptr_t view);

/*
 * An array that was replaced where a deferral may not wait, inside a section. While latent_limit has no room for it, its
 * structure keeps it, and replaces no other one: until there is room, or its readers have left. (Between a look and the
 * deferral others may take the room: then that is one overrun, and no other array goes before there is room again.)
 */
struct views_left {
    uintptr_t view; /* 0: none */
    prudence_gp_t cookie;
};

struct views_left views_leave(const struct views *views, uintptr_t view);
bool views_may_defer(const struct views_left *left);
bool views_is_unread(const struct views *views, const struct views_left *left);

uint64_t views_latent_bytes(const struct views *views);

/* Whether so many bytes of arrays wait for readers, after a grace period was pushed on, and those have been freed that do not
 * wait any more. Not while a lock is held. */
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

#endif /* STRUCTURES_VIEWS_H */
