// SPDX-License-Identifier: MIT
// Loaded by program_late_runtime.c.
#include <cstddef>
#include <cstdint>
#include <new>

static void *volatile sink;
static volatile std::size_t too_much = PTRDIFF_MAX - 1000;

extern "C" int bad_alloc_is_caught()
{
    sink = ::operator new(100);
    ::operator delete(sink);
    if (::operator new[](too_much, std::nothrow))
        return 0;
    try {
        sink = ::operator new(too_much);
    } catch (const std::bad_alloc &) {
        return 1;
    }
    return 0;
}
