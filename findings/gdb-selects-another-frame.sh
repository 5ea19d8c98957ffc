#!/bin/bash
# SPDX-License-Identifier: MIT
# gdb selects another frame after it has written the stack pointer, and writes the next register into memory.
#
# Guess, written before the run: after `set var $rsp = ...` in the innermost frame, that frame stays selected, perhaps with a warning. So the
# registers of a thread can be written one after the other, as for a call in the thread.
#
# Seen (gdb 13.1 of Debian 12, x86-64, program of gcc): gdb forgets all frames, then looks for one with the identity that the selected frame
# had: its code and the place of its stack. Where the new stack pointer leads to frames of functions that have returned, these may lead to the
# frame of before, which is then an outer one, and gdb selects it without a word. `set var $rip = ...` in an outer frame changes the return
# address in memory, and the thread goes on where it was. Nothing happens where the memory below the stack is clean, so a test may pass for long.
#
# For us: select the innermost frame before each register is written, and read all of them back before the thread goes on.
. "$(dirname "$0")/common.sh"
only_x86_64

unpack_gdb

cat >stale.c <<'END'
long frame; /* bytes of a frame of deep() */

__attribute__((noinline)) static long deep(long n, const volatile char *outer)
{
    volatile char room[64];

    room[0] = (char)n;
    frame = outer - room;
    return n ? deep(n - 1, room) + room[0] : room[0];
}

/* Stops where frames of deep() that have returned are below its own. */
__attribute__((noinline)) static int here(void)
{
    volatile char room[64];

    room[0] = (char)deep(12, room);
    __asm__ volatile("int3; nop" : : : "memory");
    return room[0];
}

int main(void)
{
    return here();
}
END
gcc -O1 -g stale.c -o stale

found=""
for count in 0 1 3; do # frames of deep() that the new stack pointer leads through
    said=$(debugger -ex run -ex "set var \$rsp = (long)\$rsp - $count * frame" -ex frame -ex 'set var $rip = (long)&main' -ex 'frame 0' \
        -ex 'printf "written: %d\n", $rip == (long)&main' ./stale)
    found+="$count below: frame $(sed -n 's/^#\([0-9]*\) .*/\1/p' <<<"$said" | head -1), rip $(sed -n 's/^written: //p' <<<"$said"); "
done
echo "gdb 13.1: $found"
expect "$found" "0 below: frame 0, rip 1; 1 below: frame 1, rip 0; 3 below: frame 3, rip 0; "
