#!/bin/bash
# SPDX-License-Identifier: MIT
# Under tcmalloc and valgrind, mallinfo tells about their memory, but mallinfo2 about that of glibc, which nobody uses then.
#
# Guess, written before the run: the sum of mallinfo2 grows by the blocks of the program with glibc, with tcmalloc and under valgrind. With
# jemalloc it stays.
#
# Seen (tcmalloc 2.10, valgrind 3.19.0 and jemalloc 5.3.0 of Debian 12, glibc 2.36, x86-64): tcmalloc and valgrind replace mallinfo only. After
# 100 blocks of 100000 bytes, mallinfo has 10 MB more, and mallinfo2 of the same process not a byte. glibc 2.33 marks mallinfo as deprecated and
# names mallinfo2 as its successor. A program that follows reads a heap that does not grow, without any error.
#
# For us: a replacement needs both, from one sum. A test calls both.
. "$(dirname "$0")/common.sh"
only_x86_64

unpack libtcmalloc-minimal4=2.10-1 valgrind=1:3.19.0-1 libjemalloc2=5.3.0-1

cat >sums.c <<'END'
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    static void *volatile blocks[100];
    unsigned old = (unsigned)mallinfo().uordblks;
    size_t new = mallinfo2().uordblks;

    for (int i = 0; i < 100; i++)
        blocks[i] = malloc(100000);
    old = (unsigned)mallinfo().uordblks - old;
    new = mallinfo2().uordblks - new;
    printf("%s and %s; ", old >= 10000000 ? "all" : old ? "some" : "none", new >= 10000000 ? "all" : new ? "some" : "none");
    return 0;
}
END
gcc -O0 -Wno-deprecated-declarations sums.c -o sums
found="glibc: $(./sums)tcmalloc: $(LD_PRELOAD=$(library_of tcmalloc) ./sums)"
found+="valgrind: $(VALGRIND_LIB=$folder/root/usr/libexec/valgrind root/usr/bin/valgrind -q ./sums)"
found+="jemalloc: $(LD_PRELOAD=$(library_of jemalloc) ./sums)"
echo "mallinfo and mallinfo2 with $found"
expect "$found" "glibc: all and all; tcmalloc: all and none; valgrind: all and none; jemalloc: none and none; "
