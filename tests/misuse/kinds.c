/* SPDX-License-Identifier: MIT */
/* The kinds of pointers of the misuse matrix. Each function prepares the pointer for the
 * operation. */
#include "misuse.h"

#include <prudence/scm.h>
#include <stdlib.h>

/* ---------------------------------------------------------------------------- objects of a cell */

void *allocate(struct subject *subject)
{
    void *object =
        subject->by_cache ? prudence_cache_alloc(subject->cache) : prudence_malloc(subject->size);

    require(object != NULL, "memory");
    return object;
}

void give(const struct subject *subject, void *object)
{
    if (subject->by_cache)
        prudence_cache_free(subject->cache, object);
    else
        prudence_free(object);
}

static void defer(const struct subject *subject, void *object)
{
    if (subject->by_cache)
        prudence_cache_free_deferred(subject->cache, object);
    else
        prudence_free_deferred(object);
}

static void allocate_all(struct subject *subject, size_t count)
{
    subject->count = count;
    for (size_t i = 0; i < count; i++)
        subject->objects[i] = allocate(subject);
}

/* Chooses the pointer, the object in the middle of the live ones. */
static void choose(struct subject *subject)
{
    if (!subject->count)
        allocate_all(subject, OBJECTS);
    subject->pointer = subject->objects[subject->count / 2];
    subject->objects[subject->count / 2] = NULL;
}

/* Frees or defers `count` other objects. */
static void end_others(struct subject *subject, size_t count,
                       void (*end)(const struct subject *subject, void *object))
{
    for (size_t i = 0; i < subject->count && count; i++) {
        if (subject->objects[i]) {
            end(subject, subject->objects[i]);
            subject->objects[i] = NULL;
            count--;
        }
    }
    require(!count, "enough others");
}

static void empty_caches(const struct subject *subject)
{
    if (subject->by_cache)
        prudence_cache_shrink(subject->cache);
    else
        prudence_trim();
}

/* ---------------------------------------------------------------------------------------- freed */

static void freed(struct subject *subject)
{
    choose(subject);
    give(subject, subject->pointer);
}

static void freed_then_one(struct subject *subject)
{
    freed(subject);
    end_others(subject, 1, give);
}

static void freed_then_100(struct subject *subject)
{
    freed(subject);
    end_others(subject, 100, give);
}

/* Other objects of the slab are live, so the slab stays. */
static void freed_in_slab(struct subject *subject)
{
    freed(subject);
    empty_caches(subject);
}

/* Leaves only the last objects live, which lie in other slabs. */
static void freed_slab_gone(struct subject *subject)
{
    allocate_all(subject, subject->size <= 512 ? OBJECTS_MAX : OBJECTS);
    choose(subject);
    end_others(subject, subject->count - 10, give);
    give(subject, subject->pointer);
    empty_caches(subject);
    prudence_trim();
}

static void freed_by_thread(struct subject *subject)
{
    choose(subject);
    end_in_thread(subject, give, true, true);
}

static void freed_by_ended_thread(struct subject *subject)
{
    choose(subject);
    end_in_thread(subject, give, true, false);
}

static void freed_on_other_cpu(struct subject *subject)
{
    choose(subject);
    stay_on_cpu(false);
    give(subject, subject->pointer);
    stay_on_cpu(true);
}

/* ------------------------------------------------------------------------------------- deferred */

static void deferred(struct subject *subject)
{
    choose(subject);
    defer(subject, subject->pointer);
}

static void deferred_then_one(struct subject *subject)
{
    deferred(subject);
    end_others(subject, 1, defer);
}

/* Defers 200 more, so that the batch of the pointer is closed. */
static void deferred_then_200(struct subject *subject)
{
    deferred(subject);
    end_others(subject, 200, defer);
}

static void deferred_on_other_cpu(struct subject *subject)
{
    choose(subject);
    end_in_thread(subject, defer, false, true);
}

static void deferred_synchronized(struct subject *subject)
{
    deferred(subject);
    synchronize(subject);
}

static void deferred_trimmed(struct subject *subject)
{
    deferred_synchronized(subject);
    empty_caches(subject);
    prudence_trim();
}

static void deferred_with_reader(struct subject *subject)
{
    reader_enters(subject);
    deferred(subject);
}

/* A reader keeps the ring full. The oldest objects in the ring are the first to go to their latent
 * slabs. */
static void deferred_in_latent_slab(struct subject *subject)
{
    allocate_all(subject, subject->size <= 512 ? OBJECTS_MAX : OBJECTS);
    deferred_with_reader(subject);
    end_others(subject, subject->count - 10, defer);
}

/* The call replaces the object and defers it. A reader is inside, so the call must return another
 * object. Without a cache, a reallocation moves and frees the object. */
static void replaced(struct subject *subject)
{
    void *other;

    choose(subject);
    reader_enters(subject);
    other = subject->by_cache ? prudence_cache_replace(subject->cache, subject->pointer)
                              : prudence_realloc(subject->pointer, 2 * subject->size);
    require(other && other != subject->pointer, "another object");
    reader_leaves();
    subject->objects[subject->count++] = other;
}

/* ----------------------------------------------------------------- live, but not to be freed so */

/* Gives the object a date that would free it later. */
static void dated(struct subject *subject)
{
    choose(subject);
    require(scm_refresh(subject->pointer, 1) == 0, "a date");
}

/* Takes an object of another cache, or claims another size for prudence_free_sized. A size class
 * also notices a size that is too small. */
static void of_other_cache(struct subject *subject)
{
    choose(subject);
    subject->claimed = subject->by_cache ? 2 * subject->size : subject->size / 4;
    if (subject->by_cache && subject->takes_cache)
        subject->pointer =
            prudence_cache_alloc(prudence_cache_create("other", subject->size, NULL));
}

/* Destroys the cache of the object. Operations by cache then get the destroyed cache. */
static void of_destroyed_cache(struct subject *subject)
{
    struct prudence_cache *gone = prudence_cache_create("destroyed", subject->size, NULL);

    choose(subject);
    subject->pointer = prudence_cache_alloc(gone);
    prudence_cache_free(gone, subject->pointer);
    require(prudence_cache_destroy(gone) == 0, "a destroyed cache");
    if (subject->by_cache)
        subject->cache = gone;
}

/* ------------------------------------------------------------------------------------ no object */

static void interior(struct subject *subject)
{
    choose(subject);
    subject->pointer = (char *)subject->pointer + 16;
}

static void misaligned(struct subject *subject)
{
    choose(subject);
    subject->pointer = (char *)subject->pointer + 1;
}

static void foreign(struct subject *subject)
{
    choose(subject);
    subject->pointer = malloc(subject->size);
}

static void on_stack(struct subject *subject)
{
    choose(subject);
    subject->pointer = subject->on_stack;
}

static void is_static(struct subject *subject)
{
    static _Alignas(16) char bytes[64];

    choose(subject);
    subject->pointer = bytes;
}

const struct kind kinds[] = {
    {"freed", KIND_DEAD, freed, "is already free"},
    {"freed, then another", KIND_DEAD, freed_then_one, "is already free"},
    {"freed, then 100 others", KIND_DEAD, freed_then_100, "is already free"},
    {"freed, in its slab", KIND_DEAD, freed_in_slab, "is already free"},
    {"freed, its slab gone", KIND_DEAD, freed_slab_gone, "0x"},
    {"freed by a thread that lives", KIND_DEAD, freed_by_thread, "is already free"},
    {"freed by a thread that ended", KIND_DEAD, freed_by_ended_thread, "is already free"},
    {"freed on another CPU", KIND_DEAD | KIND_OTHER_CPU, freed_on_other_cpu, "is already free"},
    {"deferred", KIND_DEAD, deferred, "is already"},
    {"deferred, then another", KIND_DEAD, deferred_then_one, "is already"},
    {"deferred, then 200 others", KIND_DEAD, deferred_then_200, "is already"},
    {"deferred on another CPU", KIND_DEAD | KIND_OTHER_CPU, deferred_on_other_cpu, "is already"},
    {"deferred, synchronized", KIND_DEAD, deferred_synchronized, "is already"},
    {"deferred, synchronized, trimmed", KIND_DEAD, deferred_trimmed, "is already free"},
    {"deferred, a reader inside", KIND_DEAD, deferred_with_reader,
     "is already deferred and not yet safe"},
    {"deferred, in its latent slab", KIND_DEAD, deferred_in_latent_slab,
     "is already deferred and not yet safe"},
    {"replaced", KIND_DEAD, replaced, "is already"},
    {"has a date", KIND_DATED, dated, "is short-term memory: 1 expiration date"},
    {"of another cache or size", KIND_OTHER, of_other_cache, "0x"},
    {"of a destroyed cache", 0, of_destroyed_cache, "0x"},
    {"interior", 0, interior, "16 bytes after its start"},
    {"misaligned", 0, misaligned, " 1 bytes after its start"},
    {"foreign", 0, foreign, "foreign pointer"},
    {"on the stack", 0, on_stack, "foreign pointer"},
    {"static", 0, is_static, "foreign pointer"},
};
const size_t kind_count = sizeof kinds / sizeof kinds[0];
