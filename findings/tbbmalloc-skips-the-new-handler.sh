#!/bin/bash
# SPDX-License-Identifier: MIT
# operator new of tbbmalloc calls the new handler of the program, but operator new with std::nothrow does not.
#
# Guess, written before the run: operator new of 2^61 bytes with a new handler that gives up the second time: handler called twice, then bad_alloc, in
# all but scudo. nothrow: handler called twice, NULL.
#
# Seen (tbbmalloc 2021.8, jemalloc 5.3.0 and tcmalloc 2.10 of Debian 12, libstdc++ 12.2, x86-64): the C++ standard has the nothrow forms call the plain
# form, so that both call the handler. libstdc++, jemalloc and tcmalloc do so. With the proxy of tbbmalloc preloaded the nothrow form returns NULL at
# once. The aligned forms are not replaced, so there both call it. A program that frees a cache in its new handler loses that for std::nothrow, and for
# what uses it inside, as std::get_temporary_buffer does.
#
# For us: each form of operator new calls the handler, and a test counts its calls.
. "$(dirname "$0")/common.sh"
only_x86_64

unpack libtbbmalloc2=2021.8.0-2+deb12u1 libjemalloc2=5.3.0-1 libtcmalloc-minimal4=2.10-1

cat >handler.cc <<'END'
#include <cstdio>
#include <new>

static int calls;

static void handle()
{
    if (++calls == 2)
        std::set_new_handler(nullptr);
}

/* Tells how often the handler was called by an allocation, and how that ended. */
template <class Function> static void tell(const char *name, Function allocate)
{
    const char *end = "a block";

    calls = 0;
    std::set_new_handler(handle);
    try {
        if (!allocate())
            end = "NULL";
    } catch (const std::bad_alloc &) {
        end = "bad_alloc";
    }
    std::printf("%s %d, %s; ", name, calls, end);
}

int main()
{
    const std::align_val_t line{64};
    volatile std::size_t size = std::size_t{1} << 61;

    tell("plain", [&] { return operator new(size); });
    tell("aligned", [&] { return operator new(size, line); });
    tell("nothrow", [&] { return operator new(size, std::nothrow); });
    tell("aligned nothrow", [&] { return operator new(size, line, std::nothrow); });
    return 0;
}
END
g++ -std=c++17 -O1 -fno-builtin handler.cc -o handler
libraries=$folder/root/usr/lib/x86_64-linux-gnu
export LD_LIBRARY_PATH=$libraries
found=""
for name in libstdc++ jemalloc tcmalloc tbbmalloc; do
    found+="$name: $(LD_PRELOAD=$(library_of $name) ./handler 2>/dev/null)"
done
echo "tbbmalloc 2021.8, jemalloc 5.3.0, tcmalloc 2.10: $found"
throws="plain 2, bad_alloc; aligned 2, bad_alloc; "
calls="${throws}nothrow 2, NULL; aligned nothrow 2, NULL; "
expect "$found" "libstdc++: ${calls}jemalloc: ${calls}tcmalloc: ${calls}tbbmalloc: ${throws}nothrow 0, NULL; aligned nothrow 2, NULL; "
