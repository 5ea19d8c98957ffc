#!/bin/bash
# SPDX-License-Identifier: MIT
# realloc of glibc to the size that malloc_usable_size says makes a mapped block a page larger each time.
#
# Guess, written before the run: realloc(p, malloc_usable_size(p)) returns p for all sizes up to 1 MB, with each allocator, and so does realloc to
# one byte less.
#
# Seen (glibc 2.36, jemalloc 5.3.0, mimalloc 2.0.9, tcmalloc 2.10, tbbmalloc 2021.8 and scudo of LLVM 19 of Debian 12, x86-64): true of all but glibc.
# There a block above M_MMAP_THRESHOLD is a mapping of whole pages, and malloc_usable_size is all of it without the header. realloc counts a word
# more, and rounds up to another page. So each such call is an mremap, which may move the block, and the usable size is a page larger
# afterwards. A buffer of 200,000 bytes whose owner asks a thousand times for the size that it has already takes 4 MB. Blocks that are not mapped
# stay as they are.
#
# For us: realloc to malloc_usable_size changes nothing, in all size classes and above them.
. "$(dirname "$0")/common.sh"
only_x86_64

unpack libc6=2.36-9+deb12u14 libjemalloc2=5.3.0-1 libmimalloc2.0=2.0.9+ds-2 libtcmalloc-minimal4=2.10-1 libtbbmalloc2=2021.8.0-2+deb12u1 \
    libclang-rt-19-dev=1:19.1.7-3~deb12u1

cat >same.c <<'END'
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

/* Asks a thousand times for the size that a block has already, and prints by how many pages it has grown. */
static void show(size_t size)
{
    void *block = malloc(size);
    size_t first = malloc_usable_size(block);

    for (int i = 0; i < 1000; i++)
        block = realloc(block, malloc_usable_size(block));
    printf("%zu bytes: %zu pages more; ", size, (malloc_usable_size(block) - first) / 4096);
    free(block);
}

int main(void)
{
    show(100000);
    show(200000);
    return 0;
}
END
gcc -O0 -w same.c -o same
glibc=$folder/root/lib/x86_64-linux-gnu
libraries=$folder/root/usr/lib/x86_64-linux-gnu
found=$(for name in glibc jemalloc mimalloc tcmalloc tbbmalloc scudo; do
    echo -n "$name: $(LD_PRELOAD=$(library_of $name) "$glibc/ld-linux-x86-64.so.2" --library-path "$glibc:$libraries" ./same)"
done)
echo "$found"
none="100000 bytes: 0 pages more; 200000 bytes: 0 pages more; "
expect "$found" "glibc: 100000 bytes: 0 pages more; 200000 bytes: 1000 pages more; \
jemalloc: ${none}mimalloc: ${none}tcmalloc: ${none}tbbmalloc: ${none}scudo: $none"
