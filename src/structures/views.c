/* SPDX-License-Identifier: MIT */
/* Arrays of words that are replaced while readers search them (views.h). */
#include "structures/views.h"

#include <prudence/prudence.h>
#include <prudence/rcu.h>

#include "heap/heap.h"
#include "slab/reclaim/limit.h"
#include "slab/stats.h"
#include "structures/waiting.h"

bool views_make(struct views *views, const char *name, struct prudence_domain *domain)
{
    const struct prudence_cache_attr attr = {
        .size = sizeof attr, .alignment = VIEW_ORDER_MASK + 1, .domain = domain};

    views->small = cache_create_own(name, sizeof(uintptr_t) << VIEW_ORDER_SMALL, &attr);
    views->pages = views->small ? large_cache_create(name, domain) : NULL;
    if (views->pages)
        return true;
    if (views->small)
        prudence_cache_destroy(views->small);
    return false;
}

int views_may_end(const struct views *views, const char *what, void *caller)
{
    return waiting_error(what, "of table", views->small->name, views->small->domain, caller);
}

void views_unmake(struct views *views)
{
    prudence_cache_destroy(views->pages);
    prudence_cache_destroy(views->small);
}

unsigned views_order(uint64_t words)
{
    unsigned order = words > 1 ? 64 - (unsigned)__builtin_clzll(words - 1) : 0;

    if (order <= VIEW_ORDER_SMALL)
        return VIEW_ORDER_SMALL;
    return order < VIEW_ORDER_PAGE ? VIEW_ORDER_PAGE : order;
}

uintptr_t views_new(const struct views *views, unsigned order, bool *zeroed)
{
    void *array;

    if (order > VIEW_ORDER_MOST)
        return 0;
    if (order == VIEW_ORDER_SMALL) {
        *zeroed = false;
        array = prudence_cache_alloc(views->small);
    } else {
        array = large_cache_alloc(views->pages, sizeof(uintptr_t) << order, OS_PAGE_SIZE, zeroed);
    }
    return array ? (uintptr_t)array | order : 0;
}

static struct prudence_cache *cache_of(const struct views *views, uintptr_t view)
{
    return view_order(view) == VIEW_ORDER_SMALL ? views->small : views->pages;
}

void views_free(const struct views *views, uintptr_t view)
{
    prudence_cache_free(cache_of(views, view), view_words(view));
}

void views_defer(const struct views *views, uintptr_t view)
{
    prudence_cache_free_deferred(cache_of(views, view), view_words(view));
}

struct views_left views_leave(const struct views *views, uintptr_t view)
{
    return (struct views_left){.view = view,
                               .cookie = prudence_domain_start_poll(views->small->domain)};
}

/* Returns the bytes that a deferral adds to the latent ones: whole pages of the system, unless the
 * array is small. */
static size_t room_of(uintptr_t view)
{
    return view_order(view) == VIEW_ORDER_SMALL ? view_bytes(view)
                                                : round_up(view_bytes(view), os_page_size);
}

bool views_may_defer(const struct views_left *left)
{
    return limit_fits(room_of(left->view), true);
}

bool views_is_unread(const struct views *views, const struct views_left *left)
{
    return prudence_domain_poll_state(views->small->domain, left->cookie);
}

uint64_t views_latent_bytes(const struct views *views)
{
    struct cache_sums small, pages;

    slab_stats_sum(views->small, &small);
    slab_stats_sum(views->pages, &pages);
    return small.latent_bytes + pages.latent_bytes;
}

bool views_wait(const struct views *views, uint64_t bytes)
{
    struct prudence_domain *domain = views->small->domain;

    if (views_latent_bytes(views) < bytes)
        return false;
    prudence_domain_poll_state(domain, prudence_domain_start_poll(domain));
    prudence_cache_shrink(views->small);
    prudence_cache_shrink(views->pages);
    return views_latent_bytes(views) >= bytes;
}
