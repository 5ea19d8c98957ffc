/* SPDX-License-Identifier: MIT */
/*
 * Memory that is moved by its page tables is one mapping afterwards, since Linux before 6.17 neither
 * moves nor extends several; and what the system refused to move does no harm.
 */
#include <inttypes.h>
#include <sys/mman.h>

#include "support/pages.h"

static char owner;

static char *take(size_t bytes)
{
    char *block = os_pages_alloc(bytes, OS_PAGE_SIZE, 0, NULL);

    assert_non_null(block);
    assert_true(os_page_owner_set(block, bytes, &owner));
    return block;
}

static void give(char *block, size_t bytes)
{
    os_page_owner_set(block, bytes, NULL);
    os_pages_free(block, bytes);
}

static char *resize(char *block, size_t bytes, size_t wanted)
{
    char *resized = os_pages_resize(block, bytes, wanted, &owner);

    if (resized && wanted > bytes)
        memset(resized + bytes, 1, wanted - bytes);
    return resized;
}

/* Of how many mappings the block consists, as the system counts them. */
static unsigned mappings_of(const char *block, size_t bytes)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    uintptr_t start, end;
    char line[4096];
    unsigned count = 0;

    assert_non_null(maps);
    while (fgets(line, sizeof line, maps))
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &start, &end) == 2)
            count += start < (uintptr_t)block + bytes && end > (uintptr_t)block;
    fclose(maps);
    return count;
}

/* Grows step by step to 100 MiB, with somebody right behind it each time. */
static void stays_one_mapping(size_t bytes)
{
    char *block = take(bytes), *others[100];
    unsigned steps = 0, moves = 0;

    memset(block, 1, bytes);
    for (size_t wanted; bytes < 100 * MIB; bytes = wanted) {
        char *grown;

        others[steps++] = take(MIB);
        wanted = round_up(bytes * 5 / 4, OS_PAGE_SIZE);
        grown = resize(block, bytes, wanted);
        if (!grown)
            skip(); /* a system without MREMAP_DONTUNMAP */
        moves += grown != block;
        block = grown;
        assert_int_equal(mappings_of(block, wanted), 1);
    }
    assert_in_range(moves, 1, steps - 1);
    give(block, bytes);
    while (steps)
        give(others[--steps], MIB);
}

static void a_span_that_grows(void **state)
{
    (void)state;
    stays_one_mapping(RUN_MAX + MIB);
}

static void a_run_that_grows(void **state)
{
    (void)state;
    stays_one_mapping(3 * MIB);
}

/* A program has protected a page of its block. Whether it could be moved or not: whoever gets the
 * address space next can use all of it. */
static void protected_in_the_middle(size_t bytes)
{
    const size_t wanted = 3 * bytes;
    char *block = take(bytes), *behind = take(MIB), *others[8], *resized;

    memset(block, 1, bytes);
    assert_int_equal(mprotect(block + MIB, OS_PAGE_SIZE, PROT_READ), 0);
    for (unsigned i = 0; i < 4; i++) {
        resized = os_pages_resize(block, bytes, wanted, &owner);
        if (resized)
            break;
        assert_int_equal(pages().used, bytes + MIB);
    }
    if (resized)
        block = resized;
    assert_int_equal(mprotect(block + MIB, OS_PAGE_SIZE, PROT_READ | PROT_WRITE), 0);
    for (size_t at = 0; at < bytes; at += OS_PAGE_SIZE)
        assert_int_equal(block[at], 1);
    for (unsigned i = 0; i < 8; i++) {
        others[i] = take(wanted);
        memset(others[i], (int)i + 2, wanted);
    }
    for (unsigned i = 0; i < 8; i++) {
        for (size_t at = 0; at < wanted; at += OS_PAGE_SIZE)
            assert_int_equal(others[i][at], i + 2);
        give(others[i], wanted);
    }
    give(behind, MIB);
    give(block, resized ? wanted : bytes);
    assert_int_equal(pages().used, 0);
    os_pages_trim();
}

static void a_run_that_is_protected(void **state)
{
    (void)state;
    protected_in_the_middle(4 * MIB);
}

static void a_span_that_is_protected(void **state)
{
    (void)state;
    protected_in_the_middle(RUN_MAX + 2 * MIB);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_span_that_grows, begin_with_everything_kept),
        cmocka_unit_test_setup(a_run_that_grows, begin_with_everything_kept),
        cmocka_unit_test_setup(a_run_that_is_protected, begin_with_everything_kept),
        cmocka_unit_test_setup(a_span_that_is_protected, begin_with_everything_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
