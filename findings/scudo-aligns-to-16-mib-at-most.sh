#!/bin/bash
# SPDX-License-Identifier: MIT
# scudo has no memory that is aligned to more than 16 MiB. It says that memory is out.
#
# Guess, written before the run: posix_memalign for 1 byte succeeds for every alignment from 8 to 1 GiB, with each allocator, and the address is
# aligned.
#
# Seen (scudo of LLVM 14 and 19, jemalloc 5.3.0, mimalloc 2.0.9, tcmalloc 2.10 and tbbmalloc 2021.8 of Debian 12, glibc 2.36, x86-64): true of all but
# scudo. Above 16 MiB its posix_memalign returns ENOMEM, and aligned_alloc NULL with errno ENOMEM, although there is memory. So the caller
# frees what it can and tries again; EINVAL would have named the reason. Heaps that find their head by a mask of an address ask for such
# alignments, and so do huge pages of 32 MiB and 1 GiB.
#
# For us: posix_memalign takes every alignment for which there are addresses.
. "$(dirname "$0")/common.sh"
only_x86_64

unpack libclang-rt-14-dev=1:14.0.6-12 libclang-rt-19-dev=1:19.1.7-3~deb12u1 libjemalloc2=5.3.0-1 libmimalloc2.0=2.0.9+ds-2 \
    libtcmalloc-minimal4=2.10-1 libtbbmalloc2=2021.8.0-2+deb12u1

cat >align.c <<'END'
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { GREATEST = 1 << 30 };

int main(void)
{
    size_t alignment;

    for (alignment = 8; alignment <= GREATEST; alignment *= 2) {
        void *block = NULL;
        int error = posix_memalign(&block, alignment, 1);

        if (error || (uintptr_t)block % alignment) {
            void *volatile other;

            errno = 0;
            other = aligned_alloc(alignment, alignment);
            printf("not %zu MiB: posix_memalign %s, aligned_alloc %s; ", alignment >> 20, error == ENOMEM ? "ENOMEM" : "otherwise",
                   !other && errno == ENOMEM ? "ENOMEM" : "otherwise");
            return 0;
        }
        free(block);
    }
    printf("all; ");
    return 0;
}
END
gcc -O1 align.c -o align
export LD_LIBRARY_PATH="$folder/root/usr/lib/x86_64-linux-gnu"
found=$(for allocator in scudo-14 scudo-19 glibc jemalloc mimalloc tcmalloc tbbmalloc; do
    echo -n "$allocator: $(LD_PRELOAD=$(library_of $allocator) ./align)"
done)
echo "$found"
refused="not 32 MiB: posix_memalign ENOMEM, aligned_alloc ENOMEM"
expect "$found" "scudo-14: $refused; scudo-19: $refused; glibc: all; jemalloc: all; mimalloc: all; tcmalloc: all; tbbmalloc: all; "
