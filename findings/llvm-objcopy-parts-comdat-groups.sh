#!/bin/bash
# SPDX-License-Identifier: MIT
# llvm-objcopy takes the COMDAT flag from groups of gcc -g3 and of sys/sdt.h, so a program has their sections once for each object.
#
# Guess, written before the run, against a hint that the flag may be lost: llvm-objcopy without options copies an object with a COMDAT group whose
# signature is a local symbol so that readelf --section-groups prints the same.
#
# Seen (llvm-objcopy of LLVM 14.0.6 and 19.1.7, systemtap-sdt-dev 4.8 of Debian 12, x86-64): a copy without any option clears the flag of each group
# whose signature is local. Compilers make such groups: gcc -g3 has one for each set of macros of a header, and sys/sdt.h one for the base of
# the probes. Linkers merge groups by name as long as they are COMDAT. With copied objects the macros of a header are in the program's debug information
# once for each object, and so are the bases. Everything still works, so only sizes tell. GNU objcopy keeps the flag.
#
# For us: the static library's notes name one base by a weak symbol, so more bases do no harm, and a test links both kinds.
. "$(dirname "$0")/common.sh"
only_x86_64

unpack llvm-14=1:14.0.6-12 libllvm14=1:14.0.6-12 llvm-19=1:19.1.7-3~deb12u1 libllvm19=1:19.1.7-3~deb12u1 libz3-4 systemtap-sdt-dev=4.8-2

for number in 1 2 3 4; do
    cat >object$number.c <<END
#include <stdio.h>
#include <sys/sdt.h>

int function$number(void)
{
    DTRACE_PROBE(finding, probe$number);
    return 0;
}
END
    gcc -g3 -O1 -isystem root/usr/include -isystem root/usr/include/x86_64-linux-gnu -c object$number.c
done


size_of() { # size_of LIBRARY SECTION
    size -A "$1" | awk -v section="$2" '$1 == section { print $2 }'
}

# Prints how many groups of an object are COMDAT, how many bases of probes a library of four has, and whether its macros are more than twice
# those of a library of the objects themselves.
show() { # show NAME OBJECT...
    local name=$1 comdat
    shift
    comdat=$(readelf --section-groups --wide "$1" | grep -c '^COMDAT group') || true
    gcc -shared "$@" -o "$name.so"
    echo -n "$name: COMDAT $([ "$comdat" -gt 1 ] && echo all || echo "$comdat"), bases $(size_of "$name.so" .stapsdt.base), "
    echo -n "macros twice $(($(size_of "$name.so" .debug_macro) > 2 * $(size_of objects.so .debug_macro))); "
}

found=$(
    show objects object?.o
    for version in gnu 14 19; do
        for number in 1 2 3 4; do
            if [ $version = gnu ]; then
                objcopy object$number.o copy$number.o
            else
                LD_LIBRARY_PATH="$folder/root/usr/lib/llvm-$version/lib:$folder/root/usr/lib/x86_64-linux-gnu" \
                    "root/usr/lib/llvm-$version/bin/llvm-objcopy" object$number.o copy$number.o
            fi
        done
        show $version copy?.o
    done
)
echo "$found"
right="objects: COMDAT all, bases 1, macros twice 0; gnu: COMDAT all, bases 1, macros twice 0; "
right+="14: COMDAT 0, bases 4, macros twice 1; 19: COMDAT 0, bases 4, macros twice 1; "
expect "$found" "$right"
