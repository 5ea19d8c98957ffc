#!/bin/bash
# SPDX-License-Identifier: MIT
# At a limit of address space, jemalloc returns NULL although nearly all of its memory is free.
#
# Guess, written before the run: RLIMIT_DATA of 256 MiB: fill with 1 KiB blocks to NULL, free all, fill with 64 KiB blocks to NULL, free, then one
# block of 100 MiB: second fill at least 80 % of the first in all but scudo; the 100 MiB block succeeds in all but scudo.
#
# Seen (jemalloc 5.3.0, mimalloc 2.0.9 and tbbmalloc 2021.8 of Debian 12, glibc 2.36, x86-64): glibc, mimalloc and tbbmalloc get all of it again,
# also with RLIMIT_AS. jemalloc gets no block of 64 KiB. Pages that it has freed stay dirty for a while and are not joined. It asks the kernel for
# more instead, and when that fails, malloc() fails. It does not join or purge first. So it needs no failure before: after 200 MiB of small blocks
# only a part of 256 MiB is left for larger ones. mallctl of arena.0.purge helps in part, dirty_decay_ms:0 with retain:false helps.
#
# For us: before an allocation fails, everything that is free is merged and given back, and the allocation is tried again.
. "$(dirname "$0")/common.sh"
only_x86_64

unpack libjemalloc2=5.3.0-1 libmimalloc2.0=2.0.9+ds-2 libtbbmalloc2=2021.8.0-2+deb12u1

cat >fill.c <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

enum { LIMIT = 256, MOST = 1 << 18 };

static void *blocks[MOST];

/* Allocates blocks to `most` MiB or the first NULL, frees all, and returns how many MiB there were. */
static int fill(size_t size, size_t most)
{
    size_t count = 0;

    while (count < (most << 20) / size && (blocks[count] = malloc(size)))
        count++;
    for (size_t i = 0; i < count; i++)
        free(blocks[i]);
    return (int)(count * size >> 20);
}

/* Says how much of the limit is to be had in 64 KiB, after the MiB of the argument were allocated in 1 KiB, and freed. */
int main(int count, char **arguments)
{
    struct rlimit limit = {(rlim_t)LIMIT << 20, (rlim_t)LIMIT << 20};
    int first, second;

    if (count < 2 || setrlimit(RLIMIT_DATA, &limit))
        return 1;
    first = fill(1024, (size_t)atoi(arguments[1]));
    second = fill(65536, LIMIT);
    printf("%s then %s; ", first >= 200 ? "200 MiB or more" : "less", second >= 200 ? "200 MiB or more" : second > 64 ? "less" : "a quarter or less");
    return 0;
}
END
gcc -O1 -fno-builtin fill.c -o fill
export LD_LIBRARY_PATH=$folder/root/usr/lib/x86_64-linux-gnu
found=""
for name in glibc jemalloc mimalloc tbbmalloc; do
    found+="$name: to the end $(LD_PRELOAD=$(library_of $name) ./fill 256)"
    found+="to 200 $(LD_PRELOAD=$(library_of $name) ./fill 200)"
done
found+="jemalloc without decay: $(MALLOC_CONF=dirty_decay_ms:0,retain:false LD_PRELOAD=$(library_of jemalloc) ./fill 256)"
echo "jemalloc 5.3.0, mimalloc 2.0.9, tbbmalloc 2021.8: $found"
all="to the end 200 MiB or more then 200 MiB or more; to 200 200 MiB or more then 200 MiB or more; "
few="to the end 200 MiB or more then a quarter or less; to 200 200 MiB or more then a quarter or less; "
expect "$found" "glibc: ${all}jemalloc: ${few}mimalloc: ${all}tbbmalloc: ${all}jemalloc without decay: 200 MiB or more then 200 MiB or more; "
