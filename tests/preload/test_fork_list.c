/* SPDX-License-Identifier: MIT */
/*
 * glibc's list of fork handlers may grow while a forking thread reads the list without its lock, so
 * that thread may call a handler from the list that realloc() has left. Therefore the old list must
 * stay as it was, and become no other object. (registration.c stands in for glibc.)
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "support/suite.h"

#define LIST   6000 /* bytes */
#define OTHERS 200

extern void (*registration_hook)(void);

static char *list, *grown;

static void grow_list(void)
{
    grown = realloc(list, 2 * (size_t)LIST);
}

/* Returns whether new allocations reuse the old list's memory. */
static bool old_list_is_used_again(void)
{
    char *others[OTHERS];
    bool again = false;

    for (unsigned i = 0; i < OTHERS; i++) {
        others[i] = malloc(LIST);
        assert_non_null(others[i]);
        memset(others[i], 'k', LIST);
        again |= others[i] == list;
    }
    for (unsigned i = 0; i < OTHERS; i++)
        free(others[i]);
    return again;
}

static void assert_all(const char *bytes, size_t size, char wanted)
{
    for (size_t i = 0; i < size; i++)
        assert_int_equal(bytes[i], wanted);
}

static void new_list(void)
{
    list = malloc(LIST);
    assert_non_null(list);
    memset(list, 'a', LIST);
}

static void nothing(void)
{
}

TEST(a_list_stays_while_it_may_be_read)
{
    new_list();
    registration_hook = grow_list;
    assert_int_equal(pthread_atfork(NULL, nothing, NULL), 0);
    registration_hook = NULL;
    assert_ptr_not_equal(grown, list);
    assert_false(old_list_is_used_again());
    assert_all(list, LIST, 'a');
    assert_all(grown, LIST, 'a');
    free(grown);
}

/* Shows that the test above would see a reuse. */
TEST(other_memory_is_freed_by_realloc)
{
    new_list();
    grow_list();
    assert_true(old_list_is_used_again());
    assert_all(grown, LIST, 'a');
    free(grown);
}

SUITE()
