/* SPDX-License-Identifier: MIT */
/*
 * Makes regions (regions.h) and allocates in them. refresh.c refreshes them.
 *
 * An allocation is a comparison and an addition, and the check that the thread may allocate. It may
 * if the handle is good, the region is the thread's, and the latest local date has not passed.
 * Everything else is on the slow path.
 */
#include "shortterm/regions.h"

#include "slab/cache.h"

static struct prudence_cache *small, *big; /* caches of pages */

/* ---------------------------------------------------------------------------------------- pages */

/* Creates a cache unless it exists. Called under heap_lock. */
static bool cache_start(struct prudence_cache **cache, const char *name, size_t bytes)
{
    const struct cache_layout layout = {.object_size = bytes, .alignment = CACHE_LINE};

    if (!*cache)
        store_release(cache, cache_create(name, &layout));
    return *cache != NULL;
}

static __attribute__((noinline, cold)) bool caches_start(void)
{
    bool started;

    os_lock_take(&heap_lock);
    started = cache_start(&small, "scm-regions", REGION_SMALL) &&
              cache_start(&big, "scm-regions-32k", REGION_BIG);
    os_lock_release(&heap_lock);
    return started;
}

static bool is_of_cache(const struct slab *slab)
{
    return slab->cache == load_acquire(&small) || slab->cache == load_acquire(&big);
}

/* Adds a page to the region. The first page stays the first. */
static void page_join(struct scm_thread *self, struct region *region, struct region_page *page)
{
    struct region_page *first = region->first;

    page->handle = region->handle;
    page->next = first ? first->next : NULL;
    if (first)
        first->next = page;
    if (region->pages < REGION_SMALLS)
        region->pages++;
    count_add(&self->counts.region_bytes, (int64_t)slab_object_bytes(slab_known(page)));
}

static char *page_begin(struct region_page *page)
{
    return (char *)(page + 1);
}

/* Allocates a separate block for an object that no page can hold. The block's expiry count marks it
 * as a region's, for region_holding. An alignment of more than a page makes it a large block, of
 * whatever size. */
static void *allocate_alone(struct scm_thread *self, struct region *region, size_t size)
{
    struct region_page *block;
    union expiry_count *counts;

    if (size > (size_t)PTRDIFF_MAX)
        return NULL;
    block = prudence_aligned_alloc(2 * os_page_size, size + sizeof *block);
    if (!block)
        return NULL;
    counts = expiry_counts_make(slab_known(block));
    if (!counts) {
        prudence_free(block);
        return NULL;
    }
    store_relaxed(&counts->word, (uint32_t)EXPIRY_COUNT_REGION << EXPIRY_COUNT_BITS);
    page_join(self, region, block);
    return page_begin(block);
}

/* Allocates from a new page. Later allocations use the page with more room, this one or the current
 * one. Allocating may run destructors of other caches' objects, which may allocate here. */
static void *allocate_in_new_page(struct scm_thread *self, struct region *region, size_t bytes)
{
    bool is_big = bytes > REGION_SMALL / 4 || region->pages >= REGION_SMALLS;
    size_t page_bytes = is_big ? REGION_BIG : REGION_SMALL;
    struct region_page *page = object_alloc(is_big ? big : small, page_bytes, "scm_region_alloc");
    char *object, *cursor, *end;

    if (!page)
        return NULL;
    page_join(self, region, page);
    object = page_begin(page);
    cursor = object + bytes;
    end = (char *)page + page_bytes;
    if (end - cursor > region->end - region->cursor) {
        region->cursor = cursor;
        region->end = end;
    }
    return object;
}

/* ------------------------------------------------------------------------------ what is refused */

static int region_refuse(const char *what, const struct scm_region *handle, const char *why,
                         int error)
{
    os_report("%s: region %p %s", what, (const void *)handle, why);
    return error;
}

/* Returns 0 if the handle is good, otherwise an error number. ESTALE, which is not reported, means
 * that the region has ended. Another thread may end the region at any time, so callers decide by
 * the passed `owner`. */
static int region_find(struct scm_region *handle, const char *what, struct region **found,
                       uint64_t *owner)
{
    struct region *region = region_at(handle);
    uint64_t turn = handle_turn((uint64_t)(uintptr_t)handle);

    if (!handle) {
        os_report("%s: the region is NULL", what);
        return EINVAL;
    }
    if (!region || !turn || turn > handle_turn(load_relaxed(&region->handle)))
        return region_refuse(what, handle, "is not one that scm_region_create returned", EINVAL);
    *owner = region_owner(region, handle);
    if (!*owner)
        return ESTALE;
    if (unlikely(region_is_abandoned(scm_self, *owner)))
        return region_refuse(what, handle, "belongs to a thread that fork did not copy", EPERM);
    *found = region;
    return 0;
}

static int refuse_ended(const char *what, const struct scm_region *handle)
{
    return region_refuse(
        what, handle, "has ended: all its dates have expired, or it was unregistered without dates",
        EPERM);
}

int region_check(struct scm_region *handle, const char *what, struct region **region)
{
    uint64_t owner;
    int error = region_find(handle, what, region, &owner);

    return error == ESTALE ? refuse_ended(what, handle) : error;
}

/* Works like region_find. The region must be the thread's, too. */
static int region_find_own(struct scm_region *handle, const char *what, struct region **found,
                           uint64_t *owner)
{
    int error = region_find(handle, what, found, owner);

    if (!error && (*owner & ~REGION_CLOSED) != scm_self->number)
        return region_refuse(what, handle,
                             "belongs to another thread, or to this one before it unregistered",
                             EPERM);
    return error;
}

/*
 * Returns whether the region has certainly expired, after the owner's dates by the local clock
 * have. Some of these may not have been processed yet. If no other date was ever given, the region
 * has expired if any date remains. Otherwise this is known only if the one remaining date is the
 * stamp's. It does not matter which owner the clock had in stamps when that date was given, because
 * owners change with each epoch, but the life does not.
 */
static bool has_expired(const struct scm_thread *self, const struct region *region)
{
    uint64_t both = load_relaxed(&expiry_count_of(region->first)->both);
    uint32_t dates = expiry_count_dates((uint32_t)both), stamp = (uint32_t)(both >> 32);

    if (!dates || !load_relaxed(&region->others))
        return dates > 0;
    return dates == 1 && stamp && load_relaxed(&owner_of(stamp)->life) == self->local.life;
}

/* Return whether the owner's dates by the local clock are over, and whether all of those have been
 * processed as well. */
static bool local_dates_expired(const struct scm_thread *self, const struct region *region)
{
    return (int32_t)(region->good_until - (uint32_t)self->local.now) < 0;
}

static bool local_dates_processed(const struct scm_thread *self)
{
    return !self->expired.last;
}

/* Returns 0 if the thread may allocate there now, otherwise an error number. */
static int check_allocation(struct scm_thread *self, struct scm_region *handle,
                            struct region **found)
{
    static const char what[] = "scm_region_alloc";
    uint64_t owner;
    int error = region_find_own(handle, what, found, &owner);
    struct region *region;

    if (error)
        return error == ESTALE ? refuse_ended(what, handle) : error;
    region = *found;
    if (owner & REGION_CLOSED)
        return region_refuse(what, handle, "was unregistered, so nothing can be allocated in it",
                             EPERM);
    if (!local_dates_expired(self, region))
        return 0;
    if (has_expired(self, region))
        return region_refuse(what, handle, "has expired", EPERM);
    if (local_dates_processed(self)) /* until then, each call checks again */
        region->good_until = (uint32_t)self->local.now + REGION_FOR_EVER;
    return 0;
}

/* ----------------------------------------------------------------------------------- allocating */

static void *region_allocate(struct scm_thread *self, struct region *region, size_t size)
{
    size_t bytes = round_up(max_size(size, 1), REGION_ALIGNMENT);
    char *object = region->cursor;

    if (size > REGION_BIG - sizeof(struct region_page))
        return allocate_alone(self, region, size);
    if (bytes > (size_t)(region->end - object))
        return allocate_in_new_page(self, region, bytes);
    region->cursor += bytes;
    return object;
}

static void *allocate_checked(struct scm_thread *self, struct scm_region *handle, size_t size)
{
    struct region *region;
    int error = check_allocation(self, handle, &region);
    void *object = error ? NULL : region_allocate(self, region, size);

    if (!object)
        errno = error ? error : ENOMEM;
    return object;
}

/* First frees a few pages of ended regions, because such pages are wanted now. */
static __attribute__((noinline)) void *allocate_slow(struct scm_region *handle, size_t size)
{
    if (scm_self)
        collect_some(scm_self);
    if (scm_self) /* test again; a finalizer may have changed it */
        return allocate_checked(scm_self, handle, size);
    errno = scm_thread_refuse_absent("scm_region_alloc");
    return NULL;
}

/* A size of 0 wraps and takes the slow path. */
void *scm_region_alloc(struct scm_region *handle, size_t size)
{
    const struct scm_thread *self = scm_self;
    struct region *region = region_at(handle);
    char *object;

    if (unlikely(!self) || unlikely(!region) || unlikely(!handle_is(region, handle)) ||
        unlikely(load_relaxed(&region->owner) != self->number))
        return allocate_slow(handle, size);
    object = region->cursor;
    if (unlikely(size - 1 >= (size_t)(region->end - object)) ||
        unlikely(local_dates_expired(self, region)))
        return allocate_slow(handle, size);
    region->cursor = object + round_up(size, REGION_ALIGNMENT);
    return object;
}

/* --------------------------------------------------------------------------------------- making */

/* Allocates the first page, with the word that ends the region. Returns NULL if there is no
 * memory. */
static struct region_page *first_page(void)
{
    struct region_page *page;
    struct slab *slab;

    if (unlikely(!load_acquire(&big)) && !caches_start())
        return NULL;
    page = object_alloc(small, REGION_SMALL, "scm_region_create");
    if (!page)
        return NULL;
    slab = slab_known(page);
    if (!expiry_counts_make(slab)) {
        prudence_cache_free(small, page);
        return NULL;
    }
    store_relaxed(&expiry_count_of(page)->word, (uint32_t)EXPIRY_COUNT_REGION << EXPIRY_COUNT_BITS);
    return page;
}

static void region_begin(struct scm_thread *self, struct region *region, struct region_page *page)
{
    region->pages = 0;
    store_relaxed(&region->others, false);
    store_release(&region->dated, false); /* after a former region's end (region_close) */
    region->good_until = (uint32_t)self->local.now + REGION_FOR_EVER;
    region->cursor = page_begin(page);
    region->end = (char *)page + REGION_SMALL;
    store_relaxed(&region->handle, region->handle + handle_of(1, 0));
    page_join(self, region, page);
    store_relaxed(&region->first, page);
    store_release(&region->owner, self->number); /* before this no thread finds the region */
    count_add(&self->counts.regions, 1);
}

struct scm_region *scm_region_create(void)
{
    struct scm_thread *self = scm_thread_enter_to_stay("scm_region_create");
    struct region *region;
    struct region_page *page;

    if (!self)
        return NULL;
    collect_some(self);
    self = scm_thread_enter_to_stay("scm_region_create"); /* a finalizer may have changed it */
    region = self ? region_place_take(self) : NULL;
    page = region ? first_page() : NULL;
    if (!page) {
        if (region)
            region_place_give_back(self, region);
        errno = self ? ENOMEM : errno;
        return NULL;
    }
    region_begin(self, region, page);
    return (struct scm_region *)(uintptr_t)region->handle;
}

/* ----------------------------------------------------------------------------------------- ends */

/*
 * Ends a region that never had a date. Otherwise forbids allocation only, because a thread may be
 * ending the last date now, and that thread alone ends the region. Once it has, the exchange fails:
 * the owner is 0, or the thread that uses the place again, which has another number. After a
 * success, `dated` was this region's: acquire orders the load before the exchange, and a thread
 * that clears `dated` for the next region has stored another owner before.
 */
static void region_close(struct scm_thread *self, struct region *region, uint64_t owner)
{
    bool dated = load_acquire(&region->dated);

    if (compare_exchange(&region->owner, &owner, owner | REGION_CLOSED) && !dated)
        region_end(self, region);
}

int scm_region_unregister(struct scm_region *handle)
{
    static const char what[] = "scm_region_unregister";
    struct scm_thread *self = scm_self;
    struct region *region;
    uint64_t owner;
    bool waiting;
    int error;

    if (!self)
        return scm_thread_refuse_absent(what);
    error = region_find_own(handle, what, &region, &owner);
    if (error)
        return error == ESTALE ? 0 : error;
    waiting = something_waits(self);
    region_close(self, region, owner);
    collect_after_tick(self, waiting);
    return 0;
}

/* ---------------------------------------------------------------------- from objects to regions */

/* Returns the region page that contains an address, or NULL if there is none. */
static const struct region_page *page_holding(const void *address)
{
    struct slab *slab = os_page_owner(address);
    const struct region_page *page;

    if (!slab || (const char *)address < slab->base)
        return NULL;
    if (is_large(slab)) {
        const union expiry_count *counts = expiry_counts_in(slab);

        return counts && expiry_count_finalizer(load_relaxed(&counts->word)) == EXPIRY_COUNT_REGION
                   ? (const void *)slab->base
                   : NULL;
    }
    if (!is_of_cache(slab) ||
        slab_offset(slab, address) >= slab->capacity * slab->cache->body->stride)
        return NULL;
    page = slab_object(slab, slab_index(slab, address), slab->cache->body->stride);
    return page;
}

/* Reads a page's handle without AddressSanitizer, because the page may be of an ended region and
 * free. */
__attribute__((no_sanitize("address"))) static const struct scm_region *
handle_of_page(const struct region_page *page)
{
    return (const void *)(uintptr_t)((const volatile struct region_page *)page)->handle;
}

/* Returns the region of an object that is no object of the allocator, or NULL if no region has it.
 * Reports an object of an ended region as misuse. */
struct region *region_holding(const void *object, const char *what)
{
    const struct region_page *page = page_holding(object);
    const struct scm_region *handle = page ? handle_of_page(page) : NULL;
    struct region *region = page ? region_at(handle) : NULL;

    if (!page)
        return NULL;
    if (region && region_owner(region, handle))
        return region;
    os_report_misuse("%s: %p is an object of a region that has ended (%p)", what, object,
                     (const void *)handle);
    os_abort();
}

/* Returns the program's name for the owner of dates: a region's handle for a page of a region,
 * otherwise the object. */
const void *region_or_object(const void *object)
{
    const struct region_page *page = page_holding(object);

    return page ? handle_of_page(page) : object;
}
