#!/bin/bash
# SPDX-License-Identifier: MIT
# In a process with mlockall, free() of jemalloc and scudo sets errno to EINVAL.
#
# Guess, written before the run: mlockall(MCL_CURRENT|MCL_FUTURE), errno = 0, free of 64 MiB in 4 KiB blocks and of a 64 MiB block: errno stays 0 in
# all, EINVAL in tcmalloc.
#
# Seen (jemalloc 5.3.0, mimalloc 2.0.9, tcmalloc 2.10, tbbmalloc 2021.8 and scudo of LLVM 19 of Debian 12, glibc 2.36, x86-64): jemalloc sets errno
# when the large block is freed, scudo for some of the small ones, tcmalloc and the others never. They give pages back with MADV_DONTNEED, which
# the kernel refuses for locked memory, and leave the error in errno. POSIX of 2024 says that free() does not change errno, glibc promises it since
# 2.33, and so newer code does not save errno around free(). Programs that lock their memory, such as those with deadlines, see wrong errors then.
#
# For us: free() of the preloaded library keeps errno here. Its test for that locks the memory, too (`free_of_locked_memory_keeps_errno`).
. "$(dirname "$0")/common.sh"
only_x86_64

unpack libjemalloc2=5.3.0-1 libmimalloc2.0=2.0.9+ds-2 libtcmalloc-minimal4=2.10-1 libtbbmalloc2=2021.8.0-2+deb12u1 \
    libclang-rt-19-dev=1:19.1.7-3~deb12u1

cat >locked.c <<'END'
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { BLOCKS = 16384, BLOCK = 4096, LARGE = BLOCKS * BLOCK };

/* Frees the block, and returns the error that errno has then. */
static int errno_of_free(void *block)
{
    errno = 0;
    free(block);
    return errno;
}

int main(void)
{
    static void *blocks[BLOCKS];
    const char *seen = "none";
    void *large;
    int error;

    if (mlockall(MCL_CURRENT | MCL_FUTURE))
        return 77;
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(BLOCK);
        if (!blocks[i])
            return 77;
        memset(blocks[i], 1, BLOCK);
    }
    large = malloc(LARGE);
    if (!large)
        return 77;
    memset(large, 1, LARGE);
    for (int i = 0; i < BLOCKS; i++) {
        error = errno_of_free(blocks[i]);
        if (error)
            seen = error == EINVAL ? "EINVAL" : "another";
    }
    error = errno_of_free(large);
    printf("small %s, large %s; ", seen, !error ? "none" : error == EINVAL ? "EINVAL" : "another");
    return 0;
}
END
gcc -O1 -fno-builtin locked.c -o locked
libraries=$folder/root/usr/lib/x86_64-linux-gnu
export LD_LIBRARY_PATH=$libraries
found=""
for name in glibc jemalloc mimalloc tcmalloc tbbmalloc scudo; do
    status=0
    said=$(LD_PRELOAD=$(library_of $name) ./locked) || status=$?
    [ $status -ne 77 ] || leave_out "this user may not lock so much memory"
    found+="$name: $said"
done
echo "jemalloc 5.3.0, mimalloc 2.0.9, tcmalloc 2.10, tbbmalloc 2021.8, scudo 19.1.7: $found"
right="glibc: small none, large none; jemalloc: small none, large EINVAL; mimalloc: small none, large none; tcmalloc: small none, large none; "
right+="tbbmalloc: small none, large none; scudo: small EINVAL, large none; "
expect "$found" "$right"
