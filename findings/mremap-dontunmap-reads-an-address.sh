#!/bin/bash
# SPDX-License-Identifier: MIT
# mremap with MREMAP_DONTUNMAP reads the fifth argument, which a call without MREMAP_FIXED does not have.
#
# Guess, written before the run: mremap(pages, bytes, bytes, MREMAP_MAYMOVE | MREMAP_DONTUNMAP) moves the pages, natively as under QEMU.
#
# Seen (Linux 6.18, glibc 2.36, musl 1.2.3, x86-64): the manual page has a fifth argument for MREMAP_FIXED only. glibc hands the register of the
# fifth argument to the kernel as the caller left it. With MREMAP_DONTUNMAP the kernel reads it as the wish for a place. If it is not the address of
# a page, the call fails with EINVAL. If it is, and the place is free, the pages go there. With MREMAP_MAYMOVE alone it is not read. The mremap() of
# musl gives zero unless MREMAP_FIXED is set, so there the wish has no effect. A call of four arguments therefore fails or not by what the function
# before has left in a register.
#
# For us: give the address always, NULL if there is none.
. "$(dirname "$0")/common.sh"
only_x86_64

unpack libc6-dev=2.36-9+deb12u14 musl-dev=1.2.3-1

cat >move.c <<'END'
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>

enum { PAGE = 4096, DONTUNMAP = 4 };

static void move(const char *name, int flags, void *wish)
{
    char *room = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *moved;

    room[PAGE] = 1;
    moved = mremap(room + PAGE, PAGE, PAGE, flags, wish);
    if (moved == MAP_FAILED)
        printf("%s %s; ", name, errno == EINVAL ? "EINVAL" : "another error");
    else
        printf("%s %s; ", name, moved == room + PAGE ? "stays" : moved == wish ? "at the wish" : "moved");
}

int main(void)
{
    move("none", MREMAP_MAYMOVE | DONTUNMAP, NULL);
    move("odd", MREMAP_MAYMOVE | DONTUNMAP, (void *)1);
    move("odd without DONTUNMAP", MREMAP_MAYMOVE, (void *)1);
    move("free place", MREMAP_MAYMOVE | DONTUNMAP, (void *)0x200000000000);
    puts("");
    return 0;
}
END
library=root/usr/lib/x86_64-linux-gnu
gcc -O1 -static -B "$library" -L "$library" move.c -o with-glibc
library=root/usr/lib/x86_64-linux-musl
gcc -O1 -static -nostdinc -isystem root/usr/include/x86_64-linux-musl -nostdlib move.c "$library/crt1.o" "$library/crti.o" "$library/libc.a" \
    "$library/crtn.o" -o with-musl
found="glibc 2.36: $(./with-glibc)musl 1.2.3: $(./with-musl)"
echo "$found"
right="glibc 2.36: none moved; odd EINVAL; odd without DONTUNMAP stays; free place at the wish; "
right+="musl 1.2.3: none moved; odd moved; odd without DONTUNMAP stays; free place moved; "
expect "$found" "$right"
