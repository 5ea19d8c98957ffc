/* SPDX-License-Identifier: MIT */
/*
 * Advice that lasts (madvise) is undone when the pages that have it are freed: in runs, huge
 * mappings and windows, also if the free happens while something is held, with a window that
 * ends, and in a child of fork. Pages wait out of circulation until then.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pages/pages.h"
#include "support/pages.h"

#define RUN (4 * os_page_size)

/* Returns whether the mapping that has the address has a flag of /proc/self/smaps: "dc" (not in
 * children), "dd" (not in core files) or "wf" (wiped in children). */
static bool has_flag(const void *address, const char *flag)
{
    FILE *maps = fopen("/proc/self/smaps", "r");
    unsigned long start, end;
    bool is_it = false, has = false;
    char line[512], word[8];

    assert_non_null(maps);
    snprintf(word, sizeof word, " %s", flag);
    while (fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
            is_it = (uintptr_t)address - start < end - start;
        if (is_it && !strncmp(line, "VmFlags:", 8))
            has = strstr(line, word) != NULL;
    }
    fclose(maps);
    return has;
}

static void advise_and_note(char *base, char *start, size_t bytes, int advice, unsigned kind)
{
    assert_int_equal(madvise(start, bytes, advice), 0);
    pages_note_advice(base, start, bytes, kind);
}

TEST(a_run_loses_it_when_freed, begin_with_everything_kept)
{
    char *run = os_pages_alloc(RUN, os_page_size, 0, NULL), *next;
    uint64_t used = pages().used;

    advise_and_note(run, run + os_page_size, os_page_size, MADV_DONTFORK, MAPPING_DONTFORK);
    advise_and_note(run, run + 2 * os_page_size, os_page_size, MADV_DONTDUMP, MAPPING_DONTDUMP);
    advise_and_note(run, run + 3 * os_page_size, os_page_size, MADV_WIPEONFORK, MAPPING_WIPEONFORK);
    assert_true(has_flag(run + os_page_size, "dc"));
    os_pages_free(run, RUN);
    assert_int_equal(pages().used, used); /* out of circulation */
    os_later_check();
    assert_int_equal(pages().used, used - RUN);
    for (char *page = run; page < run + RUN; page += os_page_size) {
        assert_false(has_flag(page, "dc"));
        assert_false(has_flag(page, "dd"));
        assert_false(has_flag(page, "wf"));
    }
    next = os_pages_alloc(RUN, os_page_size, 0, NULL);
    assert_ptr_equal(next, run);
    os_pages_free(next, RUN); /* nothing remains to undo */
    assert_int_equal(pages().used, used - RUN);
}

TEST(what_is_not_undone_yet_is_not_handed_out, begin_with_everything_kept)
{
    char *run = os_pages_alloc(RUN, os_page_size, 0, NULL), *next;

    advise_and_note(run, run, RUN, MADV_DONTFORK, MAPPING_DONTFORK);
    os_busy_enter();
    os_pages_free(run, RUN);
    next = os_pages_alloc(RUN, os_page_size, 0, NULL);
    assert_ptr_not_equal(next, run);
    os_busy_leave();
    os_later_check();
    os_pages_free(next, RUN);
    assert_ptr_equal(os_pages_alloc(RUN, os_page_size, 0, NULL), run);
    os_pages_free(run, RUN);
}

TEST(neighbours_keep_theirs, begin_with_everything_kept)
{
    char *run = os_pages_alloc(RUN, os_page_size, 0, NULL);
    char *other = os_pages_alloc(RUN, os_page_size, 0, NULL);

    advise_and_note(run, run, RUN, MADV_DONTDUMP, MAPPING_DONTDUMP);
    advise_and_note(other, other, RUN, MADV_DONTDUMP, MAPPING_DONTDUMP);
    os_pages_free(run, RUN);
    os_later_check();
    assert_false(has_flag(run, "dd"));
    assert_true(has_flag(other, "dd"));
    os_pages_free(other, RUN);
    os_later_check();
    assert_false(has_flag(other, "dd"));
}

TEST(the_end_of_a_run_that_shrinks_loses_it, begin_with_everything_kept)
{
    char *run = os_pages_alloc(RUN, os_page_size, 0, NULL);

    assert_true(os_page_owner_set(run, RUN, run));
    advise_and_note(run, run, RUN, MADV_DONTDUMP, MAPPING_DONTDUMP);
    assert_ptr_equal(os_pages_resize(run, RUN, os_page_size, run), run);
    os_later_check();
    assert_true(has_flag(run, "dd"));
    assert_false(has_flag(run + os_page_size, "dd"));
    os_page_owner_set(run, os_page_size, NULL);
    os_pages_free(run, os_page_size);
    os_later_check();
    assert_false(has_flag(run, "dd"));
}

/* The memory and its advice move to another place; the old place is freed. */
TEST(a_run_that_moves_takes_it_along, begin_with_everything_kept)
{
    char *run = os_pages_alloc(4 * MIB, os_page_size, 0, NULL), *moved;

    assert_true(os_page_owner_set(run, 4 * MIB, run));
    advise_and_note(run, run, 4 * MIB, MADV_DONTDUMP, MAPPING_DONTDUMP);
    moved = os_pages_resize(run, 4 * MIB, 80 * MIB, run);
    if (!moved)
        skip(); /* before Linux 5.7 */
    os_later_check();
    assert_true(has_flag(moved, "dd"));
    assert_false(has_flag(run, "dd"));
    os_page_owner_set(moved, 80 * MIB, NULL);
    os_pages_free(moved, 80 * MIB);
    os_later_check();
    assert_false(has_flag(moved, "dd"));
}

TEST(a_huge_mapping_loses_it_when_freed, begin_with_everything_kept)
{
    char *huge = os_pages_alloc(64 * MIB, os_page_size, 0, NULL);
    uint64_t used = pages().used, retained = pages().retained;

    advise_and_note(huge, huge + MIB, MIB, MADV_DONTFORK, MAPPING_DONTFORK);
    os_pages_free(huge, 64 * MIB);
    os_later_check();
    assert_false(has_flag(huge + MIB, "dc"));
    assert_ptr_equal(os_pages_alloc(64 * MIB, os_page_size, 0, NULL), huge);
    assert_int_equal(pages().used, used);
    assert_int_equal(pages().retained, retained);
    os_pages_free(huge, 64 * MIB);
    assert_ptr_equal(os_pages_alloc(64 * MIB, os_page_size, 0, NULL), huge); /* at once */
    os_pages_free(huge, 64 * MIB);
}

/* The window ends while pages of its places wait. */
TEST(a_window_that_ends, begin_with_everything_kept)
{
    struct os_window_words words = {.base = OS_WINDOW_NOWHERE};
    struct os_window *window = os_window_make(16 * OS_PAGE_SIZE, &words);
    uint64_t used = pages().used, retained = pages().retained;
    char *places[3];

    if (!window)
        skip();
    for (unsigned i = 0; i < 3; i++) {
        places[i] = os_window_take(window, NULL);
        advise_and_note(places[i], places[i], os_page_size, MADV_DONTDUMP, MAPPING_DONTDUMP);
    }
    for (unsigned i = 0; i < 3; i++)
        os_pages_free(places[i], 16 * OS_PAGE_SIZE);
    os_window_unmake(window);
    os_later_check();
    assert_int_equal(pages().used, used);
    assert_int_equal(pages().retained, retained);
}

TEST(a_child_undoes_it_too, begin_with_everything_kept)
{
    char *run = os_pages_alloc(RUN, os_page_size, 0, NULL);
    int status;
    pid_t pid;

    advise_and_note(run, run, RUN, MADV_DONTDUMP, MAPPING_DONTDUMP);
    os_pages_free(run, RUN);
    pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        os_later_check();
        _exit(has_flag(run, "dd") || os_pages_alloc(RUN, os_page_size, 0, NULL) != (void *)run);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    os_later_check();
    assert_false(has_flag(run, "dd"));
}

SUITE()
