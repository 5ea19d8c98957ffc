// SPDX-License-Identifier: MIT
// Prints what the templates throw, in this file and in the one without exceptions.
#include <cstddef>
#include <cstdio>
#include <new>
#include <stdexcept>
#include <system_error>

#include <prudence/cache.hpp>
#include <prudence/id_table.hpp>

unsigned fill(prudence::id_table<int> &table);
int *grow(std::size_t count);
bool make_unnamed();

namespace
{

template <class E, class F> void expect(const char *name, F f)
{
    try {
        f();
        std::printf("%s: nothing thrown\n", name);
    } catch (const E &) {
        std::printf("%s\n", name);
    }
}

} // namespace

int main()
{
    constexpr std::size_t too_many = ~std::size_t(0) / 2;
    prudence::id_table<int> here("here", 1, 64), there("there", 1, 64);

    expect<std::bad_array_new_length>(
        "length", [] { static_cast<void>(prudence::allocator<int>().allocate(too_many)); });
    expect<std::bad_array_new_length>("length", [] { static_cast<void>(grow(too_many)); });
    expect<std::length_error>("ids", [&] {
        for (;;)
            static_cast<void>(here.emplace(1));
    });
    expect<std::length_error>("ids", [&] {
        for (;;)
            static_cast<void>(fill(there));
    });
    expect<std::system_error>("name", [] { prudence::cache<int> unnamed(""); });
    expect<std::system_error>("name", [] { static_cast<void>(make_unnamed()); });
}
