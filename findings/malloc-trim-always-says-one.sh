#!/bin/bash
# SPDX-License-Identifier: MIT
# malloc_trim of glibc returns 1 again and again, although there is nothing left that it could give back.
#
# Guess, written before the run: malloc_trim(0) twice after 64 MiB in small blocks were freed: glibc 1 then 0; others 0, 0.
#
# Seen (glibc 2.36 of Debian 12, x86-64): each of ten calls returns 1, and those after the first give nothing back. The manual page says that 1 means
# that memory was given back, and 0 that this was not possible. glibc advises the kernel again about the same free pages, which have been empty
# since the first call, and calls that a success. One free block that has a whole page is enough. So a loop that trims until nothing more
# comes does not end, and a counter of useful trims counts all of them. Compare the resident set instead.
#
# For us: prudence_trim returns the bytes that this call has given back, and our malloc_trim goes by them.
. "$(dirname "$0")/common.sh"
only_x86_64

unpack libc6=2.36-9+deb12u14

cat >trim.c <<'END'
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCKS = 65536, BLOCK = 1024, CALLS = 10 };

/* Reads it without stdio, which would allocate between the calls. */
static long resident_pages(void)
{
    char text[128] = "";
    int file = open("/proc/self/statm", O_RDONLY);
    long size, resident;

    if (read(file, text, sizeof text - 1) <= 0 || sscanf(text, "%ld %ld", &size, &resident) != 2)
        _exit(1);
    close(file);
    return resident;
}

int main(void)
{
    static char *blocks[BLOCKS];
    static void *volatile above; /* keeps the blocks off the top of the heap, from which free() itself gives back */
    long resident[CALLS + 1];
    int results[CALLS];

    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(BLOCK);
        memset(blocks[i], 1, BLOCK);
    }
    above = malloc(BLOCK);
    for (int i = 0; i < BLOCKS; i++)
        free(blocks[i]);
    for (int i = 0; i < CALLS; i++) {
        resident[i] = resident_pages();
        results[i] = malloc_trim(0);
    }
    resident[CALLS] = resident_pages();
    for (int i = 0; i < CALLS; i++) {
        long less = resident[i] - resident[i + 1];

        printf("%d (%s) ", results[i], less > 10000 ? "much" : less > 0 ? "some" : "nothing");
    }
    return !above;
}
END
gcc -O1 -fno-builtin trim.c -o trim
library=root/lib/x86_64-linux-gnu
found=$("$library/ld-linux-x86-64.so.2" --library-path "$library" ./trim)
echo "glibc 2.36: $found"
right="1 (much) "
for _ in 1 2 3 4 5 6 7 8 9; do right+="1 (nothing) "; done
expect "$found" "$right"
