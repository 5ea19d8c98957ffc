#!/bin/bash
# SPDX-License-Identifier: MIT
# UFFDIO_COPY of userfaultfd puts a page over a guard page (MADV_GUARD_INSTALL). UFFDIO_ZEROPAGE does not.
#
# Guess, written before the run: userfaultfd (MISSING) on a range with a guard page: UFFDIO_COPY, UFFDIO_ZEROPAGE into the guard give EEXIST, and the
# guard stays.
#
# Seen (Linux 6.18, x86-64): UFFDIO_ZEROPAGE gives EEXIST and the guard stays. UFFDIO_COPY succeeds, and the guard is a page with the data. A guard
# made by mprotect() is a property of the mapping and keeps its effect. A guard page is a marker in the page table, and UFFDIO_COPY writes over any
# marker. So a pager that restores whole mappings, as those of migrations and snapshots may do, removes the guards in them without an error.
#
# For us: restored memory gets its guards again, after it was filled.
. "$(dirname "$0")/common.sh"
only_x86_64

cat >fill.c <<'END'
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 8 };

static char *pages, *data;

static const char *name_of(int result)
{
    return !result ? "succeeds" : errno == EEXIST ? "EEXIST" : "another error";
}

/* Tells what the kernel reads at the page for the program. */
static void tell(const char *call, int result, int page)
{
    const char *name = name_of(result);
    int ends[2], there;
    char first;

    if (pipe(ends))
        return;
    there = write(ends[1], pages + page * PAGE, 1) == 1 && read(ends[0], &first, 1) == 1;
    close(ends[0]);
    close(ends[1]);
    printf("%s %s, %s; ", call, name, !there ? "EFAULT" : first ? "data" : "zeros");
}

int main(void)
{
    int fault = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
    struct uffdio_api api = {.api = UFFD_API};
    struct uffdio_register range = {.mode = UFFDIO_REGISTER_MODE_MISSING};
    struct uffdio_zeropage zero = {0};
    struct uffdio_copy copy = {0};
    int result;

    pages = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    data = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(data, 1, PAGE);
    if (fault < 0 || ioctl(fault, UFFDIO_API, &api) || madvise(pages + 2 * PAGE, 2 * PAGE, 102 /* MADV_GUARD_INSTALL */))
        return 77;
    range.range.start = (uintptr_t)pages;
    range.range.len = PAGES * PAGE;
    if (ioctl(fault, UFFDIO_REGISTER, &range))
        return 1;
    tell("guard", 0, 2);
    zero.range.start = (uintptr_t)(pages + 2 * PAGE);
    zero.range.len = PAGE;
    result = ioctl(fault, UFFDIO_ZEROPAGE, &zero);
    tell("UFFDIO_ZEROPAGE", result, 2);
    copy.dst = (uintptr_t)(pages + 3 * PAGE);
    copy.src = (uintptr_t)data;
    copy.len = PAGE;
    result = ioctl(fault, UFFDIO_COPY, &copy);
    tell("UFFDIO_COPY", result, 3);
    copy.dst = (uintptr_t)(pages + 4 * PAGE);
    copy.copy = 0;
    mprotect(pages + 4 * PAGE, PAGE, PROT_NONE);
    result = ioctl(fault, UFFDIO_COPY, &copy);
    tell("UFFDIO_COPY after mprotect", result, 4);
    return 0;
}
END
gcc -O1 fill.c -o fill
status=0
found=$(./fill) || status=$?
if [ $status -eq 77 ]; then
    leave_out "the kernel has no MADV_GUARD_INSTALL (Linux 6.13), or no userfaultfd for this user"
fi
echo "Linux $(uname -r | cut -d. -f1-2): $found"
right="guard succeeds, EFAULT; UFFDIO_ZEROPAGE EEXIST, EFAULT; UFFDIO_COPY succeeds, data; UFFDIO_COPY after mprotect succeeds, EFAULT; "
expect "$found" "$right"
