/* SPDX-License-Identifier: MIT */
/* The operations of the misuse matrix: every public call that ends an object, and two that only use
 * one. */
#include "misuse.h"

#include <prudence/call.h>
#include <prudence/scm.h>

/* Enters a returned object, which is live, in the place of an object that is not. If the operation
 * returned the misused object itself, the library's state is consistent again, although both the
 * library and the program have the object. */
static void keep(struct subject *subject, void *object)
{
    if (object == subject->pointer)
        say("returned", object);
    for (size_t i = 0; object && i < subject->count; i++) {
        if (!subject->objects[i]) {
            subject->objects[i] = object;
            return;
        }
    }
    require(!object, "no place for what was returned");
}

/* Puts the pointer between two live objects for a bulk call, which ends both. */
static void take_three(struct subject *subject, void **three)
{
    three[1] = subject->pointer;
    for (size_t i = 0, taken = 0; i < subject->count && taken <= 2; i++) {
        if (subject->objects[i]) {
            three[taken] = subject->objects[i];
            subject->objects[i] = NULL;
            taken += 2;
        }
    }
}

/* Defines an operation that is one expression. */
#define OPERATION(name, ...)                                                                       \
    static void name(struct subject *subject)                                                      \
    {                                                                                              \
        __VA_ARGS__;                                                                               \
    }

/* ----------------------------------------------------------------------------- by pointer alone */

OPERATION(by_free, prudence_free(subject->pointer))
OPERATION(by_free_sized, prudence_free_sized(subject->pointer, subject->claimed))
OPERATION(by_free_deferred, prudence_free_deferred(subject->pointer))

/* Resizes to a size for which the object has to move. */
OPERATION(by_realloc, keep(subject, prudence_realloc(subject->pointer, 2 * subject->size)))
OPERATION(by_usable_size, require(prudence_usable_size(subject->pointer) > 0, "a size"))

/* ------------------------------------------------------------------------------------- by cache */

OPERATION(by_cache_free, prudence_cache_free(subject->cache, subject->pointer))

static void by_cache_free_bulk(struct subject *subject)
{
    void *three[3];

    take_three(subject, three);
    prudence_cache_free_bulk(subject->cache, 3, three);
}

OPERATION(by_cache_free_deferred, prudence_cache_free_deferred(subject->cache, subject->pointer))

static void by_cache_free_deferred_bulk(struct subject *subject)
{
    void *three[3];

    take_three(subject, three);
    prudence_cache_free_deferred_bulk(subject->cache, 3, three);
}

OPERATION(by_cache_replace, keep(subject, prudence_cache_replace(subject->cache, subject->pointer)))

static void by_cache_replace_bulk(struct subject *subject)
{
    void *three[3];
    size_t returned;

    take_three(subject, three);
    returned = prudence_cache_replace_bulk(subject->cache, 3, three);
    for (size_t i = 0; i < returned; i++)
        keep(subject, three[i]);
}

/* ------------------------------------------------------------------------------------ callbacks */

static struct {
    struct prudence_head head; /* outside the object, because writing there is another misuse */
    void *object;
} called;

static void free_called(struct prudence_head *head)
{
    (void)head;
    prudence_free(called.object);
}

/* Lets a callback commit the misuse; the callback runs after the readers. */
static void by_call(struct subject *subject)
{
    called.object = subject->pointer;
    prudence_call(&called.head, free_called);
    reader_leaves();
    prudence_barrier();
}

/* ---------------------------------------------------------------------------- short-term memory */

OPERATION(by_scm_free, scm_free(subject->pointer))
OPERATION(by_scm_set_finalizer,
          require(scm_set_finalizer(subject->pointer, -1) == 0, "no finalizer"))
OPERATION(by_scm_refresh, require(scm_refresh(subject->pointer, 1) == 0, "a date"))
OPERATION(by_scm_global_refresh, require(scm_global_refresh(subject->pointer, 1) == 0, "a date"))

/* Lets the date expire. */
static void collect(struct subject *subject)
{
    (void)subject;
    say("collection", NULL);
    for (unsigned i = 0; i < 5; i++)
        if (scm_tick() == 0)
            scm_global_tick();
    scm_collect();
}

const struct operation operations[] = {
    {"prudence_free", 0, by_free, NULL},
    {"prudence_free_sized", OPERATION_BY_SIZE, by_free_sized, NULL},
    {"prudence_free_deferred", 0, by_free_deferred, NULL},
    {"prudence_realloc", OPERATION_KEEPS, by_realloc, NULL},
    {"prudence_usable_size", OPERATION_KEEPS | OPERATION_ASKS, by_usable_size, NULL},
    {"prudence_cache_free", OPERATION_BY_CACHE, by_cache_free, NULL},
    {"prudence_cache_free_bulk", OPERATION_BY_CACHE, by_cache_free_bulk, NULL},
    {"prudence_cache_free_deferred", OPERATION_BY_CACHE, by_cache_free_deferred, NULL},
    {"prudence_cache_free_deferred_bulk", OPERATION_BY_CACHE, by_cache_free_deferred_bulk, NULL},
    {"prudence_cache_replace", OPERATION_BY_CACHE, by_cache_replace, NULL},
    {"prudence_cache_replace_bulk", OPERATION_BY_CACHE, by_cache_replace_bulk, NULL},
    {"prudence_call", 0, by_call, NULL},
    {"scm_free", 0, by_scm_free, NULL},
    {"scm_refresh", OPERATION_KEEPS, by_scm_refresh, collect},
    {"scm_global_refresh", OPERATION_KEEPS, by_scm_global_refresh, collect},
    {"scm_set_finalizer", OPERATION_KEEPS | OPERATION_ASKS, by_scm_set_finalizer, NULL},
};
const size_t operation_count = sizeof operations / sizeof operations[0];
