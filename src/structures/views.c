/* SPDX-License-Identifier: MIT */
/* Arrays of words that are replaced while readers search them (views.h). */
#include "structures/views.h"

#include <prudence/stats.h>
#include <prudence/structure.h>

#include "os/os.h"
#include "structures/waiting.h"

bool views_make(struct views *views, const char *name, struct prudence_domain *domain)
{
    const struct prudence_cache_attr attr = {.size = sizeof attr,
                                             .alignment = VIEW_ORDER_MASK + 1,
                                             .flags = PRUDENCE_CACHE_HIDDEN_POINTERS,
                                             .domain = domain};

    views->domain = domain ? domain : prudence_default_domain();
    views->small = prudence_cache_create(name, sizeof(uintptr_t) << VIEW_ORDER_SMALL, &attr);
    views->pages = views->small ? prudence_cache_create_blocks(name, domain) : NULL;
    if (views->pages)
        return true;
    if (views->small)
        prudence_cache_destroy(views->small);
    return false;
}

int views_may_end(const struct views *views, const char *what, void *caller)
{
    struct prudence_cache_stats names;

    prudence_cache_stats(views->small, &names);
    return waiting_error(what, "of table", names.name, views->domain, caller);
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
        array = prudence_cache_alloc_block(views->pages, sizeof(uintptr_t) << order, zeroed);
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
    return (struct views_left){.view = view, .cookie = prudence_domain_start_poll(views->domain)};
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
    return prudence_latent_fits(room_of(left->view));
}

bool views_is_unread(const struct views *views, const struct views_left *left)
{
    return prudence_domain_poll_state(views->domain, left->cookie);
}

uint64_t views_latent_bytes(const struct views *views)
{
    struct prudence_cache_stats small, pages;

    prudence_cache_stats(views->small, &small);
    prudence_cache_stats(views->pages, &pages);
    return small.bytes_latent + pages.bytes_latent;
}

bool views_wait(const struct views *views, uint64_t bytes)
{
    struct prudence_domain *domain = views->domain;

    if (views_latent_bytes(views) < bytes)
        return false;
    prudence_domain_poll_state(domain, prudence_domain_start_poll(domain));
    prudence_cache_shrink(views->small);
    prudence_cache_shrink(views->pages);
    return views_latent_bytes(views) >= bytes;
}
