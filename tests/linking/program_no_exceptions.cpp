// SPDX-License-Identifier: MIT
// Half of a program, compiled without exceptions. The other half, program_exceptions.cpp, uses the same
// templates with exceptions, and catches what they throw.
#include <cstddef>

#include <prudence/hash_map.hpp>
#include <prudence/id_table.hpp>

unsigned fill(prudence::id_table<int> &table);
int *grow(std::size_t count);
bool make_unnamed();

unsigned fill(prudence::id_table<int> &table)
{
    return table.emplace(1);
}

int *grow(std::size_t count)
{
    return prudence::allocator<int>().allocate(count);
}

bool make_unnamed()
{
    return prudence::cache<int>("").get() != nullptr;
}
