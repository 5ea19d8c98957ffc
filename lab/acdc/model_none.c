/* SPDX-License-Identifier: MIT */
/*
 * No allocator: the baseline. Each thread hands out the same few megabytes again and again, and
 * frees nothing, so the run measures ACDC itself. Objects overlap, so ACDC keeps none of its own
 * data in them.
 */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "model.h"

#define LEAST_REGION ((size_t)1 << 22)

static __thread char *region, *next;
static __thread size_t region_size;

static bool thread_start(const struct settings *settings, unsigned thread)
{
    (void)thread;
    region_size = (size_t)2 << settings->max_size;
    if (region_size < LEAST_REGION)
        region_size = LEAST_REGION;
    region = mmap(NULL, region_size, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    next = region;
    return region != MAP_FAILED;
}

static void *allocate(size_t size)
{
    char *object = next;

    if (size > region_size - (size_t)(object - region))
        object = region;
    next = object + ((size + 15) & ~(size_t)15);
    return object;
}

/* Keeps the region, because other threads' books hold the objects after their thread has ended. */
static void nothing(void *object)
{
    (void)object;
}

const struct model model_none = {
    .description = "no allocator: the cost of ACDC itself",
    .thread_start = thread_start,
    .allocate = allocate,
    .free = nothing,
};
