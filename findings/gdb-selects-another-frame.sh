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
set -euo pipefail
if [ "$(uname -m)" != x86_64 ]; then
    echo "gdb-selects-another-frame: this is about x86-64" >&2
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

apt-get -qq download gdb=13.1-3 libbabeltrace1 libdebuginfod1 libipt2 libmpfr6 libpython3.11 libsource-highlight4v5 libxxhash0 libbpf1 \
    libboost-regex1.74.0 2>download.log || { cat download.log >&2; exit 1; }
for package in *.deb; do
    dpkg -x "$package" root
done
debugger() { # without the user's settings
    LD_LIBRARY_PATH="$folder/root/usr/lib/x86_64-linux-gnu" root/usr/bin/gdb -nx -batch -data-directory "$folder/root/usr/share/gdb" "$@" 2>&1
}

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
if [ "$found" != "0 below: frame 0, rip 1; 1 below: frame 1, rip 0; 3 below: frame 3, rip 0; " ]; then
    echo "gdb-selects-another-frame: this is no longer so" >&2
    exit 1
fi
