/* SPDX-License-Identifier: MIT */
/* The walk over the heap (<prudence/heap_walk.h>): passes the findings of observe/walk.c to the
 * program's function, and prints them. */
#include <errno.h>
#include <pthread.h>

#include <prudence/heap_walk.h>

#include "heap/cache_life.h"
#include "observe/output.h"
#include "observe/walk.h"

/* A structure in the size that the program knows. */
union given {
    unsigned char room[512];
    struct prudence_heap_slab slab;
    struct prudence_heap_object object;
};

struct visits {
    prudence_heap_visitor *visit;
    void *context;
    size_t slab_size, object_size;
};

/* Calls the program's function, and leaves errno as that function sets it. */
static int call(const struct visits *visits, const union given *slab, const union given *object)
{
    os_foreign_call("a visitor of the heap");
    return visits->visit(&slab->slab, object ? &object->object : NULL, visits->context);
}

static int visit_objects(const struct visits *visits, const union given *slab,
                         const struct walked_slab *walked, const struct walked_object *objects)
{
    union given given;
    int result = 0;

    for (unsigned i = 0; i < walked->capacity && !result; i++) {
        struct prudence_heap_object object = {
            .address = walked->base + i * walked->told.object_stride,
            .size = walked->told.object_size,
            .state = objects[i].state,
            .wait = objects[i].wait,
            .cookie = objects[i].cookie,
            .cpu = objects[i].cpu,
        };

        if (objects[i].state == WALK_HIDDEN)
            continue;
        give_sized(&given, visits->object_size, &object, sizeof object);
        result = call(visits, slab, &given);
    }
    return result;
}

static int visit_slabs(const struct visits *visits, const struct heap_walk *walk)
{
    int result = 0;

    for (unsigned i = 0; i < walk->slab_count && !result; i++) {
        const struct walked_slab *walked = &walk->slabs[i];
        union given given;

        give_sized(&given, visits->slab_size, &walked->told, sizeof walked->told);
        result = call(visits, &given, NULL);
        if (!result)
            result = visit_objects(visits, &given, walked, &walk->objects[walked->objects]);
        else if (result == PRUDENCE_HEAP_SKIP)
            result = 0;
    }
    return result;
}

static int walk_heap(const struct prudence_cache *cache, const struct visits *visits)
{
    struct heap_walk *walk = os_meta_alloc(sizeof *walk);
    int result = 0;

    if (!walk)
        return ENOMEM;
    if (cache) {
        walk->only = cache->number;
        walk->owner = cache;
        walk->common = cache->common;
    }
    while (!result && heap_walk_next(walk))
        result = visit_slabs(visits, walk);
    os_meta_free(walk, sizeof *walk);
    return result;
}

int prudence_heap_walk_sized(struct prudence_cache *cache, prudence_heap_visitor *visit,
                             void *context, size_t slab_size, size_t object_size)
{
    const struct visits visits = {
        .visit = visit, .context = context, .slab_size = slab_size, .object_size = object_size};

    if (!visit || slab_size > sizeof(union given) || object_size > sizeof(union given))
        return EINVAL;
    if (os_lock_forking)
        return EBUSY;
    if (os_busy)
        return EDEADLK;
    process_start();
    os_calls_widen(); /* the walk has to fence CPUs */
    if (cache)
        cache_require(cache, "prudence_heap_walk");
    return walk_heap(cache, &visits);
}

/* ------------------------------------------------------------------------------------ printing */

struct printing {
    struct output output;
    bool json;
    const char *separator;
    uint64_t left;       /* objects of the slab not printed yet */
    unsigned state, run; /* state of the last `run` objects */
};

static void heap_walk_print_name(struct printing *printing, const char *name)
{
    if (printing->json) {
        output_json_string(&printing->output, name);
        return;
    }
    output_text(&printing->output, "'");
    output_name(&printing->output, name);
    output_text(&printing->output, "'");
}

static void print_slab(struct printing *printing, const struct prudence_heap_slab *slab)
{
    struct output *output = &printing->output;

    output_print(output,
                 printing->json ? "%s{\"pages\":\"%p\",\"bytes\":%lu,\"cache\":"
                                : "%s%p %lu bytes of ",
                 printing->separator, slab->pages, (unsigned long)slab->bytes);
    heap_walk_print_name(printing, slab->cache_name);
    output_print(output,
                 printing->json
                     ? ",\"object_size\":%lu,\"object_stride\":%lu,\"node\":%lu,\"domain\":"
                     : ": objects of %lu bytes, each %lu; node %lu, domain ",
                 (unsigned long)slab->object_size, (unsigned long)slab->object_stride,
                 (unsigned long)slab->node);
    heap_walk_print_name(printing, slab->domain);
    output_print(
        output,
        printing->json ? ",\"objects\":%lu,\"live\":%lu,\"cached\":%lu,\"latent\":%lu,\"free\":%lu,"
                         "\"resting\":%lu"
                       : "; %lu objects: %lu live, %lu cached, %lu latent, %lu free, %lu resting\n",
        (unsigned long)slab->objects, (unsigned long)slab->live, (unsigned long)slab->cached,
        (unsigned long)slab->latent, (unsigned long)slab->free, (unsigned long)slab->resting);
    if (printing->json) /* without objects there is no print_state() to end the string */
        output_text(output, slab->objects ? ",\"states\":\"" : ",\"states\":\"\"}");
    printing->left = slab->objects;
    printing->run = 0;
    printing->separator = printing->json ? ",\n" : "";
}

static void print_state(struct printing *printing, unsigned state)
{
    if (printing->run && printing->state != state) {
        output_print(&printing->output, "%u%c", printing->run, "LCDFR"[printing->state]);
        printing->run = 0;
    }
    printing->state = state;
    printing->run++;
    if (--printing->left == 0)
        output_print(&printing->output, "%u%c\"}", printing->run, "LCDFR"[state]);
}

static int print_one(const struct prudence_heap_slab *slab,
                     const struct prudence_heap_object *object, void *context)
{
    struct printing *printing = context;

    if (object)
        print_state(printing, object->state);
    else
        print_slab(printing, slab);
    return printing->json ? 0 : PRUDENCE_HEAP_SKIP;
}

int prudence_heap_print(struct prudence_cache *cache, FILE *file, enum prudence_stats_format format)
{
    struct printing printing = {.output = {.file = file},
                                .json = format == PRUDENCE_STATS_JSON,
                                .separator = format == PRUDENCE_STATS_JSON ? "[" : ""};
    int cancelable, result, error;

    if (!file || (unsigned)format > PRUDENCE_STATS_JSON)
        return EINVAL;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE,
                           &cancelable); /* printing is a cancellation point */
    result = prudence_heap_walk(cache, print_one, &printing);
    if (!result && printing.json)
        output_text(&printing.output, *printing.separator == '[' ? "[]\n" : "]\n");
    error = output_end(&printing.output);
    pthread_setcancelstate(cancelable, NULL);
    return result ? result : error;
}
