/* SPDX-License-Identifier: MIT */
/* Pages with an owner in the page map. */
#ifndef TESTS_SUPPORT_OWNED_PAGES_H
#define TESTS_SUPPORT_OWNED_PAGES_H

#include "support/pages.h"

static char owner;

static inline char *take(size_t bytes)
{
    char *block = os_pages_alloc(bytes, OS_PAGE_SIZE, 0, NULL);

    assert_non_null(block);
    assert_true(os_page_owner_set(block, bytes, &owner));
    return block;
}

static inline void give(char *block, size_t bytes)
{
    os_page_owner_set(block, bytes, NULL);
    os_pages_free(block, bytes);
}

#endif /* TESTS_SUPPORT_OWNED_PAGES_H */
