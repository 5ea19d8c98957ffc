/* SPDX-License-Identifier: MIT */
/*
 * Statistics of the malloc interface. glibc's terms mean: the arena is our slabs and kept pages,
 * fastbins are our object caches, mmapped regions are our large blocks. Latent objects count as
 * free, because the program has given them back.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>

#include <prudence/stats.h>

#include "preload/interface.h"

/* Memory of one cache, in bytes. */
struct usage {
    uint64_t held, live, cached, free;
};

/* Returns 0 if `part` seems larger than `whole`, because the figures are not taken at one
 * instant. */
static uint64_t difference(uint64_t whole, uint64_t part)
{
    return whole > part ? whole - part : 0;
}

static struct usage usage_of(const struct prudence_cache_stats *cache)
{
    struct usage usage = {
        .held = cache->slabs_now * cache->slab_size,
        .live = cache->objects_live * cache->object_stride,
        .cached = cache->objects_cached * cache->object_stride,
    };

    usage.free = difference(usage.held, usage.live);
    return usage;
}

static bool is_large_blocks(const struct prudence_cache_stats *cache)
{
    return cache->slab_size == 0;
}

static uint64_t system_bytes(const struct prudence_stats *total)
{
    return total->slab_bytes + total->retained_bytes;
}

/* A lower bound, because no peak is kept of slabs and retained pages together. */
static uint64_t system_bytes_peak(const struct prudence_stats *total)
{
    uint64_t now = system_bytes(total);

    return total->slab_bytes_peak > now ? total->slab_bytes_peak : now;
}

static struct mallinfo2 sum_up(struct prudence_stats *total)
{
    struct prudence_walk walk = PRUDENCE_WALK_INIT;
    struct prudence_cache_stats cache;
    struct mallinfo2 info = {.arena = 0};
    uint64_t held = 0;

    prudence_stats(total);
    while (prudence_next_cache(&walk, &cache) == 0) {
        struct usage usage = usage_of(&cache);

        if (is_large_blocks(&cache)) {
            info.hblks += cache.objects_live;
            continue;
        }
        held += usage.held;
        info.uordblks += usage.live;
        info.smblks += cache.objects_cached;
        info.fsmblks += usage.cached;
        info.ordblks += difference(usage.free, usage.cached) / cache.object_stride;
    }
    info.hblkhd = difference(total->slab_bytes, held);
    info.keepcost = total->retained_bytes;
    info.arena = held + total->retained_bytes;
    info.fordblks = difference(info.arena, info.uordblks);
    return info;
}

struct mallinfo2 MALLOC_NAME(mallinfo2)(void)
{
    struct prudence_stats total;

    return sum_up(&total);
}

/* The old structure has ints, which wrap, as documented. */
struct mallinfo MALLOC_NAME(mallinfo)(void)
{
    struct mallinfo2 info = MALLOC_NAME(mallinfo2)();

    return (struct mallinfo){
        .arena = (int)info.arena,
        .ordblks = (int)info.ordblks,
        .smblks = (int)info.smblks,
        .hblks = (int)info.hblks,
        .hblkhd = (int)info.hblkhd,
        .usmblks = (int)info.usmblks,
        .fsmblks = (int)info.fsmblks,
        .uordblks = (int)info.uordblks,
        .fordblks = (int)info.fordblks,
        .keepcost = (int)info.keepcost,
    };
}

static void print_size(FILE *file, const struct prudence_cache_stats *cache)
{
    struct usage usage = usage_of(cache);

    fprintf(file, "  <size from=\"%zu\" to=\"%zu\" total=\"%" PRIu64 "\" count=\"%" PRIu64 "\"/>\n",
            cache->object_size, cache->object_stride, usage.free,
            usage.free / cache->object_stride);
}

static void print_total(FILE *file, const char *type, uint64_t count, uint64_t bytes)
{
    fprintf(file, "<total type=\"%s\" count=\"%" PRIu64 "\" size=\"%" PRIu64 "\"/>\n", type, count,
            bytes);
}

/* Prints the shape of glibc's report with one heap, so that readers of glibc's can read ours. */
static void print_xml(FILE *file)
{
    struct prudence_stats total;
    struct mallinfo2 info = sum_up(&total);
    struct prudence_walk walk = PRUDENCE_WALK_INIT;
    struct prudence_cache_stats cache;

    fputs("<malloc version=\"1\">\n<heap nr=\"0\">\n<sizes>\n", file);
    while (prudence_next_cache(&walk, &cache) == 0)
        if (!is_large_blocks(&cache) && cache.slabs_now)
            print_size(file, &cache);
    fputs("</sizes>\n", file);
    print_total(file, "fast", info.smblks, info.fsmblks);
    print_total(file, "rest", info.ordblks, difference(info.fordblks, info.fsmblks));
    print_total(file, "latent", total.objects_latent, total.bytes_latent);
    fputs("</heap>\n", file);
    print_total(file, "mmap", info.hblks, info.hblkhd);
    fprintf(file,
            "<system type=\"current\" size=\"%" PRIu64
            "\"/>\n"
            "<system type=\"max\" size=\"%" PRIu64
            "\"/>\n"
            "</malloc>\n",
            system_bytes(&total), system_bytes_peak(&total));
}

int MALLOC_NAME(malloc_info)(int options, FILE *file)
{
    int cancelable;

    if (options || !file) {
        errno = EINVAL;
        return -1;
    }
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE,
                           &cancelable); /* printing is a cancellation point */
    print_xml(file);
    pthread_setcancelstate(cancelable, NULL);
    return ferror(file) ? -1 : 0;
}

void MALLOC_NAME(malloc_stats)(void)
{
    struct prudence_stats total;
    struct mallinfo2 info = sum_up(&total);
    int cancelable;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelable); /* as above */
    fprintf(stderr,
            "system bytes     = %12" PRIu64
            "\n"
            "in use bytes     = %12zu\n"
            "latent bytes     = %12" PRIu64
            "\n"
            "max system bytes = %12" PRIu64
            "\n"
            "large blocks     = %12zu\n"
            "allocations      = %12" PRIu64 "\n",
            system_bytes(&total), info.uordblks + info.hblkhd, total.bytes_latent,
            system_bytes_peak(&total), info.hblks, total.allocations);
    pthread_setcancelstate(cancelable, NULL);
}

/* Ignores `pad`, because there is no top of a heap to leave bytes at. */
int MALLOC_NAME(malloc_trim)(size_t pad)
{
    (void)pad;
    return prudence_trim() > 0;
}

/* Accepts and ignores every parameter of glibc's. Ours are in PRUDENCE_OPTIONS. */
int MALLOC_NAME(mallopt)(int parameter, int value)
{
    (void)value;
    switch (parameter) {
    case M_MXFAST:
    case M_TRIM_THRESHOLD:
    case M_TOP_PAD:
    case M_MMAP_THRESHOLD:
    case M_MMAP_MAX:
    case M_CHECK_ACTION:
    case M_PERTURB:
    case M_ARENA_TEST:
    case M_ARENA_MAX:
        return 1;
    default:
        return 0;
    }
}

#ifndef PRUDENCE_MALLOC_PREFIX
LIBC_ALIAS(mallopt);
LIBC_ALIAS(mallinfo);
#endif
