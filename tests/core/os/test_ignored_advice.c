/* SPDX-License-Identifier: MIT */
/*
 * Guarded pages fault also on a system that answers 0 to every advice and follows little, as QEMU's
 * emulation of a process does. Here a filter answers 0 to all madvise() but MADV_DONTNEED, unless
 * the system does so itself.
 *
 * ctest: not-with thread (ThreadSanitizer installs what a seccomp filter then refuses)
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "support/owned_pages.h"
#include "support/readable.h"

#define NO_ADVICE 0x7fffffff /* no system knows it */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define LOW_WORD 0
#else
#define LOW_WORD 4
#endif

static bool ignores_advice(void)
{
    return madvise(NULL, 0, NO_ADVICE) == 0;
}

static void ignore_advice(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2]) + LOW_WORD),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MADV_DONTNEED, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO), /* the error is 0 */
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof filter / sizeof filter[0], .filter = filter};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

TEST(guarded_pages_fault_where_advice_is_ignored)
{
    size_t bytes = 4 * os_page_size;
    char *pages;

    if (!ignores_advice())
        ignore_advice();
    if (!ignores_advice())
        skip(); /* no filters */
    pages = take(bytes);
    memset(pages, 1, bytes);
    assert_true(os_pages_guard(pages, bytes));
    for (size_t at = 0; at < bytes; at += os_page_size)
        assert_false(is_open(pages + at));
    assert_true(os_pages_unguard(pages, bytes));
    for (size_t at = 0; at < bytes; at += os_page_size)
        assert_int_equal(pages[at], 0);
    give(pages, bytes);
}

SUITE()
