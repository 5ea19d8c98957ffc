#!/bin/bash
# SPDX-License-Identifier: MIT
# QEMU's user mode emulation takes MAP_FIXED_NOREPLACE for a wish: a place that is taken is no error, and the mapping lies elsewhere.
#
# Guess, written before the run: mmap with MAP_FIXED_NOREPLACE over an existing mapping fails with EEXIST under QEMU, as natively.
#
# Seen (QEMU 7.2 of Debian 12, a static x86-64 program, Linux 6.18): QEMU drops the flag. The old mapping keeps its data, but the call succeeds
# with another address. A program that looks for MAP_FAILED only takes the place for its own. Where the place is free, the address is right, so
# no usual test shows it. The flag is in Linux since 4.17, and the manual page warns of older kernels. QEMU is one of them, whatever the kernel.
#
# For us: compare the address, even where the kernel is known to be new.
. "$(dirname "$0")/common.sh"
only_x86_64

unpack qemu-user=1:7.2+dfsg-7+deb12u18+b3 libcapstone4 liburing2 libnuma1 libglib2.0-0

cat >place.c <<'END'
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>

enum { PAGE = 4096 };

static void claim(const char *name, char *place)
{
    char *got = mmap(place, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

    printf("%s %s; ", name, got == place ? "there" : got != MAP_FAILED ? "elsewhere" : errno == EEXIST ? "EEXIST" : "another error");
}

int main(void)
{
    char *pages = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    pages[PAGE] = 'x';
    claim("taken", pages + PAGE);
    printf("data %s; ", pages[PAGE] == 'x' ? "kept" : "lost");
    munmap(pages + PAGE, PAGE);
    claim("free", pages + PAGE);
    puts("");
    return 0;
}
END
gcc -O1 -static place.c -o place
found="native: $(./place)"
export LD_LIBRARY_PATH="$folder/root/usr/lib/x86_64-linux-gnu:$folder/root/lib/x86_64-linux-gnu"
found+="QEMU 7.2: $(root/usr/bin/qemu-x86_64 ./place)"
echo "$found"
expect "$found" "native: taken EEXIST; data kept; free there; QEMU 7.2: taken elsewhere; data kept; free there; "
