/* SPDX-License-Identifier: MIT */
/*
 * Memory moved by page tables is one mapping afterwards, because Linux before 6.17 neither moves
 * nor extends several. A refused move does no harm.
 *
 * ctest: not-with thread (one thread, and much to do: nothing to find)
 */
#include <inttypes.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "support/owned_pages.h"

#include "support/gp_child.h"
#include "support/process_memory.h"

static char *resize(char *block, size_t bytes, size_t wanted)
{
    char *resized = os_pages_resize(block, bytes, wanted, &owner);

    if (resized && wanted > bytes)
        memset(resized + bytes, 1, wanted - bytes);
    return resized;
}

/* Returns the number of mappings of the block, as the system counts them. */
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

/* Grows a block step by step to 100 MiB, each time with another block right after it. */
static void stays_one_mapping(size_t bytes)
{
    char *block = take(bytes), *others[100];
    unsigned steps = 0, moves = 0;

    memset(block, 1, bytes);
    for (size_t wanted; bytes < 100 * MIB; bytes = wanted) {
        char *grown;

        others[steps++] = take(MIB);
        wanted = round_up(bytes * 5 / 4, os_page_size);
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

TEST(a_huge_mapping_that_grows, begin_with_everything_kept)
{
    stays_one_mapping(RUN_MAX + MIB);
}

TEST(a_run_that_grows, begin_with_everything_kept)
{
    stays_one_mapping(3 * MIB);
}

/* A program has protected a page of its block. Whether or not the block can be moved, the next user
 * of the address space can use all of it. */
static void protected_in_the_middle(size_t bytes)
{
    const size_t wanted = 3 * bytes;
    char *block = take(bytes), *behind = take(MIB), *others[8], *resized;

    memset(block, 1, bytes);
    assert_int_equal(mprotect(block + MIB, os_page_size, PROT_READ), 0);
    for (unsigned i = 0; i < 4; i++) {
        resized = os_pages_resize(block, bytes, wanted, &owner);
        if (resized)
            break;
        assert_int_equal(pages().used, bytes + MIB);
    }
    if (resized)
        block = resized;
    assert_int_equal(mprotect(block + MIB, os_page_size, PROT_READ | PROT_WRITE), 0);
    for (size_t at = 0; at < bytes; at += os_page_size)
        assert_int_equal(block[at], 1);
    for (unsigned i = 0; i < 8; i++) {
        others[i] = take(wanted);
        memset(others[i], (int)i + 2, wanted);
    }
    for (unsigned i = 0; i < 8; i++) {
        for (size_t at = 0; at < wanted; at += os_page_size)
            assert_int_equal(others[i][at], i + 2);
        give(others[i], wanted);
    }
    give(behind, MIB);
    give(block, resized ? wanted : bytes);
    assert_int_equal(pages().used, 0);
    os_pages_trim();
}

TEST(a_run_that_is_protected, begin_with_everything_kept)
{
    protected_in_the_middle(4 * MIB);
}

TEST(a_huge_mapping_that_is_protected, begin_with_everything_kept)
{
    protected_in_the_middle(RUN_MAX + 2 * MIB);
}

static bool refuse_mremap(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mremap, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof filter / sizeof filter[0], .filter = filter};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}

static int grow_in_vain(void *unused)
{
    char *run = take(3 * MIB), *behind = take(os_page_size);
    size_t before = 0;

    if (!refuse_mremap())
        return 77;
    for (unsigned i = 0; i < 100; i++) {
        if (os_pages_resize(run, 3 * MIB, 4 * MIB, &owner))
            return 1;
        os_pages_trim();
        if (i == 0)
            before = address_space();
    }
    give(behind, os_page_size);
    give(run, 3 * MIB);
    return address_space() > before ? 2 : 42;
}

/* On Linux before 5.7, nothing is lost, not even address space. */
TEST(a_system_that_cannot, begin_with_everything_kept)
{
    struct child_result result;

    child_run(grow_in_vain, NULL, &result);
    if (child_exited_with(&result, 77))
        skip(); /* no seccomp here */
    assert_child_result(&result);
}

SUITE()
