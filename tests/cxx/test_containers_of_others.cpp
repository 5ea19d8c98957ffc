// SPDX-License-Identifier: MIT
// Containers of the standard library and of Boost (Debian: libboost-dev) do on prudence::allocator
// what they promise on any: small tests, of all containers of a kind alike.
#include <atomic>
#include <cstddef>
#include <deque>
#include <forward_list>
#include <functional>
#include <list>
#include <map>
#include <queue>
#include <set>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <prudence/allocator.hpp>
#include <prudence/cache.hpp>

#if __has_include(<boost/container/vector.hpp>)
#define HAS_BOOST 1
#include <boost/circular_buffer.hpp>
#include <boost/container/deque.hpp>
#include <boost/container/flat_map.hpp>
#include <boost/container/flat_set.hpp>
#include <boost/container/list.hpp>
#include <boost/container/set.hpp>
#include <boost/container/slist.hpp>
#include <boost/container/small_vector.hpp>
#include <boost/container/stable_vector.hpp>
#include <boost/container/string.hpp>
#include <boost/container/vector.hpp>
#include <boost/intrusive/list.hpp>
#include <boost/unordered_map.hpp>
#include <boost/unordered_set.hpp>
#include <boost/version.hpp>
#endif

namespace
{

template <class T> using on_prudence = prudence::allocator<T>;

std::atomic<int> alive; // destructors of a cache run on its worker, too

// A number that throws when the 13th is copied, if it is asked to.
struct number {
    number(int n = 0) : value(n) // NOLINT: as a number
    {
        alive++;
    }
    number(const number &other) : value(other.value)
    {
        if (value == 13 && throws)
            throw std::runtime_error("13");
        alive++;
    }
    number &operator=(const number &) = default;
    ~number()
    {
        alive--;
    }
    friend bool operator==(const number &a, const number &b)
    {
        return a.value == b.value;
    }
    friend bool operator!=(const number &a, const number &b)
    {
        return a.value != b.value;
    }
    friend bool operator<(const number &a, const number &b)
    {
        return a.value < b.value;
    }
    friend std::size_t hash_value(const number &n)
    {
        return std::hash<int>()(n.value);
    }

    int value;
    static bool throws;
};
bool number::throws;

struct number_hash {
    std::size_t operator()(const number &n) const
    {
        return hash_value(n);
    }
};

template <class Container> class of_others : public testing::Test
{
  protected:
    void SetUp() override
    {
        alive = 0;
        number::throws = false;
    }
    void TearDown() override
    {
        EXPECT_EQ(alive, 0);
    }
};

template <class Container> struct sequences : of_others<Container> {
};
template <class Container> struct sets : of_others<Container> {
};

using sequence_types =
    testing::Types<std::vector<number, on_prudence<number>>,
                   std::deque<number, on_prudence<number>>, std::list<number, on_prudence<number>>
#ifdef HAS_BOOST
                   ,
                   boost::container::vector<number, on_prudence<number>>,
                   boost::container::deque<number, on_prudence<number>>,
                   boost::container::list<number, on_prudence<number>>,
                   boost::container::stable_vector<number, on_prudence<number>>,
                   boost::container::small_vector<number, 4, on_prudence<number>>
#endif
                   >;
TYPED_TEST_SUITE(sequences, sequence_types);

TYPED_TEST(sequences, grow_and_shrink_at_each_place)
{
    TypeParam one;
    int next = 0;

    for (int i = 0; i < 300; i++)
        one.push_back(i);
    one.insert(std::next(one.begin(), 10), 5U, number(-1));
    one.erase(std::next(one.begin(), 10), std::next(one.begin(), 15));
    one.erase(one.begin());
    one.insert(one.begin(), number(0));
    for (const number &n : one)
        ASSERT_EQ(n.value, next++);
    one.resize(100);
    EXPECT_EQ(one.back().value, 99);
    one.assign(50U, number(7));
    EXPECT_EQ(one.size(), 50U);
    one.clear();
    EXPECT_TRUE(one.empty());
}

TYPED_TEST(sequences, are_copied_moved_and_exchanged)
{
    TypeParam one(20U, number(1)), two(one), three(std::move(two)), four;

    EXPECT_TRUE(three == one);
    four = three;
    four.push_back(2);
    swap(four, one);
    EXPECT_EQ(one.size(), 21U);
    four = std::move(one);
    EXPECT_EQ(four.back().value, 2);
    EXPECT_TRUE(four.get_allocator() == three.get_allocator());
}

// On any allocator, when an element throws, Boost 1.74's stable_vector frees a node twice, and its
// deque destroys elements that were never constructed.
template <class Container> constexpr bool lets_none_throw = false;
#ifdef HAS_BOOST
template <class T, class A>
constexpr bool lets_none_throw<boost::container::stable_vector<T, A>> = BOOST_VERSION <= 107400;
template <class T, class A, class Options>
constexpr bool lets_none_throw<boost::container::deque<T, A, Options>> = BOOST_VERSION <= 107400;
#endif

TYPED_TEST(sequences, are_as_before_when_an_element_throws)
{
    if (lets_none_throw<TypeParam>)
        GTEST_SKIP() << "the container is not made for that";
    TypeParam one;
    const number unlucky(13);
    std::size_t before;

    for (int i = 0; i < 8; i++)
        one.push_back(i);
    before = one.size();
    number::throws = true;
    EXPECT_THROW(one.push_back(unlucky), std::runtime_error);
    EXPECT_THROW(TypeParam(100U, unlucky), std::runtime_error);
    EXPECT_EQ(one.size(), before);
    EXPECT_EQ(one.back().value, 7);
}

using set_types = testing::Types<
    std::set<number, std::less<>, on_prudence<number>>,
    std::multiset<number, std::less<>, on_prudence<number>>,
    std::unordered_set<number, number_hash, std::equal_to<>, on_prudence<number>>
#ifdef HAS_BOOST
    ,
    boost::container::set<number, std::less<>, on_prudence<number>>,
    boost::container::flat_set<number, std::less<>, on_prudence<number>>,
    boost::unordered_set<number, boost::hash<number>, std::equal_to<number>, on_prudence<number>>
#endif
    >;
TYPED_TEST_SUITE(sets, set_types);

TYPED_TEST(sets, find_what_was_put_there)
{
    TypeParam one;

    for (int i = 0; i < 300; i++)
        one.insert(number(i * 7 % 300));
    EXPECT_EQ(one.size(), 300U);
    for (int i = 0; i < 300; i += 2)
        EXPECT_EQ(one.erase(number(i)), 1U);
    for (int i = 0; i < 300; i++)
        ASSERT_EQ(one.count(number(i)), std::size_t(i % 2));
}

TYPED_TEST(sets, are_copied_moved_and_exchanged)
{
    TypeParam one, two, three;

    for (int i = 0; i < 50; i++)
        one.insert(number(i));
    two = one;
    three = std::move(two);
    EXPECT_TRUE(three == one);
    three.erase(three.begin());
    swap(three, one);
    EXPECT_EQ(one.size(), 49U);
    EXPECT_EQ(three.size(), 50U);
}

TYPED_TEST(sets, are_as_before_when_an_element_throws)
{
    TypeParam one;
    const number unlucky(13);

    for (int i = 0; i < 8; i++)
        one.insert(number(i));
    number::throws = true;
    EXPECT_THROW(one.insert(unlucky), std::runtime_error);
    EXPECT_EQ(one.size(), 8U);
}

template <class Text> void check_text()
{
    Text one("some"), two;

    for (int i = 0; i < 100; i++)
        one.append(" more");
    two = one;
    two.replace(0, 4, "other and longer");
    EXPECT_EQ(one.size(), 504U);
    EXPECT_EQ(two.substr(0, 10), "other and ");
    EXPECT_EQ(one.find("more more"), 5U);
}

template <class Map> void check_map()
{
    Map map;

    for (int i = 0; i < 200; i++)
        map[i] = std::to_string(i);
    for (int i = 0; i < 200; i += 2)
        map.erase(i);
    Map copy(map);
    EXPECT_EQ(copy.size(), 100U);
    EXPECT_EQ(copy.at(199), "199");
    EXPECT_THROW(copy.at(0), std::out_of_range);
}

using pairs = on_prudence<std::pair<const int, std::string>>;

TEST(of_the_standard, lists_in_one_direction_strings_maps_and_queues)
{
    std::forward_list<int, on_prudence<int>> list{3, 1, 2};
    std::priority_queue<int, std::vector<int, on_prudence<int>>> queue;
    std::vector<bool, on_prudence<bool>> bits(1000);
    std::map<int, int, std::less<>, on_prudence<std::pair<const int, int>>> one{{1, 1}},
        two{{2, 2}};

    list.sort();
    EXPECT_EQ(list.front(), 1);
    for (int i : list)
        queue.push(i);
    EXPECT_EQ(queue.top(), 3);
    bits[999] = true;
    EXPECT_TRUE(bits.back());
    one.merge(two);
    one.insert(one.extract(1));
    EXPECT_EQ(one.size(), 2U);
    check_text<std::basic_string<char, std::char_traits<char>, on_prudence<char>>>();
    check_map<std::map<int, std::string, std::less<>, pairs>>();
    check_map<std::unordered_map<int, std::string, std::hash<int>, std::equal_to<>, pairs>>();
}

#ifdef HAS_BOOST

TEST(of_boost, lists_in_one_direction_strings_maps_and_rings)
{
    boost::container::slist<int, on_prudence<int>> list{3, 1, 2};
    boost::circular_buffer<int, on_prudence<int>> ring(3);

    list.sort();
    EXPECT_EQ(list.front(), 1);
    for (int i = 0; i < 10; i++)
        ring.push_back(i);
    EXPECT_EQ(ring.front(), 7);
    check_text<boost::container::basic_string<char, std::char_traits<char>, on_prudence<char>>>();
    check_map<boost::container::flat_map<int, std::string, std::less<>,
                                         on_prudence<std::pair<int, std::string>>>>();
    check_map<
        boost::unordered_map<int, std::string, boost::hash<int>, std::equal_to<int>, pairs>>();
}

struct linked : boost::intrusive::list_base_hook<> {
    explicit linked(int n) : value(n)
    {
    }
    number value;
};

TEST(of_boost, intrusive_lists_have_objects_of_a_cache)
{
    prudence::cache<linked> objects("linked");
    boost::intrusive::list<linked> list;

    alive = 0;
    for (int i = 0; i < 100; i++)
        list.push_back(*objects.make(i).release());
    list.remove_and_dispose_if([](const linked &one) { return one.value.value % 2 != 0; },
                               prudence::cache_delete<linked>());
    EXPECT_EQ(alive, 50);
    list.clear_and_dispose([&](linked *one) { objects.retire(one); });
    objects.barrier();
    EXPECT_EQ(alive, 0);
}

#else

TEST(of_boost, is_not_there)
{
    GTEST_SKIP() << "Debian: libboost-dev";
}

#endif

} // namespace
