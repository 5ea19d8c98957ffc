// SPDX-License-Identifier: MIT
// Containers on Prudence's allocator and resource: elements of every alignment, memory that runs
// out, and containers that exchange memory.
#include <cstdint>
#include <deque>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <memory_resource>
#include <new>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <prudence/allocator.hpp>

namespace
{

struct alignas(64) wide {
    int value;
};

struct alignas(4096) page {
    char bytes[4096];
};

template <class T> bool is_aligned(const T *place)
{
    return reinterpret_cast<std::uintptr_t>(place) % alignof(T) == 0;
}

template <class T> using on_prudence = prudence::allocator<T>;

TEST(allocator, containers_keep_what_they_are_given)
{
    std::vector<int, on_prudence<int>> numbers;
    std::map<int, int, std::less<>, on_prudence<std::pair<const int, int>>> squares;
    std::unordered_map<int, int, std::hash<int>, std::equal_to<>,
                       on_prudence<std::pair<const int, int>>>
        cubes;
    std::list<int, on_prudence<int>> list;
    std::deque<int, on_prudence<int>> deque;
    std::set<int, std::less<>, on_prudence<int>> set;
    std::basic_string<char, std::char_traits<char>, on_prudence<char>> text;

    for (int i = 0; i < 1000; i++) {
        numbers.push_back(i);
        squares[i] = i * i;
        cubes[i] = i * i * i;
        list.push_back(i);
        deque.push_front(i);
        set.insert(i);
        text.append(3, 'x');
    }
    for (int i = 0; i < 1000; i++) {
        ASSERT_EQ(numbers[static_cast<std::size_t>(i)], i);
        ASSERT_EQ(squares.at(i), i * i);
        ASSERT_EQ(cubes.at(i), i * i * i);
        ASSERT_EQ(deque[static_cast<std::size_t>(999 - i)], i);
    }
    EXPECT_EQ(list.size(), 1000U);
    EXPECT_EQ(set.size(), 1000U);
    EXPECT_EQ(text.size(), 3000U);
}

TEST(allocator, elements_have_the_alignment_of_their_type)
{
    std::vector<wide, on_prudence<wide>> lines;
    std::vector<page, on_prudence<page>> pages;

    for (int i = 0; i < 50; i++) {
        lines.push_back(wide{i});
        ASSERT_TRUE(is_aligned(lines.data()));
        pages.emplace_back();
        ASSERT_TRUE(is_aligned(pages.data()));
    }
    EXPECT_EQ(lines[49].value, 49);
}

TEST(allocator, a_block_of_each_count_goes_back_by_its_size)
{
    prudence::allocator<std::uint64_t> eights;
    prudence::allocator<char> bytes;

    for (std::size_t count : {0U, 1U, 2U, 7U, 100U, 5000U, 100000U}) {
        eights.deallocate(eights.allocate(count), count);
        bytes.deallocate(bytes.allocate(count), count);
    }
}

TEST(allocator, counts_beyond_memory_throw)
{
    prudence::allocator<int> ints;

    EXPECT_THROW(static_cast<void>(ints.allocate(std::numeric_limits<std::size_t>::max() / 2)),
                 std::bad_array_new_length);
    EXPECT_THROW(static_cast<void>(ints.allocate(std::numeric_limits<std::size_t>::max() / 64)),
                 std::bad_alloc);
}

int handler_calls;

TEST(allocator, the_new_handler_is_called_until_there_is_none)
{
    prudence::allocator<char> bytes;

    handler_calls = 0;
    std::set_new_handler([] {
        if (++handler_calls == 3)
            std::set_new_handler(nullptr);
    });
    EXPECT_THROW(static_cast<void>(bytes.allocate(std::numeric_limits<std::size_t>::max() / 64)),
                 std::bad_alloc);
    EXPECT_EQ(handler_calls, 3);
    EXPECT_EQ(std::get_new_handler(), nullptr);
}

TEST(allocator, all_instances_are_equal_also_for_other_types)
{
    prudence::allocator<int> ints;
    prudence::allocator<char> chars(ints);
    std::list<int, on_prudence<int>> one{1, 2, 3}, other{4};

    EXPECT_TRUE(ints == chars);
    EXPECT_FALSE(ints != chars);
    static_assert(std::allocator_traits<prudence::allocator<int>>::is_always_equal::value);
    one.splice(one.end(), other);
    EXPECT_EQ(one.size(), 4U);
    other = std::move(one);
    EXPECT_EQ(other.back(), 4);
}

TEST(allocator, shared_pointers_share_one_block)
{
    std::shared_ptr<std::string> text =
        std::allocate_shared<std::string>(prudence::allocator<char>(), "some text");
    std::weak_ptr<std::string> weak = text;

    EXPECT_EQ(*text, "some text");
    text.reset();
    EXPECT_TRUE(weak.expired());
}

#if defined(__cpp_lib_memory_resource)

TEST(memory_resource, containers_of_pmr_use_it)
{
    std::pmr::vector<std::pmr::string> texts(prudence::get_memory_resource());

    for (int i = 0; i < 200; i++)
        texts.emplace_back(static_cast<std::size_t>(i), 'y');
    EXPECT_EQ(texts[199].size(), 199U);
    EXPECT_EQ(texts[199].get_allocator().resource(), prudence::get_memory_resource());
}

TEST(memory_resource, alignments_of_each_power_of_two)
{
    std::pmr::memory_resource *resource = prudence::get_memory_resource();

    for (std::size_t alignment = 1; alignment <= 4096; alignment *= 2) {
        void *place = resource->allocate(100, alignment);

        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(place) % alignment, 0U) << alignment;
        resource->deallocate(place, 100, alignment);
    }
}

TEST(memory_resource, every_instance_is_equal_and_others_are_not)
{
    prudence::memory_resource other;

    EXPECT_TRUE(other.is_equal(*prudence::get_memory_resource()));
    EXPECT_FALSE(other.is_equal(*std::pmr::new_delete_resource()));
    EXPECT_FALSE(std::pmr::new_delete_resource()->is_equal(other));
}

TEST(memory_resource, is_upstream_of_others)
{
    std::pmr::monotonic_buffer_resource buffer(1024, prudence::get_memory_resource());
    std::pmr::unsynchronized_pool_resource pool(prudence::get_memory_resource());
    std::pmr::list<int> first(&buffer), second(&pool);

    for (int i = 0; i < 500; i++) {
        first.push_back(i);
        second.push_back(i);
    }
    EXPECT_EQ(first.back() + second.front(), 499);
}

#endif

} // namespace
