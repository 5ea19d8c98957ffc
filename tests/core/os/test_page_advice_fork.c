/* SPDX-License-Identifier: MIT */
/*
 * Pages with MADV_DONTFORK are freed, and the process is forked before the advice is undone. They
 * are not in the child, so the child never hands them out or unmaps them, whatever the program has
 * mapped there.
 */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "pages/pages.h"
#include "support/pages.h"

#define RUN  (4 * os_page_size)
#define HUGE (64 * MIB)

static char *missing;
static size_t missing_bytes;
static unsigned advised = 1;          /* pages that get the advice, from the second on */
static struct os_pages_stats counted; /* before the missing pages were allocated */
static struct os_window *window;      /* of which they are a place, or NULL */
static pid_t child = -1;

/* Frees pages of which some have the advice. */
static void free_advised(void *taken, size_t bytes)
{
    missing = taken;
    missing_bytes = bytes;
    assert_int_equal(madvise(missing + os_page_size, advised * os_page_size, MADV_DONTFORK), 0);
    pages_note_advice(missing, missing + os_page_size, advised * os_page_size, MAPPING_DONTFORK);
    os_pages_free(missing, bytes);
}

static void take_and_free_advised(size_t bytes)
{
    counted = pages();
    free_advised(os_pages_alloc(bytes, os_page_size, 0, NULL), bytes);
}

/* Returns 42 if memory of the same size is elsewhere and can be written to. */
static int use_other_pages(void)
{
    os_later_check();
    if (pages().used != counted.used || pages().retained != counted.retained)
        return 1;
    for (unsigned i = 0; i < 4; i++) {
        char *got = os_pages_alloc(missing_bytes, os_page_size, 0, NULL);

        if (!got || (got < missing + missing_bytes && missing < got + missing_bytes))
            return 2;
        got[os_page_size] = got[missing_bytes - 1] = 1;
    }
    return 42;
}

static int end_window(void)
{
    os_window_unmake(window);
    os_later_check();
    return 42;
}

/* Maps a page into the hole, as the program may; it must stay as it is. */
static int with_another_mapping(void *unused)
{
    char *hole = missing + os_page_size;
    int result;

    (void)unused;
    if (mmap(hole, os_page_size, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != hole)
        return 3;
    *hole = 'x';
    result = window ? end_window() : use_other_pages();
    return *hole == 'x' ? result : 4;
}

TEST(they_are_lost, begin_with_everything_kept)
{
    take_and_free_advised(RUN);
    assert_child(with_another_mapping, NULL);
    os_later_check();
    assert_ptr_equal(os_pages_alloc(RUN, os_page_size, 0, NULL), missing); /* not in the parent */
    take_and_free_advised(HUGE);
    assert_child(with_another_mapping, NULL);
    os_later_check();
    assert_ptr_equal(os_pages_alloc(HUGE, os_page_size, 0, NULL), missing);
}

TEST(a_window_around_them_stays, begin_with_everything_kept)
{
    struct os_window_words words = {.base = OS_WINDOW_NOWHERE};

    window = os_window_make(RUN, &words);
    if (!window)
        skip();
    free_advised(os_window_take(window, NULL), RUN);
    assert_child(with_another_mapping, NULL);
    end_window();
    window = NULL;
}

static int end_window_when_idle(void *unused)
{
    (void)unused;
    os_busy_leave();
    return with_another_mapping(NULL);
}

/* The window ends before the advice is undone. A part of the hole stays, because the child could
 * not know of it otherwise. */
TEST(it_stays_after_a_fork_that_took_nothing, begin_with_everything_kept)
{
    struct os_window_words words = {.base = OS_WINDOW_NOWHERE};

    window = os_window_make(RUN, &words);
    if (!window)
        skip();
    advised = 2;
    free_advised(os_window_take(window, NULL), RUN);
    advised = 1;
    os_busy_enter();
    assert_child(end_window_when_idle, NULL);
    os_busy_leave();
    end_window();
    window = NULL;
}

static int when_idle(void *unused)
{
    (void)unused;
    os_busy_leave();
    return use_other_pages();
}

/* The fork takes no lock, so its handler in the child reads no list. */
TEST(they_are_lost_after_a_fork_that_took_nothing, begin_with_everything_kept)
{
    for (unsigned i = 0; i < 2; i++) {
        take_and_free_advised(i ? HUGE : RUN);
        os_busy_enter();
        assert_child(when_idle, NULL);
        os_busy_leave();
        os_later_check();
    }
}

static void fork_once(const char *call)
{
    if (child < 0 && strcmp(call, "madvise") == 0)
        child = fork();
}

TEST(so_are_those_that_the_forking_thread_has_in_hand, begin_with_everything_kept)
{
    int status;

    take_and_free_advised(RUN);
    mapping_watch(fork_once);
    os_later_check();
    mapping_watch(NULL);
    if (!child)
        _exit(use_other_pages());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 42 << 8);
}

SUITE()
