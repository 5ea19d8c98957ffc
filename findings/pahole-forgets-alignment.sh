#!/bin/bash
# SPDX-License-Identifier: MIT
# pahole --reorganize moves a member with a forced alignment to a place where it cannot be, and counts the bytes as saved.
#
# Guess, written before the run: pahole 1.24 --reorganize leaves a member with alignment 64 at an offset that is a multiple of 64.
#
# Seen (pahole 1.24 of Debian 12, gcc 12.2, x86-64): a structure of 128 bytes has a member that is aligned to a cache line, as those of a writer
# often are. pahole puts it at offset 56, still with its attribute, and says that the size is 64, and that 64 bytes and a cache line are saved. With
# the same members in the same order the compiler puts it at 64, and the structure has 128 bytes as before. So the sizes that pahole promises for
# structures with such members are ones that no compiler gives. Where the member happens to fit, the result is right.
#
# For us: lay out by hand what is aligned, and let static assertions say the offsets.
. "$(dirname "$0")/common.sh"
only_x86_64

unpack pahole=1.24-4.1 libbpf1 libdw1 libelf1

cat >members.c <<'END'
#include <stddef.h>
#include <stdio.h>

struct written {
    char a;
    long c;
    char b;
    long hot __attribute__((aligned(64)));
    char e;
    long f;
    char g;
    int h;
};

struct reorganized { /* as pahole orders it */
    char a;
    char b;
    char e;
    char g;
    int h;
    long c;
    long f;
    long hot __attribute__((aligned(64)));
};

int main(void)
{
    static struct written before;
    static struct reorganized after;

    printf("compiler: %zu, then hot at %zu of %zu", sizeof before, offsetof(struct reorganized, hot), sizeof after);
    return before.a + after.a;
}
END
gcc -O1 -g members.c -o members
said=$(LD_LIBRARY_PATH=root/usr/lib/x86_64-linux-gnu root/usr/bin/pahole --reorganize -C written members)
order=$(sed -n 's/.*[ \t]\([a-z]*\)\( __attribute__.*\)\?;.*\/\*.*/\1/p' <<<"$said" | tr '\n' ' ')
place=$(sed -n 's/.* hot .*\/\* *\([0-9]*\) .*/\1/p' <<<"$said")
size=$(sed -n 's/.*\/\* size: \([0-9]*\),.*/\1/p' <<<"$said")
found="pahole: ${order}at $place of $size; $(./members)"
echo "pahole 1.24: $found"
expect "$found" "pahole: a b e g h c f hot at 56 of 64; compiler: 128, then hot at 64 of 128"
