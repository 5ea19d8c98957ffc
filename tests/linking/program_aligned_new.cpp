/* SPDX-License-Identifier: MIT */
/* Aligned forms of operator new, and no other, for sizes that wrap when they are rounded up: none is served. */
#include <cstdint>
#include <cstdio>
#include <new>

int main()
{
    const std::align_val_t aligned = static_cast<std::align_val_t>(4096);
    volatile std::size_t size = SIZE_MAX - 10;
    int refused = !::operator new(size, aligned, std::nothrow);

    refused += !::operator new[](size, aligned, std::nothrow);
    try {
        std::printf("%p\n", ::operator new[](size, aligned));
    } catch (const std::bad_alloc &) {
        refused++;
    }
    size = 100;
    ::operator delete(::operator new(size, aligned, std::nothrow), aligned);
    std::puts(refused == 3 ? "refused" : "served");
}
