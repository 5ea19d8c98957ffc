#!/bin/bash
# SPDX-License-Identifier: MIT
# mprotect and MADV_DONTNEED over a range whose end is sealed (mseal) fail with EPERM, but have changed the beginning. munmap and mmap change nothing.
#
# Guess, written before the run: mseal on writable private memory: MADV_DONTNEED works, MADV_FREE works, MADV_GUARD_INSTALL works, MADV_WIPEONFORK
# works, mlock works, MADV_HUGEPAGE works, MADV_DONTFORK works. munmap of a range of which the second half is sealed: EPERM, the first half stays.
# (The program wrote to the first half after the mprotect, as one that was still writable, and was ended by that.)
#
# Seen (Linux 6.18, x86-64): all that the guess names is so. munmap, mremap and mmap with MAP_FIXED over both halves fail and change nothing. mprotect
# and, where both halves are read-only, MADV_DONTNEED check mapping after mapping while they change them. When they fail, the first half is read-only,
# or its data are gone. A program that takes EPERM as "nothing has happened" writes to memory that is read-only then. Which calls are of which
# kind is not to be seen from the error.
#
# For us: after an mprotect that fails, set the protection of the whole range again, or use one call for each mapping.
. "$(dirname "$0")/common.sh"
only_x86_64

cat >half.c <<'END'
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096, HALF = 8 * PAGE, MSEAL = 462 };

/* Maps two halves, of which the second is sealed. Its neighbours have another protection. */
static char *halves(int protection)
{
    char *room = mmap(NULL, 2 * HALF + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *pages = room + PAGE;

    mprotect(pages, 2 * HALF, PROT_READ | PROT_WRITE);
    memset(pages, 1, 2 * HALF);
    mprotect(pages, 2 * HALF, protection);
    return syscall(MSEAL, pages + HALF, HALF, 0) ? NULL : pages;
}

static char letter_of(char *page)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    unsigned long start, end;
    char line[512], mode[8], letter = '-';

    while (maps && fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx %7s", &start, &end, mode) == 3 && start <= (unsigned long)page && (unsigned long)page < end)
            letter = mode[1] == 'w' ? 'w' : mode[0];
    if (maps)
        fclose(maps);
    return letter;
}

/* Tells the end of a call, and what may be done with both halves then. */
static void tell(const char *call, long result, char *pages)
{
    const char *end = result != -1 ? "succeeds" : errno == EPERM ? "EPERM" : "another error";

    printf("%s %s, %c%c; ", call, end, letter_of(pages), letter_of(pages + HALF));
}

int main(void)
{
    char *pages = halves(PROT_READ | PROT_WRITE);

    if (!pages)
        return 77;
    tell("mprotect", mprotect(pages, 2 * HALF, PROT_READ), pages);
    pages = halves(PROT_READ | PROT_WRITE);
    tell("munmap", munmap(pages, 2 * HALF), pages);
    pages = halves(PROT_READ | PROT_WRITE);
    tell("mmap", (long)mmap(pages, 2 * HALF, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), pages);
    pages = halves(PROT_READ | PROT_WRITE);
    tell("mremap", (long)mremap(pages, 2 * HALF, PAGE, 0), pages);
    pages = halves(PROT_READ);
    tell("MADV_DONTNEED", madvise(pages, 2 * HALF, MADV_DONTNEED), pages);
    printf("first half %s\n", pages[0] ? "kept" : "dropped");
    return 0;
}
END
gcc -O1 half.c -o half
status=0
found=$(./half) || status=$?
if [ $status -eq 77 ]; then
    leave_out "the kernel has no mseal (Linux 6.10)"
fi
echo "Linux $(uname -r | cut -d. -f1-2): $found"
expect "$found" "mprotect EPERM, rw; munmap EPERM, ww; mmap EPERM, ww; mremap EPERM, ww; MADV_DONTNEED EPERM, rr; first half dropped"
