/* SPDX-License-Identifier: MIT */
/* Arrays of words that are replaced while readers search them (views.h). */
#include "tables/views.h"

#include <prudence/stats.h>
#include <prudence/structure.h>

#include "os/os.h"
#include "tables/waiting.h"

enum { FIRST_FREE, FIRST_USED, FIRST_LEFT, FIRST_LOOKED_AT };

static struct prudence_cache *views_small(struct views *views)
{
    return own_cache(&views->small, &views->owner, VIEW_FIRST_BYTES, VIEW_ORDER_MASK + 1);
}

static struct prudence_cache *views_pages(struct views *views)
{
    struct prudence_cache *cache = load_acquire(&views->pages);

    return likely(cache != NULL) ? cache : own_cache_make_blocks(&views->pages, &views->owner);
}

bool views_make(struct views *views, const char *name, struct prudence_domain *domain, void *first)
{
    own_cache_init(&views->owner, name, domain);
    views->first = first;
    return !own_cache_is_needed(&views->owner) || views_small(views);
}

int views_may_end(const struct views *views, const char *what, void *caller)
{
    return waiting_error(what, "of table", views->owner.name, views->owner.domain, caller);
}

void views_unmake(const struct views *views)
{
    own_cache_destroy(views->pages, &views->owner);
    own_cache_destroy(views->small, &views->owner);
}

unsigned views_order(uint64_t words)
{
    unsigned order = words > 1 ? 64 - (unsigned)__builtin_clzll(words - 1) : 0;

    if (order <= VIEW_ORDER_SMALL)
        return VIEW_ORDER_SMALL;
    return order < VIEW_ORDER_PAGE ? VIEW_ORDER_PAGE : order;
}

static bool is_first(const struct views *views, uintptr_t view)
{
    return view_words(view) == views->first;
}

/*
 * Takes the first array if no thread has it, and no reader. Acquire: the readers' section ended
 * before the state was FIRST_FREE, or before the cookie's grace period did.
 */
static bool take_first(struct views *views)
{
    uint32_t state = load_acquire(&views->first_state);

    if (!views->first || (state != FIRST_FREE && state != FIRST_LEFT) ||
        !compare_exchange(&views->first_state, &state, FIRST_LOOKED_AT))
        return false;
    if (state == FIRST_FREE || prudence_domain_poll_state(views->owner.domain, views->cookie))
        state = FIRST_USED;
    store_release(&views->first_state, state);
    return state == FIRST_USED;
}

static void *array_new(struct views *views, unsigned order, bool *zeroed)
{
    struct prudence_cache *cache;

    *zeroed = false;
    if (order != VIEW_ORDER_SMALL) {
        cache = views_pages(views);
        return cache ? prudence_cache_alloc_block(cache, sizeof(uintptr_t) << order, zeroed) : NULL;
    }
    if (take_first(views))
        return views->first;
    cache = views_small(views);
    return cache ? prudence_cache_alloc(cache) : NULL;
}

uintptr_t views_new(struct views *views, unsigned order, bool *zeroed)
{
    void *array = order <= VIEW_ORDER_MOST ? array_new(views, order, zeroed) : NULL;

    return array ? (uintptr_t)array | order : 0;
}

static struct prudence_cache *cache_of(const struct views *views, uintptr_t view)
{
    return view_order(view) == VIEW_ORDER_SMALL ? views->small : views->pages;
}

void views_free(struct views *views, uintptr_t view)
{
    if (is_first(views, view))
        store_release(&views->first_state, (uint32_t)FIRST_FREE);
    else
        prudence_cache_free(cache_of(views, view), view_words(view));
}

void views_defer(struct views *views, uintptr_t view)
{
    if (is_first(views, view)) {
        views->cookie = prudence_domain_start_poll(views->owner.domain);
        store_release(&views->first_state, (uint32_t)FIRST_LEFT);
    } else {
        prudence_cache_free_deferred(cache_of(views, view), view_words(view));
    }
}

size_t views_bytes(const struct views *views, uintptr_t view)
{
    return is_first(views, view) ? 0 : view_bytes(view);
}

struct views_left views_leave(const struct views *views, uintptr_t view)
{
    return (struct views_left){.view = view,
                               .cookie = prudence_domain_start_poll(views->owner.domain)};
}

/* Returns the bytes that a deferral adds to the latent ones: whole pages of the system, unless the
 * array is small. */
static size_t room_of(uintptr_t view)
{
    return view_order(view) == VIEW_ORDER_SMALL ? view_bytes(view)
                                                : round_up(view_bytes(view), os_page_size);
}

bool views_may_defer(const struct views *views, const struct views_left *left)
{
    return is_first(views, left->view) || prudence_latent_fits(room_of(left->view));
}

bool views_is_unread(const struct views *views, const struct views_left *left)
{
    return prudence_domain_poll_state(views->owner.domain, left->cookie);
}

uint64_t views_latent_bytes(const struct views *views)
{
    struct prudence_cache_stats small, pages;

    own_cache_stats(&views->small, &small);
    own_cache_stats(&views->pages, &pages);
    return small.bytes_latent + pages.bytes_latent;
}

bool views_wait(const struct views *views, uint64_t bytes)
{
    struct prudence_domain *domain = views->owner.domain;

    if (views_latent_bytes(views) < bytes)
        return false;
    prudence_domain_poll_state(domain, prudence_domain_start_poll(domain));
    own_cache_shrink(&views->small);
    own_cache_shrink(&views->pages);
    return views_latent_bytes(views) >= bytes;
}
