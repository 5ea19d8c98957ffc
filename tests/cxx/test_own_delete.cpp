// SPDX-License-Identifier: MIT
// A program with an operator delete of its own gets every deletion, also on libprudence-malloc.
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

#include <gtest/gtest.h>

#include <prudence/rcu.hpp>

static std::atomic<long> deletions;

void *operator new(std::size_t size)
{
    void *memory = std::malloc(size ? size : 1);

    if (!memory)
        throw std::bad_alloc();
    return memory;
}

void operator delete(void *object) noexcept
{
    deletions++;
    std::free(object);
}

void operator delete(void *object, std::size_t) noexcept
{
    ::operator delete(object);
}

TEST(own_delete, is_called_for_what_was_retired)
{
    long before = deletions;

    EXPECT_FALSE(prudence_malloc_deletes());
    for (int i = 0; i < 100; i++)
        prudence::rcu_retire(new long(i));
    prudence::rcu_barrier();
    EXPECT_EQ(deletions - before, 100);
}
