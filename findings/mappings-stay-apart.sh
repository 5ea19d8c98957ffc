#!/bin/bash
# SPDX-License-Identifier: MIT
# A mapping that was split by madvise or mlock stays split for good, if its parts are written before the mark is taken back.
#
# Guess, written before the run: after MADV_DONTFORK on the middle of a mapping and MADV_DOFORK on it again, the mapping is one line of
# /proc/self/maps as before. So it is with mlock and munlock, and with mprotect there and back.
#
# Seen (Linux 6.18, x86-64): that is so if the pages were written before the split, or not at all. If the first write to the parts is between
# the two calls, they stay three lines for ever, though all their flags are equal then. MADV_DONTNEED for all pages does not help. Only for
# mprotect the lines become one. In the kernel, a part shares the list of mappings of its pages (anon_vma) with a neighbour at its first write,
# but only if nothing but their protection differs. Otherwise it gets a list of its own, and parts with two lists never merge.
#
# For us: such marks are for whole mappings, or for pages that were written before. Otherwise the number of mappings (vm.max_map_count) grows.
. "$(dirname "$0")/common.sh"

cat >apart.c <<'END'
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static const char *const names[] = {"mprotect", "mlock", "DONTFORK", "DONTDUMP", "RANDOM"};

/* Marks the bytes in one of the ways, or takes the mark back. */
static int mark(int way, int back, char *bytes, size_t size)
{
    static const int advice[][2] = {{MADV_DONTFORK, MADV_DOFORK}, {MADV_DONTDUMP, MADV_DODUMP}, {MADV_RANDOM, MADV_NORMAL}};

    if (way == 0)
        return mprotect(bytes, size, PROT_READ | PROT_WRITE | (back ? 0 : PROT_EXEC));
    if (way == 1)
        return back ? munlock(bytes, size) : mlock2(bytes, size, MLOCK_ONFAULT);
    return madvise(bytes, size, advice[way - 2][back]);
}

static int lines(const char *bytes, size_t size)
{
    unsigned long from, to, start = (unsigned long)bytes;
    FILE *file = fopen("/proc/self/maps", "r");
    int found = 0;
    char line[512];

    while (fgets(line, sizeof line, file))
        found += sscanf(line, "%lx-%lx", &from, &to) == 2 && from < start + size && to > start;
    fclose(file);
    return found;
}

int main(void)
{
    const size_t part = 64 << 10;

    for (int way = 0; way < 5; way++) {
        printf("%s", names[way]);
        for (int early = 1; early >= 0; early--) { /* whether all is written before the mark is set */
            char *room = mmap(NULL, 5 * part, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *pages = room + part;

            if (mprotect(pages, 3 * part, PROT_READ | PROT_WRITE) || (early && !memset(pages, 1, 3 * part)) ||
                mark(way, 0, pages + part, part) || !memset(pages, 1, 3 * part) || mark(way, 1, pages + part, part) ||
                madvise(pages, 3 * part, MADV_DONTNEED))
                return 1;
            printf(" %d", lines(pages, 3 * part));
        }
        printf("; ");
    }
    return 0;
}
END
gcc -O1 apart.c -o apart
found=$(./apart)
echo "Linux $(uname -r | cut -d. -f1-2), lines if written before and if written between: $found"
expect "$found" "mprotect 1 1; mlock 1 3; DONTFORK 1 3; DONTDUMP 1 3; RANDOM 1 3; "
