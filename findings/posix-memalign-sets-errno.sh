#!/bin/bash
# SPDX-License-Identifier: MIT
# posix_memalign of glibc and tcmalloc sets errno when it fails, although its error is what it returns.
#
# Guess, written before the run: posix_memalign that fails (alignment 3): returns EINVAL, pointer unchanged, errno unchanged in all. posix_memalign of
# PTRDIFF_MAX: ENOMEM, errno unchanged, pointer unchanged.
#
# Seen (glibc 2.36, jemalloc 5.3.0, mimalloc 2.0.9, tcmalloc 2.10, tbbmalloc 2021.8 and scudo of LLVM 19 of Debian 12, x86-64): when there is no memory,
# glibc and tcmalloc set errno as well. All else is as guessed. The manual page of Linux says that errno is not set. So a program that looks at errno
# instead of the result, which is wrong, is right with glibc, and with another allocator it takes an error for success or an old error for this one.
#
# For us: posix_memalign of the preloaded library keeps errno, whatever it returns.
. "$(dirname "$0")/common.sh"
only_x86_64

unpack libc6=2.36-9+deb12u14 libjemalloc2=5.3.0-1 libmimalloc2.0=2.0.9+ds-2 libtcmalloc-minimal4=2.10-1 libtbbmalloc2=2021.8.0-2+deb12u1 \
    libclang-rt-19-dev=1:19.1.7-3~deb12u1

cat >fail.c <<'END'
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static const char *name_of(int error)
{
    return !error ? "nothing" : error == EINVAL ? "EINVAL" : error == ENOMEM ? "ENOMEM" : "another error";
}

static void tell(size_t alignment, size_t size)
{
    void *block = &block;
    int result;

    errno = 0;
    result = posix_memalign(&block, alignment, size);
    printf("%s and %s in errno%s; ", name_of(result), name_of(errno), block == &block ? "" : ", pointer changed");
}

int main(void)
{
    volatile size_t most = PTRDIFF_MAX;

    tell(3, 100);
    tell(64, most);
    return 0;
}
END
gcc -O1 -fno-builtin -w fail.c -o fail
glibc=$folder/root/lib/x86_64-linux-gnu
libraries=$folder/root/usr/lib/x86_64-linux-gnu
found=""
for name in glibc jemalloc mimalloc tcmalloc tbbmalloc scudo; do
    found+="$name: $(LD_PRELOAD=$(library_of $name) "$glibc/ld-linux-x86-64.so.2" --library-path "$glibc:$libraries" ./fail 2>/dev/null)"
done
echo "$found"
keeps="EINVAL and nothing in errno; ENOMEM and nothing in errno; "
sets="EINVAL and nothing in errno; ENOMEM and ENOMEM in errno; "
expect "$found" "glibc: ${sets}jemalloc: ${keeps}mimalloc: ${keeps}tcmalloc: ${sets}tbbmalloc: ${keeps}scudo: $keeps"
