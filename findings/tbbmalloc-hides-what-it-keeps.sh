#!/bin/bash
# SPDX-License-Identifier: MIT
# A large block of tbbmalloc that realloc has made smaller may keep nearly half of its memory, and malloc_usable_size does not count that.
#
# Guess, written before the run: realloc of a written block of 100 MB to 1 KB leaves less than 10 MB resident, with each allocator.
# malloc_usable_size is below 64 KiB then.
#
# Seen (tbbmalloc 2021.8, jemalloc 5.3.0, mimalloc 2.0.9 and tcmalloc 2.10 of Debian 12, glibc 2.36, x86-64): 1 KB is as guessed, but
# tcmalloc keeps the pages of the old block. Above half of the old size, however, tbbmalloc gives no page back, and malloc_usable_size does not say
# so: 51 MB where 100 MB are resident. mimalloc and tcmalloc keep all there as well, and their malloc_usable_size is 100 MB. In glibc and jemalloc
# what is resident is what is usable. tbbmalloc knows the rest, and a realloc to 100 MB has the same address. But a program that adds up
# usable sizes does not see it, and one that lets a buffer grow to its usable size does not use it.
#
# For us: a figure of usable bytes has to include what the block keeps, and what it leaves out has to be free for others.
. "$(dirname "$0")/common.sh"
only_x86_64

unpack libtbbmalloc2=2021.8.0-2+deb12u1 libjemalloc2=5.3.0-1 libmimalloc2.0=2.0.9+ds-2 libtcmalloc-minimal4=2.10-1

cat >smaller.c <<'END'
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { MB = 1000000, PAGE = 4096 };

/* Returns how many MB of the 100 MB from `address` on are resident. */
static size_t resident(uintptr_t address)
{
    size_t pages = 0;

    for (uintptr_t page = address & -(uintptr_t)PAGE; page < address + 100 * MB; page += PAGE) {
        unsigned char is_there = 0;

        pages += !mincore((void *)page, 1, &is_there) && is_there & 1;
    }
    return pages * PAGE / MB;
}

int main(void)
{
    char *volatile block = malloc(100 * MB);
    char *volatile smaller, *volatile again;

    memset(block, 1, 100 * MB);
    smaller = realloc(block, 51 * MB);
    printf("%zu usable, %zu resident", malloc_usable_size(smaller) / MB, resident((uintptr_t)smaller));
    again = realloc(smaller, 100 * MB);
    printf(", %s; ", again == smaller && smaller == block ? "in place" : "moved");
    return 0;
}
END
gcc -O1 smaller.c -o smaller
export LD_LIBRARY_PATH="$folder/root/usr/lib/x86_64-linux-gnu"
found=$(for allocator in tbbmalloc mimalloc tcmalloc glibc jemalloc; do
    echo -n "$allocator: $(LD_PRELOAD=$(library_of $allocator) ./smaller)"
done)
echo "$found"
right="tbbmalloc: 51 usable, 100 resident, in place; mimalloc: 100 usable, 100 resident, in place; tcmalloc: 100 usable, 100 resident, in place; "
right+="glibc: 51 usable, 51 resident, in place; jemalloc: 58 usable, 58 resident, in place; "
expect "$found" "$right"
