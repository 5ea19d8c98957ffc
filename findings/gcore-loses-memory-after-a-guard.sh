#!/bin/bash
# SPDX-License-Identifier: MIT
# gcore of gdb loses a good part of a mapping that has one guard page (MADV_GUARD_INSTALL).
#
# Guess, written before the run: gcore keeps everything in the mapping except the guard page.
#
# Seen (gdb 13.1 of Debian 12, x86-64, Linux 6.18): gdb copies a mapping in pieces of 1 MiB. At the first piece with a guard page it warns
# "Memory read failed for corefile section", leaves the mapping at once, and says "Saved corefile" and exits with 0. So a mapping of 4 MiB with
# a guard page at page 300 keeps its first 256 pages of 1024. All others are zeros in the core file, as if the program had never written them. A
# guard of mprotect() makes a mapping of its own, so it does no harm. Newer C libraries and allocators use MADV_GUARD_INSTALL for guards.
#
# For us: zeros in a core file of gcore tell nothing where objects have guard pages. Look for the warning.
. "$(dirname "$0")/common.sh"
only_x86_64

unpack_gdb

cat >guard.c <<'END'
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, PAGES = 1024 };

/* Writes its number into each page of a mapping, puts a guard at the page of the first argument, and stops if that is the only one. */
int main(int count, char **arguments)
{
    char *room = mmap(NULL, (PAGES + 2) * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *pages = room + PAGE; /* neighbours of other protection keep it a mapping of its own */

    if (room == MAP_FAILED || mprotect(pages, PAGES * PAGE, PROT_READ | PROT_WRITE))
        return 1;
    for (int i = 0; i < PAGES; i++)
        sprintf(pages + i * PAGE, "page-%04d", i);
    if (strcmp(arguments[1], "none") && madvise(pages + atoi(arguments[1]) * PAGE, PAGE, 102 /* MADV_GUARD_INSTALL */))
        return 77;
    if (count == 2)
        __asm__ volatile("int3");
    return 0;
}
END
gcc -O1 guard.c -o guard
if ! ./guard 300 go-on; then
    leave_out "the kernel has no MADV_GUARD_INSTALL (Linux 6.13)"
fi

found=""
for place in none 300 1000; do
    debugger -ex "run $place" -ex "gcore core.$place" ./guard >"said.$place"
    pages=$(grep -ao 'page-[0-9]\{4\}' "core.$place" | sort -u | wc -l)
    found+="guard $place: $pages pages, $(grep -c '^Saved corefile' "said.$place") saved; "
done
echo "gdb 13.1: $found"
expect "$found" "guard none: 1024 pages, 1 saved; guard 300: 256 pages, 1 saved; guard 1000: 768 pages, 1 saved; "
