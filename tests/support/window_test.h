/* SPDX-License-Identifier: MIT */
/* Common parts of the tests of windows: the check that inlined code makes. */
#ifndef TESTS_SUPPORT_WINDOW_TEST_H
#define TESTS_SUPPORT_WINDOW_TEST_H

#include <prudence/inline.h>

#include "support/slab_test.h"

/* Whether there are windows here. If not, prints why the test is skipped. */
static inline bool windows_exist(void)
{
    if (!OS_HAS_WINDOWS)
        puts("this processor has no windows");
    return OS_HAS_WINDOWS;
}

/* Checks the address alone. */
static inline bool is_shown(const struct prudence_cache *cache, const void *object)
{
    return (uintptr_t)object - load_relaxed(&cache->window_words.base) <
           load_relaxed(&cache->window_words.extent);
}

/* Checks as inlined code does; under a sanitizer, which inlines nothing, through the library's
 * functions. */
static inline bool is_of(const struct prudence_cache *cache, const void *object)
{
#if PRUDENCE_INLINED
    return prudence_inline_is_of(cache, object);
#else
    uintptr_t number = (uintptr_t)object;

    if (!cache)
        return false;
    if (is_shown(cache, object))
        return grid_has(cache->window_grid, number & cache->window_mask);
    return slab_of_cache(cache, object) != NULL;
#endif
}

/* Accesses a slab that sanitizers do not know to be in use. */
__attribute__((no_sanitize("address"))) static inline void touch_pages(const struct slab *slab)
{
    for (size_t at = 0; at < slab->bytes; at += OS_PAGE_SIZE)
        *((volatile char *)slab->pages + at) = 1;
}

__attribute__((no_sanitize("address"))) static inline bool is_zero(const struct slab *slab)
{
    return *(volatile char *)slab->pages == 0;
}

/* Asks for a window as inlined code does, even where nothing is inlined: without rseq, and in
 * watched caches. */
static inline void want_window(struct prudence_cache *cache)
{
    if (cache->body->stride % 1024 || cache->body->colors == 1)
        cache->body->window_wish = WINDOW_WANTED;
}

#endif /* TESTS_SUPPORT_WINDOW_TEST_H */
