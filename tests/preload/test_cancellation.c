/* SPDX-License-Identifier: MIT */
/* No function of malloc()'s interface is a cancellation point, not even those that print. */

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <prudence/prudence.h>

#include "support/cancelled.h"
#include "support/suite.h"

void cfree(void *object);
void free_sized(void *object, size_t size);

static FILE *file; /* unbuffered, so every print writes */

static void call_malloc(void)
{
    for (size_t size = 0; size < 200000; size = size * 2 + 1)
        free(malloc(size));
}

static void call_malloc_that_fails(void)
{
    free(malloc(PTRDIFF_MAX));
    free(malloc((size_t)1 << 46));
}

static void call_calloc(void)
{
    free(calloc(100, 1000));
    free(calloc(10, 10));
}

static void call_realloc(void)
{
    void *object = NULL;

    for (size_t size = 1; size < (size_t)80 << 20; size *= 3)
        object = realloc(object, size);
    object = reallocarray(object, 10, 10);
    free(object);
}

static void call_aligned(void)
{
    void *object = NULL;

    free(aligned_alloc(64, 640));
    free(memalign(100, 100));
    free(valloc(1));
    free(pvalloc(1));
    if (!posix_memalign(&object, 4096, 10000))
        free(object);
}

static void call_free(void)
{
    cfree(malloc(10));
    free_sized(malloc(10), 10);
    malloc_usable_size(NULL);
}

static void call_info(void)
{
    mallinfo();
    mallinfo2();
    mallopt(M_MXFAST, 0);
    malloc_trim(0);
}

static void call_malloc_info(void)
{
    if (malloc_info(0, file))
        abort();
}

static void call_malloc_stats(void)
{
    malloc_stats();
}

/* Reports options that it cannot parse. */
static void call_option(void)
{
    prudence_option_set("unknown", "1");
    prudence_option_set("limit", "much");
}

TEST(nothing_is_a_cancellation_point)
{
    static const struct {
        const char *name;
        void (*call)(void);
    } calls[] = {
        {"malloc", call_malloc},
        {"malloc that fails", call_malloc_that_fails},
        {"calloc", call_calloc},
        {"realloc", call_realloc},
        {"aligned", call_aligned},
        {"free", call_free},
        {"mallinfo, malloc_trim", call_info},
        {"malloc_info", call_malloc_info},
        {"malloc_stats", call_malloc_stats},
        {"prudence_option_set", call_option},
    };

    file = fopen("/dev/null", "w");
    setvbuf(file, NULL, _IONBF, 0);
    for (unsigned i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        if (!returns_when_cancelled(calls[i].call))
            fail_msg("%s is a cancellation point", calls[i].name);
    }
    fclose(file);
}

SUITE()
