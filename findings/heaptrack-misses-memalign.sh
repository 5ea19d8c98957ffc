#!/bin/bash
# SPDX-License-Identifier: MIT
# heaptrack records aligned_alloc, posix_memalign and valloc, but neither memalign nor pvalloc.
#
# Guess, written before the run: heaptrack counts the memory of all functions of malloc.h: malloc, calloc, realloc, reallocarray, posix_memalign,
# aligned_alloc, memalign, valloc and pvalloc.
#
# Seen (heaptrack 1.4.0 of Debian 12, glibc 2.36, x86-64): memory of memalign and pvalloc is in no record, neither in the peak nor among the
# leaks, and nothing is said about it. memalign is old, but usual for memory of a cache line or a page. valloc, which is older, is recorded.
#
# For us: the preloaded library has all of these, so sums of heaptrack may be below ours. Compare programs by functions that it knows.
. "$(dirname "$0")/common.sh"
only_x86_64

unpack libheaptrack=1.4.0-2 libunwind8

cat >ask.c <<'END'
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 0x123000 };

/* Asks the function that the argument names for memory. */
int main(int count, char **arguments)
{
    const char *name = count > 1 ? arguments[1] : "";
    void *volatile memory = NULL;
    void *result;

    if (!strcmp(name, "malloc"))
        memory = malloc(BYTES);
    else if (!strcmp(name, "calloc"))
        memory = calloc(1, BYTES);
    else if (!strcmp(name, "realloc"))
        memory = realloc(NULL, BYTES);
    else if (!strcmp(name, "reallocarray"))
        memory = reallocarray(NULL, 1, BYTES);
    else if (!strcmp(name, "posix_memalign"))
        memory = posix_memalign(&result, 64, BYTES) ? NULL : result;
    else if (!strcmp(name, "aligned_alloc"))
        memory = aligned_alloc(64, BYTES);
    else if (!strcmp(name, "memalign"))
        memory = memalign(64, BYTES);
    else if (!strcmp(name, "valloc"))
        memory = valloc(BYTES);
    else if (!strcmp(name, "pvalloc"))
        memory = pvalloc(BYTES);
    return !memory;
}
END
gcc -O0 -D_DEFAULT_SOURCE ask.c -o ask

recorded="" missed=""
for name in malloc calloc realloc reallocarray posix_memalign aligned_alloc memalign valloc pvalloc; do
    LD_LIBRARY_PATH="$folder/root/usr/lib/x86_64-linux-gnu" DUMP_HEAPTRACK_OUTPUT="$folder/records.$name" \
        LD_PRELOAD="$folder/root/usr/lib/heaptrack/libheaptrack_preload.so" ./ask "$name" 2>said.log >&2 || { cat said.log >&2; exit 1; }
    if grep -q '^+ 123000 ' "records.$name"; then
        recorded+=" $name"
    else
        missed+=" $name"
    fi
done
echo "heaptrack 1.4.0: recorded$recorded; missed$missed"
expect "$recorded;$missed" " malloc calloc realloc reallocarray posix_memalign aligned_alloc valloc; memalign pvalloc"
