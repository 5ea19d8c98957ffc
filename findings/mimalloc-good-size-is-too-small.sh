#!/bin/bash
# SPDX-License-Identifier: MIT
# mi_good_size of mimalloc gives less than a block really has, for most sizes above 128 KiB.
#
# Guess, written before the run: mi_good_size(n) of mimalloc and nallocx(n, 0) of jemalloc and tcmalloc equal the usable size of malloc(n), for
# all sizes to 4 MiB.
#
# Seen (mimalloc 2.0.9, jemalloc 5.3.0 and tcmalloc 2.10 of Debian 12, x86-64): to 128 KiB all are equal. Above, mi_good_size rounds up to 4 KiB,
# but blocks have coarser sizes: 131073 bytes have a good size of 135168 and a usable size of 196608. A caller that grows a buffer to the good
# size does not use up to 508 KiB of it. nallocx is right for all sizes.
#
# For us: a size that is predicted has to come from the code that allocates, and a test compares both over all classes.
. "$(dirname "$0")/common.sh"
only_x86_64

unpack libmimalloc2.0=2.0.9+ds-2 libjemalloc2=5.3.0-1 libtcmalloc-minimal4=2.10-1

cat >sizes.c <<'END'
#include <dlfcn.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    size_t (*good)(size_t) = (size_t(*)(size_t))dlsym(RTLD_DEFAULT, "mi_good_size");
    size_t (*nallocx)(size_t, int) = (size_t(*)(size_t, int))dlsym(RTLD_DEFAULT, "nallocx");
    size_t first = 0, there = 0, most = 0;

    if (!good && !nallocx)
        return 1;
    for (size_t bytes = 1; bytes <= 4 << 20; bytes += bytes < 4096 ? 1 : bytes < 131072 ? 64 : bytes == 131072 ? 1 : 1021) {
        void *block = malloc(bytes);
        size_t usable = malloc_usable_size(block), said = good ? good(bytes) : nallocx(bytes, 0);

        if (said > usable)
            return 1;
        if (said < usable && !first) {
            first = bytes;
            there = usable;
        }
        if (usable - said > most)
            most = usable - said;
        free(block);
    }
    printf("first at %zu (%zu), most %zu; ", first, there, most);
    return 0;
}
END
gcc -O0 sizes.c -o sizes
found="mimalloc 2.0.9: $(LD_PRELOAD=$(library_of mimalloc) ./sizes)"
found+="jemalloc 5.3.0: $(LD_PRELOAD=$(library_of jemalloc) ./sizes)"
found+="tcmalloc 2.10: $(LD_PRELOAD=$(library_of tcmalloc) ./sizes)"
echo "$found"
right="mimalloc 2.0.9: first at 131073 (196608), most 520192; "
right+="jemalloc 5.3.0: first at 0 (0), most 0; tcmalloc 2.10: first at 0 (0), most 0; "
expect "$found" "$right"
