#!/bin/bash
# SPDX-License-Identifier: MIT
# With mimalloc 3 preloaded, a process that calls mlockall has 1 GiB of memory at once, whatever it allocates.
#
# Guess, written before the run: after mlockall(MCL_CURRENT | MCL_FUTURE) at the start of main, 10,000 blocks of 100 bytes leave at most 20 MB
# resident, with each of glibc, jemalloc, mimalloc, tcmalloc, tbbmalloc and scudo preloaded.
#
# Seen (mimalloc 3.4.3 of PyPI, mimalloc 2.0.9, jemalloc 5.3.0, tcmalloc 2.10, tbbmalloc 2021.8 and scudo of LLVM 19 of Debian 12, glibc 2.36, x86-64): true of all
# but mimalloc. It maps memory for later, of which it may use every page, since the system makes a page only when it is touched: 1 GiB in version 3 and
# 32 MiB in version 2. mlockall makes all pages of a mapping resident, touched or not. So a program that locks its memory to be fast
# and small has a gibibyte before its first malloc. MIMALLOC_ARENA_EAGER_COMMIT=0 leaves the mapping without access, which mlockall skips. Where the
# process may not lock as much, mlockall fails.
#
# For us: addresses that are reserved have no access until they are used, so mlockall skips them.
. "$(dirname "$0")/common.sh"
only_x86_64

[ "$(awk '/^MemAvailable/ { print $2 }' /proc/meminfo)" -gt 3000000 ] || leave_out "this needs 3 GB of free memory"
[ "$(cat /proc/sys/vm/overcommit_memory)" != 2 ] || leave_out "this needs overcommit"

unpack libmimalloc2.0=2.0.9+ds-2 libjemalloc2=5.3.0-1 libtcmalloc-minimal4=2.10-1 libtbbmalloc2=2021.8.0-2+deb12u1 libclang-rt-19-dev=1:19.1.7-3~deb12u1
python3 -m venv python
python/bin/pip --quiet --disable-pip-version-check install --no-deps cmeel-mimalloc==3.4.3

cat >locked.c <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

int main(void)
{
    long pages = 0, mib;
    FILE *file;

    if (mlockall(MCL_CURRENT | MCL_FUTURE))
        return 77;
    for (int i = 0; i < 10000; i++) {
        void *volatile block = malloc(100);

        (void)block;
    }
    file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%*d %ld", &pages) != 1)
        return 1;
    mib = pages * 4096 >> 20;
    printf(mib < 32 ? "less than 32 MiB; " : "%ld MiB; ", mib / 32 * 32);
    return 0;
}
END
gcc -O0 locked.c -o locked
export LD_LIBRARY_PATH="$folder/root/usr/lib/x86_64-linux-gnu"
run() { # run NAME LIBRARY [OPTION]
    echo -n "$1: "
    env ${3:+"$3"} LD_PRELOAD="$2" ./locked || leave_out "the process may not lock its memory"
}
third=$(find "$folder/python" -name 'libmimalloc.so.3')
found=$(
    for allocator in glibc jemalloc tcmalloc tbbmalloc scudo; do
        run $allocator "$(library_of $allocator)"
    done
    run "mimalloc 2.0.9" "$(library_of mimalloc)"
    run "mimalloc 3.4.3" "$third"
    run "without eager commit" "$third" MIMALLOC_ARENA_EAGER_COMMIT=0
)
echo "$found"
less="less than 32 MiB"
expect "$found" "glibc: $less; jemalloc: $less; tcmalloc: $less; tbbmalloc: $less; scudo: $less; \
mimalloc 2.0.9: 32 MiB; mimalloc 3.4.3: 1024 MiB; without eager commit: $less; "
