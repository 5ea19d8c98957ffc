/* SPDX-License-Identifier: MIT */
/* Caches of equal objects: the functions of <prudence/prudence.h> that take a cache. */
#include <errno.h>

#include <prudence/prudence.h>
#include <prudence/structure.h>

#include "gp/user/domain.h"
#include "gp/user/wait_request.h"
#include "heap/cache_life.h"
#include "heap/caches.h"
#include "heap/cold.h"
#include "heap/object.h"
#include "heap/upcalls.h"
#include "slab/cache.h"
#include "slab/gate.h"
#include "slab/misuse.h"
#include "slab/reclaim/drain.h"
#include "slab/reclaim/hollow.h"
#include "slab/reclaim/limit.h"
#include "slab/reclaim/wait.h"
#include "valid_attr.h"
#include "valid_name.h"

_Static_assert(PRUDENCE_CACHE_TYPESAFE == CACHE_TYPESAFE, "one flag, two names");
_Static_assert(PRUDENCE_CACHE_DESTRUCT_SOON == CACHE_DESTRUCT_SOON, "one flag, two names");
_Static_assert(PRUDENCE_CACHE_HIDDEN_POINTERS == CACHE_OWN, "one flag, two names");

#define FLAGS                                                                                      \
    ((unsigned)PRUDENCE_CACHE_TYPESAFE | PRUDENCE_CACHE_DESTRUCT_SOON |                            \
     PRUDENCE_CACHE_HIDDEN_POINTERS)

#define SIZE_BEFORE_DESTRUCTOR offsetof(struct prudence_cache_attr, destructor)

/* Takes the program's attributes over to `attr`. Reports the first that is invalid. */
static bool attributes_are_valid(const char *name, const struct prudence_cache_attr *given,
                                 struct prudence_cache_attr *attr)
{
    static const char what[] = "prudence_cache_create";
    const struct attr_names names = {what, "cache", name, "attr", "prudence_cache_attr"};

    if (!given)
        return true;
    if (!attr_take(&names, given, attr, sizeof *attr, SIZE_BEFORE_DESTRUCTOR))
        return false;
    if (attr->flags & ~FLAGS)
        os_report("%s: cache '%s': attr->flags has unknown bits (0x%x)", what, name,
                  attr->flags & ~FLAGS);
    else if (attr->reserved)
        os_report("%s: cache '%s': attr->reserved is %u, not 0", what, name, attr->reserved);
    else if (attr->flags & PRUDENCE_CACHE_DESTRUCT_SOON && !attr->destructor)
        os_report("%s: cache '%s': PRUDENCE_CACHE_DESTRUCT_SOON needs a destructor", what, name);
    else if (attr->destructor && !heap_upcalls.barrier)
        os_report("%s: cache '%s': this library has no destructors (it is prudence-core)", what,
                  name);
    else if (attr->alignment & (attr->alignment - 1) || attr->alignment > OS_PAGE_SIZE)
        os_report("%s: cache '%s': attr->alignment is %zu, not a power of two up to %zu", what,
                  name, attr->alignment, (size_t)OS_PAGE_SIZE);
    else
        return true;
    return false;
}

/* Reports the first argument that is invalid. */
static bool arguments_are_valid(const char *name, size_t object_size,
                                const struct prudence_cache_attr *given,
                                struct prudence_cache_attr *attr)
{
    if (!name_is_valid("prudence_cache_create", name))
        return false;
    if (!object_size || object_size > OBJECT_SIZE_MAX) {
        os_report("prudence_cache_create: cache '%s': the object size is %zu, not 1 to %zu", name,
                  object_size, OBJECT_SIZE_MAX);
        return false;
    }
    return attributes_are_valid(name, given, attr);
}

struct prudence_cache *caches_make(struct prudence_cache **place, const char *name,
                                   struct cache_layout *layout)
{
    struct prudence_cache *cache;

    os_lock_take(&heap_lock);
    cache = *place;
    if (!cache) {
        layout->common = cold_common_for(layout);
        cache = cold_give_structure(layout) ? cache_create(name, layout) : NULL;
        if (cache)
            cold_note_made();
        else
            cold_take_back(layout);
        store_release(place, cache);
    }
    os_lock_release(&heap_lock);
    return cache;
}

/* Makes a cache on behalf of the public function `what`. */
static struct prudence_cache *create_cache(const char *what, const char *name,
                                           struct cache_layout *layout)
{
    struct prudence_cache *cache = NULL;

    process_start();
    if (process_starting) {
        os_report(
            "%s: cache '%s': the library is still starting; a function that its start calls cannot "
            "create caches",
            what, name);
        errno = EAGAIN;
        return NULL;
    }
    if (!caches_make(&cache, name, layout))
        errno = ENOMEM;
    return cache;
}

struct prudence_cache *prudence_cache_create(const char *name, size_t object_size,
                                             const struct prudence_cache_attr *given)
{
    struct cache_layout layout = {.object_size = object_size, .named = true};
    struct prudence_cache_attr attr = {.size = sizeof attr};

    if (!arguments_are_valid(name, object_size, given, &attr)) {
        errno = EINVAL;
        return NULL;
    }
    layout.alignment = attr.alignment;
    layout.flags = narrow(uint16_t, attr.flags);
    layout.constructor = attr.constructor;
    layout.destructor = attr.destructor;
    layout.context = attr.context;
    layout.domain = attr.domain;
    layout.object_cache_bytes = attr.object_cache_bytes;
    if (attr.domain)
        gp_domain_check(attr.domain, "prudence_cache_create", __builtin_return_address(0));
    return create_cache("prudence_cache_create", name, &layout);
}

struct prudence_cache *prudence_cache_create_blocks(const char *name,
                                                    struct prudence_domain *domain)
{
    static const char what[] = "prudence_cache_create_blocks";
    struct cache_layout layout = {
        .object_size = OS_PAGE_SIZE, .no_cpu_caches = true, .domain = domain};

    if (!name_is_valid(what, name)) {
        errno = EINVAL;
        return NULL;
    }
    if (domain)
        gp_domain_check(domain, what, __builtin_return_address(0));
    return create_cache(what, name, &layout);
}

bool prudence_latent_fits(size_t bytes)
{
    process_start();
    return !limit_never_fits(bytes) && limit_fits(bytes, true);
}

FAST_ENTRY void *prudence_cache_alloc(struct prudence_cache *cache)
{
    return object_alloc(cache, 0, "prudence_cache_alloc");
}

FAST_ENTRY void prudence_cache_free(struct prudence_cache *cache, void *object)
{
    object_free(slab_of_cache(cache, object), cache, true, object, "prudence_cache_free");
}

FAST_ENTRY void prudence_cache_free_deferred(struct prudence_cache *cache, void *object)
{
    object_free_deferred(slab_of_cache(cache, object), cache, true, object,
                         "prudence_cache_free_deferred");
}

void *prudence_cache_replace(struct prudence_cache *cache, void *old)
{
    return object_replace(cache, old, "prudence_cache_replace");
}

static size_t alloc_bulk(struct prudence_cache *cache, size_t count, void **objects,
                         const char *what)
{
    size_t done;

    if (unlikely(!load_relaxed(&cache->percpu))) {
        object_refuse_block(cache, what);
        return 0;
    }
    done = gate_alloc_bulk(cache, count, objects, OS_ALLOC_DEFAULT);
    if (done < count)
        errno = ENOMEM;
    return done;
}

static void free_deferred_bulk(struct prudence_cache *cache, size_t count, void **objects,
                               const char *what)
{
    for (size_t i = 0; i < count; i++)
        object_free_deferred(slab_of_cache(cache, objects[i]), cache, true, objects[i], what);
}

size_t prudence_cache_alloc_bulk(struct prudence_cache *cache, size_t count, void **objects)
{
    cache_require(cache, "prudence_cache_alloc_bulk");
    return alloc_bulk(cache, count, objects, "prudence_cache_alloc_bulk");
}

void prudence_cache_free_bulk(struct prudence_cache *cache, size_t count, void **objects)
{
    for (size_t i = 0; i < count; i++)
        object_free(slab_of_cache(cache, objects[i]), cache, true, objects[i],
                    "prudence_cache_free_bulk");
}

void prudence_cache_free_deferred_bulk(struct prudence_cache *cache, size_t count, void **objects)
{
    free_deferred_bulk(cache, count, objects, "prudence_cache_free_deferred_bulk");
}

/* The first of the objects that were deferred, and a bit for the address of each. */
#define OLDS 16

struct olds {
    uint64_t bits;
    size_t count;
    const void *objects[OLDS];
};

static uint64_t old_bit(const void *object)
{
    return UINT64_C(1) << ((uintptr_t)object * UINT64_C(0x9e3779b97f4a7c15) >> 58);
}

static void olds_note(struct olds *olds, void *const *objects, size_t count)
{
    olds->bits = 0;
    olds->count = min_size(count, OLDS);
    for (size_t i = 0; i < olds->count; i++) {
        olds->objects[i] = objects[i];
        olds->bits |= old_bit(objects[i]);
    }
}

static bool olds_have(const struct olds *olds, const void *object)
{
    if (likely(!(olds->bits & old_bit(object))))
        return false;
    for (size_t i = 0; i < olds->count; i++)
        if (olds->objects[i] == object)
            return true;
    return false;
}

/* Checks the objects that came back. Both copies of one object may be among them. */
static void check_returns(struct prudence_cache *cache, const struct olds *olds, size_t count,
                          void *const *objects)
{
    static const char what[] = "prudence_cache_replace_bulk";

    for (size_t i = 0; i < count; i++) {
        if (!olds_have(olds, objects[i]))
            continue;
        object_check_return(cache, objects[i], what);
        for (size_t j = 0; j < i; j++)
            if (unlikely(objects[j] == objects[i]))
                misuse_report_double(slab_known(objects[i]), objects[i], false, what);
    }
}

size_t prudence_cache_replace_bulk(struct prudence_cache *cache, size_t count, void **objects)
{
    struct olds olds;
    size_t done;

    cache_require(cache, "prudence_cache_replace_bulk");
    olds_note(&olds, objects, count);
    free_deferred_bulk(cache, count, objects, "prudence_cache_replace_bulk");
    done = alloc_bulk(cache, count, objects, "prudence_cache_replace_bulk");
    check_returns(cache, &olds, done, objects);
    for (size_t i = done; i < count; i++)
        objects[i] = NULL;
    return done;
}

/*
 * The objects deferred last have no cookie yet; they are in open batches and in `next` of latent
 * slabs. Shrinking takes their cookies, so these are newer than a grace period that the caller has
 * waited for. Pushing the grace periods of the new cookies ends them at once if no reader is
 * inside. Push two times, because `next` gets a cookie only when the objects before it are merged.
 * Drive twice each time, because the current grace period may have to end first. Do so beside
 * another thread, too, because that may have begun too early.
 */
#define PUSHES 2

static void push_grace_periods(struct prudence_domain *domain)
{
    for (unsigned i = 0; i < 2; i++) {
        gp_request(domain, gp_snapshot(domain));
        gp_drive(domain);
    }
}

static size_t shrink_until_merged(struct prudence_cache *cache)
{
    size_t bytes = drain_fully(cache);

    for (unsigned i = 0; i < PUSHES && drain_leaves_latent(cache); i++) {
        push_grace_periods(cache->domain);
        bytes += drain_fully(cache);
    }
    return bytes;
}

static void shrink_all_until_merged(void)
{
    drain_all_caches();
    for (unsigned i = 0; i < PUSHES && limit_used(); i++) {
        wait_drive_all();
        wait_drive_all();
        drain_all_caches();
    }
}

size_t prudence_cache_shrink(struct prudence_cache *cache)
{
    cache_require(cache, "prudence_cache_shrink");
    extensions_flush(cache);
    return shrink_until_merged(cache_is_cold(cache) ? cache->common : cache);
}

static bool this_thread_names_in(struct prudence_cache *cache)
{
    return unlikely(cache->flags & CACHE_POLLS_OBJECTS) && heap_upcalls.named_by_this_thread(cache);
}

/* Returns whether a hazard pointer of this thread names a deferred object of the cache; or, if the
 * cache shares slabs, of another that shares them. */
static bool this_thread_names(struct prudence_cache *cache)
{
    return (cache->common && this_thread_names_in(cache->common)) ||
           (!cache_is_cold(cache) && this_thread_names_in(cache));
}

/* Returns 0 or an error. Without a destructor, the call waits only for grace periods of the cache's
 * domain. */
static int cache_may_wait(struct prudence_cache *cache, const char *what, void *caller)
{
    struct wait_request request = {
        .what = what, .of = "of cache", .name = cache->name, .caller = caller};

    int error = cache_body_of(cache)->destructor ? heap_upcalls.may_wait(&request)
                                                 : wait_request_sections(&request, cache->domain);

    return !error && this_thread_names(cache) ? wait_request_refuse_names(&request) : error;
}

/* Waits for two grace periods at most, because deferred objects in `next` of their latent slabs get
 * a cookie only when the objects before them are merged. */
static bool wait_until_merged(struct prudence_cache *cache, uint64_t deadline)
{
    bool by_object = cache->flags & CACHE_POLLS_OBJECTS,
         over = !by_object || heap_upcalls.wait_for_names(cache, deadline);

    for (unsigned i = 0; i < 2 && over && !by_object; i++) {
        drain_cache(cache, false);
        over = gp_wait(cache->domain, gp_snapshot(cache->domain), deadline);
    }
    drain_cache(cache, false);
    return over;
}

/* Waits for the objects in slabs of the cache, and for those in slabs that it shares or shared. */
static bool wait_for_all_parts(struct prudence_cache *cache, uint64_t deadline)
{
    if (cache->common && !wait_until_merged(cache->common, deadline))
        return false;
    return cache_is_cold(cache) || wait_until_merged(cache, deadline);
}

static int cache_barrier(struct prudence_cache *cache, uint64_t deadline, const char *what,
                         void *caller)
{
    int error;
    bool over;

    if (!cache)
        return EINVAL;
    cache_require(cache, what);
    error = cache_may_wait(cache, what, caller);
    if (error)
        return error;
    over = cache_body_of(cache)->destructor ? heap_upcalls.barrier(cache, deadline)
                                            : wait_for_all_parts(cache, deadline);
    return over ? 0 : ETIMEDOUT;
}

int prudence_cache_barrier(struct prudence_cache *cache)
{
    return cache_barrier(cache, 0, "prudence_cache_barrier", __builtin_return_address(0));
}

int prudence_cache_barrier_timed(struct prudence_cache *cache, uint64_t nanoseconds)
{
    return cache_barrier(cache, os_clock_after(nanoseconds), "prudence_cache_barrier_timed",
                         __builtin_return_address(0));
}

int caches_destroy(struct prudence_cache *cache, const char *what, void *caller)
{
    int error;

    cache_require(cache, what);
    error = cache_may_wait(cache, what, caller);
    if (error)
        return error;
    extensions_empty(cache);
    if (cache_body_of(cache)->destructor)
        heap_upcalls.empty(cache);
    if (!cache_life_end(cache, what, caller))
        return EBUSY;
    cold_note_destroyed();
    return 0;
}

int prudence_cache_destroy(struct prudence_cache *cache)
{
    return cache ? caches_destroy(cache, "prudence_cache_destroy", __builtin_return_address(0))
                 : EINVAL;
}

/* Trims: drains and shrinks every cache, then purges their pages. */
size_t prudence_trim(void)
{
    struct os_pages_stats before, after;
    size_t hollow;

    process_start();
    os_pages_stats(&before);
    if (heap_upcalls.flush)
        heap_upcalls.flush();
    shrink_all_until_merged();
    os_pages_trim();
    hollow = hollow_purge();
    os_pages_stats(&after);
    before.used += before.retained + hollow;
    after.used += after.retained;
    return before.used > after.used ? before.used - after.used : 0;
}
