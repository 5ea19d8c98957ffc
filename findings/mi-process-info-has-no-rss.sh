#!/bin/bash
# SPDX-License-Identifier: MIT
# current_rss of mimalloc's mi_process_info is not the resident set. It is what mimalloc has committed, touched or not.
#
# Guess, written before the run: mi_process_info of mimalloc: current_rss grows by 100 MB when the program maps and writes 100 MB by mmap itself, and
# by 100 MB when mi_malloc'ed memory is written.
#
# Seen (mimalloc 2.0.9 of Debian 12, glibc 2.36, x86-64, Linux): current_rss does not change by 100 MiB that the program maps and writes itself. It
# grows by 100 MiB at mi_malloc(), before a page of it is there, and not when the pages are written. It is always equal to current_commit. peak_rss is the
# true peak of the process, so the current value may be above the peak. On Linux mimalloc reads getrusage only, which has no current value.
#
# For us: a statistic that has a name of the system comes from the system. Where it is our own sum, it has another name.
. "$(dirname "$0")/common.sh"
only_x86_64

unpack libmimalloc2.0=2.0.9+ds-2 libmimalloc-dev=2.0.9+ds-2

cat >resident.c <<'END'
#include <mimalloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { BYTES = 100 << 20 };

/* Tells how many MiB there are more than at the last call, to tens, and whether the sum is above the peak. */
static void tell(const char *step)
{
    static size_t last;
    size_t resident, peak, commit;

    mi_process_info(NULL, NULL, NULL, &resident, &peak, &commit, NULL, NULL);
    if (step)
        printf("%s %+ld%s%s; ", step, ((long)resident - (long)last) / (10 << 20) * 10, resident > peak ? ", above the peak" : "",
            resident == commit ? "" : ", not the commit");
    last = resident;
}

int main(void)
{
    char *mapped, *allocated;

    mi_free(mi_malloc(100)); /* the first block commits more */
    tell(NULL);
    mapped = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(mapped, 1, BYTES);
    tell("mapped and written");
    munmap(mapped, BYTES);
    tell("unmapped");
    allocated = mi_malloc(2 * BYTES);
    tell("allocated");
    memset(allocated, 1, 2 * BYTES);
    tell("written");
    puts("");
    return 0;
}
END
library=root/usr/lib/x86_64-linux-gnu
include=$(dirname "$(find root/usr -name mimalloc.h)")
gcc -O1 -isystem "$include" resident.c -L "$library" -lmimalloc -o resident
found=$(LD_LIBRARY_PATH="$library" ./resident)
echo "mimalloc 2.0.9: $found"
expect "$found" "mapped and written +0; unmapped +0; allocated +200, above the peak; written +0, above the peak; "
