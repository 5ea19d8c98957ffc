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

void make_pointer(struct subject *subject, const struct kind *kind)
{
    allocate_all(subject, kind->then & MANY && subject->size <= 512 ? OBJECTS_MAX : OBJECTS);
    choose(subject);
    if (kind->then & READ)
        reader_enters(subject);
    if (kind->make)
        kind->make(subject);
    else if (kind->where == HERE)
        kind->end(subject, subject->pointer);
    else
        end_in_thread(subject, kind->end, kind->where != OTHER_CPU, kind->where != ENDED_THREAD);
    end_others(subject, kind->others == ALL_BUT_10 ? subject->count - 10 : kind->others, kind->end);
    if (kind->then & SYNCHRONIZE)
        synchronize(subject);
    if (kind->then & EMPTY)
        empty_caches(subject);
    if (kind->then & TRIM)
        prudence_trim();
}

/* --------------------------------------------------------------------------------- other misuse */

/* The call replaces the object and defers it. A reader is inside, so the call must return another
 * object. Without a cache, a reallocation moves and frees the object. */
static void replaced(struct subject *subject)
{
    void *other;

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
    require(scm_refresh(subject->pointer, 1) == 0, "a date");
}

/* Takes an object of another cache, or claims another size for prudence_free_sized. A size class
 * also notices a size that is too small. */
static void of_other_cache(struct subject *subject)
{
    subject->claimed = subject->by_cache ? 2 * subject->size : subject->size / 4;
    if (subject->by_cache && subject->takes_cache)
        subject->pointer =
            prudence_cache_alloc(prudence_cache_create("other", subject->size, NULL));
}

/* Destroys the cache of the object. Operations by cache then get the destroyed cache. */
static void of_destroyed_cache(struct subject *subject)
{
    struct prudence_cache *gone = prudence_cache_create("destroyed", subject->size, NULL);

    subject->pointer = prudence_cache_alloc(gone);
    prudence_cache_free(gone, subject->pointer);
    require(prudence_cache_destroy(gone) == 0, "a destroyed cache");
    if (subject->by_cache)
        subject->cache = gone;
}

/* ------------------------------------------------------------------------------------ no object */

static void interior(struct subject *subject)
{
    subject->pointer = (char *)subject->pointer + 16;
}

static void misaligned(struct subject *subject)
{
    subject->pointer = (char *)subject->pointer + 1;
}

static void foreign(struct subject *subject)
{
    subject->pointer = malloc(subject->size);
}

static void on_stack(struct subject *subject)
{
    subject->pointer = subject->on_stack;
}

static void is_static(struct subject *subject)
{
    static _Alignas(16) char bytes[64];

    subject->pointer = bytes;
}

const struct kind kinds[] = {
    {"freed", DEAD, give, .report = "is already free"},
    {"freed, then another", DEAD, give, .others = 1, .report = "is already free"},
    {"freed, then 100 others", DEAD, give, .others = 100, .report = "is already free"},
    /* other objects of the slab are live, so the slab stays */
    {"freed, in its slab", DEAD, give, .then = EMPTY, .report = "is already free"},
    /* only the last objects are live, which lie in other slabs */
    {"freed, its slab gone", DEAD, give, .others = ALL_BUT_10, .then = MANY | EMPTY | TRIM,
     .report = "0x"},
    {"freed by a thread that lives", DEAD, give, THREAD, .report = "is already free"},
    {"freed by a thread that ended", DEAD, give, ENDED_THREAD, .report = "is already free"},
    {"freed on another CPU", DEAD, give, OTHER_CPU, .report = "is already free"},
    {"deferred", DEAD, defer, .report = "is already"},
    {"deferred, then another", DEAD, defer, .others = 1, .report = "is already"},
    /* the batch of the pointer is closed */
    {"deferred, then 200 others", DEAD, defer, .others = 200, .report = "is already"},
    {"deferred on another CPU", DEAD, defer, OTHER_CPU, .report = "is already"},
    {"deferred, synchronized", DEAD, defer, .then = SYNCHRONIZE, .report = "is already"},
    {"deferred, synchronized, trimmed", DEAD, defer, .then = SYNCHRONIZE | EMPTY | TRIM,
     .report = "is already free"},
    {"deferred, a reader inside", DEAD, defer, .then = READ,
     .report = "is already deferred and not yet safe"},
    /* the reader keeps the ring full, and its oldest objects are the first to go to latent slabs */
    {"deferred, in its latent slab", DEAD, defer, .others = ALL_BUT_10, .then = MANY | READ,
     .report = "is already deferred and not yet safe"},
    {"replaced", DEAD, .make = replaced, .report = "is already"},
    {"has a date", DATED, .make = dated, .report = "is short-term memory: 1 expiration date"},
    {"of another cache or size", OTHER, .make = of_other_cache, .report = "0x"},
    {"of a destroyed cache", NO_OBJECT, .make = of_destroyed_cache, .report = "0x"},
    {"interior", NO_OBJECT, .make = interior, .report = "16 bytes after its start"},
    {"misaligned", NO_OBJECT, .make = misaligned, .report = " 1 bytes after its start"},
    {"foreign", NO_OBJECT, .make = foreign, .report = "foreign pointer"},
    {"on the stack", NO_OBJECT, .make = on_stack, .report = "foreign pointer"},
    {"static", NO_OBJECT, .make = is_static, .report = "foreign pointer"},
};
const size_t kind_count = sizeof kinds / sizeof kinds[0];
