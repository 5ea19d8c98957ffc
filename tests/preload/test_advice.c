/* SPDX-License-Identifier: MIT */
/*
 * Advice that a program gives about blocks of malloc (madvise) does not reach the next block at
 * that address: children of fork read the block, core files have it, and mappings do not pile up.
 *
 * RDMA libraries give MADV_DONTFORK, programs that keep secrets MADV_DONTDUMP and WIPEONFORK.
 */
#define _GNU_SOURCE
#include <malloc.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/process_memory.h"
#include "support/suite.h"

#define PAGE 4096u

static bool child_reads(const char *block, size_t size, char what)
{
    int status;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (!pid) {
        signal(SIGSEGV, SIG_DFL);
        for (size_t i = 0; i < size; i += PAGE)
            if (block[i] != what)
                _exit(1);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status == 0;
}

/* The advice is about the block's bytes from `first` up to but not including `end`. */
static void advise_free_and_use(size_t size, size_t first, size_t end, int advice)
{
    for (unsigned round = 0; round < 8; round++) {
        char *block = aligned_alloc(65536, size);

        assert_non_null(block);
        memset(block, 1, size);
        assert_int_equal(madvise(block + first, end - first, advice), 0);
        free(block);
        block = aligned_alloc(65536, size);
        assert_non_null(block);
        memset(block, 7, size);
        assert_true(child_reads(block, size, 7));
        free(block);
    }
}

TEST(children_read_the_next_block)
{
    static const size_t sizes[] = {65536, 1 << 20, 64 << 20};
    static const int advice[] = {MADV_DONTFORK, MADV_WIPEONFORK};

    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (unsigned j = 0; j < 2; j++) {
            advise_free_and_use(sizes[i], 0, sizes[i], advice[j]);
            advise_free_and_use(sizes[i], sizes[i] / 2, sizes[i] / 4 * 3, advice[j]);
        }
    }
}

/* Blocks of slabs lose it when their slab's pages are freed, at the latest by malloc_trim. */
TEST(mappings_do_not_pile_up)
{
    static void *blocks[6000];
    unsigned before;

    free(malloc(1));
    before = mappings();
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < 6000; i++) {
            blocks[i] = aligned_alloc(PAGE, 8192);
            assert_non_null(blocks[i]);
            memset(blocks[i], 1, 8192);
            if (i % 2)
                assert_int_equal(madvise(blocks[i], PAGE, MADV_DONTDUMP), 0);
        }
        for (unsigned i = 0; i < 6000; i++)
            free(blocks[i]);
    }
    malloc_trim(0);
    assert_true(mappings() < before + 100);
}

/* Other advice, and ranges that are not ours, are the C library's alone. */
TEST(other_calls_are_passed_on)
{
    char *pages =
        mmap(NULL, (size_t)16 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(pages, MAP_FAILED);
    pages[0] = 1;
    assert_int_equal(madvise(pages, (size_t)16 * PAGE, MADV_DONTFORK), 0);
    assert_int_equal(madvise(pages, (size_t)16 * PAGE, MADV_DONTNEED), 0);
    assert_int_equal(pages[0], 0);
    assert_false(child_reads(pages, PAGE, 0));
    assert_int_equal(madvise(pages + 1, PAGE, MADV_DONTFORK), -1);
    assert_int_equal(madvise((void *)(UINTPTR_MAX - PAGE + 1), 2 * PAGE, MADV_DONTDUMP), -1);
    munmap(pages, (size_t)16 * PAGE);
}

SUITE()
