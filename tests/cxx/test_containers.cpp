// SPDX-License-Identifier: MIT
// hash_map, map, routes and id_table: they have what was put there, what they own ends once and after
// its readers, and what throws changes nothing.
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <prudence/hash_map.hpp>
#include <prudence/id_table.hpp>
#include <prudence/map.hpp>
#include <prudence/routes.hpp>
#include <prudence/stats.h>

namespace
{

std::atomic<int> alive;
bool copies_throw;

// A value whose copies agree with themselves as long as they live.
struct value {
    value(int n = 0)
        : number(n), text(std::to_string(n) + ", with more than a string has in itself") // NOLINT
    {
        if (n < 0)
            throw std::runtime_error("a negative value");
        alive++;
    }
    value(const value &other) : number(other.number), text(other.text)
    {
        if (copies_throw)
            throw std::runtime_error("a copy");
        alive++;
    }
    value(value &&other) noexcept : number(other.number), text(std::move(other.text))
    {
        alive++;
    }
    value &operator=(const value &) = default;
    value &operator=(value &&) = default;
    ~value()
    {
        number = -1;
        alive--;
    }
    void set(int n)
    {
        *this = value(n);
    }
    bool is(int n) const
    {
        return number == n && text == value(n).text;
    }

    int number;
    std::string text;
};

template <class Map> typename Map::key_type key_of(int n)
{
    if constexpr (std::is_same_v<typename Map::key_type, std::string>)
        return "a key that is longer than sixteen bytes: " + std::to_string(n);
    else
        return static_cast<typename Map::key_type>(n - 500);
}

enum class colour : short { none };

template <class Map> class keyed : public testing::Test
{
  protected:
    void SetUp() override
    {
        alive = 0;
        copies_throw = false;
    }
    // The map has ended what was erased before.
    void TearDown() override
    {
        EXPECT_EQ(alive, 0);
    }

    static auto key(int n)
    {
        return key_of<Map>(n);
    }
};

using maps = testing::Types<prudence::hash_map<int, value>, prudence::hash_map<std::string, value>,
                            prudence::hash_map<colour, value>, prudence::map<long, value>,
                            prudence::map<std::string, value>, prudence::map<colour, value>>;
TYPED_TEST_SUITE(keyed, maps);

TYPED_TEST(keyed, has_what_was_put_there)
{
    TypeParam map("map");

    for (int i = 0; i < 1000; i++) {
        EXPECT_TRUE(map.emplace(this->key(i), i));
        EXPECT_FALSE(map.emplace(this->key(i), i + 1));
    }
    EXPECT_EQ(map.size(), 1000U);
    for (int i = 0; i < 1000; i += 2)
        EXPECT_FALSE(map.insert_or_assign(this->key(i), i + 1));
    for (int i = 0; i < 1000; i += 5)
        EXPECT_TRUE(map.erase(this->key(i)));
    EXPECT_FALSE(map.erase(this->key(0)));
    EXPECT_EQ(map.size(), 800U);
    for (int i = 0; i < 1000; i++) {
        std::optional<value> copy = map.get(this->key(i));

        ASSERT_EQ(map.contains(this->key(i)), i % 5 != 0);
        ASSERT_EQ(copy.has_value(), i % 5 != 0);
        if (copy) {
            ASSERT_TRUE(copy->is(i % 2 ? i : i + 1));
        }
    }
    EXPECT_TRUE(map.insert_or_assign(this->key(0), 7));
    EXPECT_TRUE(map.get(this->key(0))->is(7));
}

TYPED_TEST(keyed, walks_find_all_and_end_when_told)
{
    TypeParam map("map");
    std::size_t found = 0, few = 0;

    for (int i = 0; i < 100; i++)
        map.emplace(this->key(i), i);
    prudence::guard inside;
    map.for_each(inside, [&](const auto &key, const value &at) {
        EXPECT_EQ(key, this->key(at.number));
        found++;
    });
    EXPECT_EQ(found, 100U);
    map.for_each(inside, [&](const auto &, const value &) { return ++few < 10; });
    EXPECT_EQ(few, 10U);
}

TYPED_TEST(keyed, values_outlive_their_readers)
{
    TypeParam map("map");

    map.emplace(this->key(1), 1);
    map.emplace(this->key(2), 2);
    prudence::guard inside;
    const value *erased = map.find(this->key(1), inside),
                *replaced = map.find(this->key(2), inside);

    EXPECT_TRUE(map.erase(this->key(1)));
    EXPECT_FALSE(map.insert_or_assign(this->key(2), 3));
    EXPECT_TRUE(map.update(this->key(2), [](value &copy) { copy.set(4); }));
    for (int i = 0; i < 1000; i++)
        static_cast<void>(prudence_gp_poll_state(prudence_gp_start_poll()));
    EXPECT_TRUE(erased->is(1));
    EXPECT_TRUE(replaced->is(2));
    EXPECT_EQ(map.find(this->key(1), inside), nullptr);
    EXPECT_TRUE(map.find(this->key(2), inside)->is(4));
    EXPECT_EQ(alive, 4);
}

TYPED_TEST(keyed, what_throws_changes_nothing)
{
    TypeParam map("map");

    map.emplace(this->key(1), 1);
    EXPECT_THROW(map.emplace(this->key(2), -1), std::runtime_error);
    EXPECT_THROW(map.update(this->key(1),
                            [](value &copy) {
                                copy.set(2);
                                throw 1;
                            }),
                 int);
    copies_throw = true;
    EXPECT_THROW(map.update(this->key(1), [](value &) {}), std::runtime_error);
    EXPECT_THROW(static_cast<void>(map.get(this->key(1))), std::runtime_error);
    copies_throw = false;
    EXPECT_FALSE(prudence_is_reading());
    EXPECT_EQ(map.size(), 1U);
    EXPECT_EQ(alive, 1);
    EXPECT_TRUE(map.get(this->key(1))->is(1));
    EXPECT_FALSE(map.update(this->key(2), [](value &) { FAIL(); }));
}

TYPED_TEST(keyed, an_update_starts_over_when_another_writer_is_faster)
{
    TypeParam map("map");
    int calls = 0;

    map.emplace(this->key(1), 1);
    EXPECT_TRUE(map.update(this->key(1), [&](value &copy) {
        if (calls++ == 0)
            map.insert_or_assign(this->key(1), 10);
        copy.set(copy.number + 1);
    }));
    EXPECT_EQ(calls, 2);
    EXPECT_TRUE(map.get(this->key(1))->is(11));
    EXPECT_FALSE(map.update(this->key(1), [&](value &) { map.erase(this->key(1)); }));
}

// Makes a value that counts in *inside if it ends inside a region, where its destructor could not
// wait for readers.
std::shared_ptr<int> ends_outside(int *inside)
{
    return {new int, [=](const int *number) {
                *inside += prudence_is_reading();
                delete number;
            }};
}

template <class Map> void drop_copies_outside()
{
    Map map("map");
    int calls = 0, inside = 0;

    map.emplace(1);
    EXPECT_TRUE(map.update(1, [&](std::shared_ptr<int> &copy) {
        copy = ends_outside(&inside);
        if (calls++ == 0)
            map.insert_or_assign(1, nullptr);
    }));
    EXPECT_EQ(calls, 2);
    EXPECT_THROW(map.update(1,
                            [&](std::shared_ptr<int> &copy) {
                                copy = ends_outside(&inside);
                                throw 1;
                            }),
                 int);
    EXPECT_EQ(inside, 0);
}

TEST(updates, copies_that_are_not_published_end_after_the_region)
{
    drop_copies_outside<prudence::hash_map<int, std::shared_ptr<int>>>();
    drop_copies_outside<prudence::map<int, std::shared_ptr<int>>>();
}

TYPED_TEST(keyed, writers_lose_no_update_and_readers_see_whole_values)
{
    TypeParam map("map");
    std::atomic<bool> stop{false};
    std::vector<std::thread> writers;
    std::thread reader([&] {
        for (int i = 0; !stop; i = (i + 1) % 8) {
            prudence::guard inside;
            const value *found = map.find(this->key(i), inside);

            if (found) {
                ASSERT_EQ(std::to_string(found->number),
                          found->text.substr(0, found->text.find(',')));
            }
        }
    });

    map.emplace(this->key(0), 0);
    for (int t = 1; t <= 3; t++)
        writers.emplace_back([&, t] {
            for (int i = 0; i < 400; i++) {
                map.emplace(this->key(t), i);
                ASSERT_TRUE(
                    map.update(this->key(0), [](value &copy) { copy.set(copy.number + 1); }));
                ASSERT_TRUE(map.erase(this->key(t)));
            }
        });
    for (std::thread &writer : writers)
        writer.join();
    stop = true;
    reader.join();
    EXPECT_EQ(map.size(), 1U);
    EXPECT_TRUE(map.get(this->key(0))->is(1200));
}

TYPED_TEST(keyed, a_forked_child_reads_and_updates)
{
    TypeParam map("map");

    for (int i = 0; i < 100; i++)
        map.emplace(this->key(i), i);
    pid_t child = fork();
    if (child == 0) {
        bool good = map.erase(this->key(1)) && map.emplace(this->key(100), 100) &&
                    map.update(this->key(2), [](value &copy) { copy.set(3); }) &&
                    map.get(this->key(2))->is(3) && map.size() == 100;

        _exit(good ? 0 : 1);
    }
    int status = 1;

    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_TRUE(map.contains(this->key(1)));
}

TEST(hash_map, takes_a_hash_with_a_secret_and_text_without_a_string)
{
    struct keyed_hash {
        std::uint64_t secret;
        std::uint64_t operator()(std::string_view text) const noexcept
        {
            return std::hash<std::string_view>()(text) ^ secret;
        }
    };
    prudence::hash_map<std::string, int, keyed_hash> map("map", 1000, keyed_hash{12345});
    prudence_hash_stats stats;

    map.emplace("one", 1);
    EXPECT_EQ(map.get(std::string_view("one and more", 3)), 1);
    EXPECT_EQ(prudence_hash_stats(map.get_table(), &stats), 0);
    EXPECT_EQ(stats.buckets, 1024U);
}

TEST(map, is_in_the_order_of_its_keys)
{
    prudence::map<std::int32_t, int> numbers("numbers");
    prudence::map<std::string, int> texts("texts");
    std::vector<std::int32_t> keys;
    constexpr std::int32_t least = std::numeric_limits<std::int32_t>::min(),
                           most = std::numeric_limits<std::int32_t>::max();

    for (std::int32_t key : {5, -5, 0, 1000000, -1000000, least, most})
        numbers.emplace(key, 0);
    for (const char *key : {"b", "", "a", "ab"})
        texts.emplace(key, 0);
    prudence::guard inside;
    numbers.for_each(inside, [&](std::int32_t key, int) { keys.push_back(key); });
    EXPECT_EQ(keys, (std::vector<std::int32_t>{least, -1000000, -5, 0, 5, 1000000, most}));
    keys.clear();
    numbers.for_each_from(-4, inside, [&](std::int32_t key, int) {
        keys.push_back(key);
        return key < 5;
    });
    EXPECT_EQ(keys, (std::vector<std::int32_t>{0, 5}));
    EXPECT_EQ(numbers.ceiling(-6, inside)->key(), -5);
    EXPECT_EQ(numbers.floor(-6, inside)->key(), -1000000);
    EXPECT_EQ(numbers.lowest(inside)->key(), least);
    EXPECT_EQ(numbers.highest(inside)->value(), 0);
    EXPECT_EQ(texts.ceiling("aa", inside)->key(), "ab");
    EXPECT_EQ(texts.floor("aa", inside)->key(), "a");
    EXPECT_EQ(texts.lowest(inside)->key(), "");
    EXPECT_EQ(texts.ceiling("c", inside), nullptr);
}

class owners : public testing::Test
{
  protected:
    void SetUp() override
    {
        alive = 0;
        copies_throw = false;
    }
    void TearDown() override
    {
        EXPECT_EQ(alive, 0);
    }
};

TEST_F(owners, routes_match_the_longest_prefix)
{
    prudence::routes<value> routes("routes");
    const prudence::routes<value>::address inner = {10, 1, 2, 3}, outer = {10, 2, 0, 0};
    std::vector<unsigned> lengths;

    EXPECT_TRUE(routes.emplace({{10}, 8}, 8));
    EXPECT_FALSE(routes.emplace({{10}, 8}, 9));
    EXPECT_TRUE(routes.insert_or_assign({{10, 1}, 16}, 16));
    EXPECT_TRUE(routes.get(inner)->is(16));
    EXPECT_TRUE(routes.get(outer)->is(8));
    EXPECT_FALSE(routes.get({11}));
    EXPECT_FALSE(routes.insert_or_assign({{10, 1}, 16}, 17));
    {
        prudence::guard inside;
        const value *seen = routes.match(inner, inside);

        EXPECT_TRUE(seen->is(17));
        EXPECT_TRUE(routes.erase({{10, 1}, 16}));
        EXPECT_FALSE(routes.erase({{10, 1}, 16}));
        EXPECT_TRUE(routes.match(inner, inside)->is(8));
        EXPECT_TRUE(seen->is(17));
        EXPECT_TRUE(routes.find({{10}, 8}, inside)->is(8));
        EXPECT_EQ(routes.find({{10}, 9}, inside), nullptr);
    }
    EXPECT_TRUE(routes.emplace({{10, 128}, 9}, 9));
    EXPECT_TRUE(routes.emplace({{}, 0}, 0));
    EXPECT_EQ(routes.size(), 3U);
    prudence::guard inside;
    routes.for_each_within({{10}, 8}, inside,
                           [&](const auto &at, const value &) { lengths.push_back(at.length); });
    EXPECT_EQ(lengths, (std::vector<unsigned>{8, 9}));
    routes.for_each(inside, [&](const auto &, const value &) { return false; });
}

// Destroyed inside a region, the table stays, and so do its values.
TEST_F(owners, routes_that_stay_keep_their_values)
{
    std::optional<prudence::routes<value>> routes(std::in_place, "kept");
    std::array<const value *, 2> kept{};

    routes->emplace({{10}, 8}, 10);
    routes->emplace({{11}, 8}, 11);
    {
        prudence::guard inside;

        kept = {routes->match({10}, inside), routes->match({11}, inside)};
        routes.reset();
    }
    EXPECT_EQ(prudence_barrier_nested(), 0); // when that returns, retired values have ended
    ASSERT_EQ(alive, 2);
    EXPECT_TRUE(kept[0]->is(10));
    for (const value *at : kept)
        prudence_free(const_cast<value *>(at));
}

TEST_F(owners, routes_of_ipv6)
{
    prudence::routes<value, PRUDENCE_ROUTES_IPV6> routes("routes", 100000);
    decltype(routes)::address address = {0x20, 0x01, 0x0d, 0xb8};

    EXPECT_TRUE(routes.emplace({address, 32}, 32));
    address[15] = 1;
    EXPECT_TRUE(routes.emplace({address, 128}, 128));
    EXPECT_TRUE(routes.get(address)->is(128));
    address[15] = 2;
    EXPECT_TRUE(routes.get(address)->is(32));
}

TEST_F(owners, a_prefix_that_is_none_is_refused)
{
    prudence::routes<value> routes("routes");

    EXPECT_THROW(routes.emplace({{10}, 33}, 1), std::invalid_argument);
    EXPECT_THROW(routes.insert_or_assign({{10, 1}, 8}, 1), std::invalid_argument);
    EXPECT_THROW(routes.emplace({{10}, 8}, -1), std::runtime_error);
    EXPECT_FALSE(routes.erase({{10}, 33}));
    EXPECT_EQ(routes.size(), 0U);
}

TEST_F(owners, numbers_of_objects_are_used_again)
{
    prudence::id_table<value> table("table", 0, 3);

    for (unsigned i = 0; i < 3; i++)
        EXPECT_EQ(table.emplace(int(i)), i);
    EXPECT_THROW(static_cast<void>(table.emplace(3)), std::length_error);
    EXPECT_THROW(static_cast<void>(table.emplace(-1)), std::runtime_error);
    {
        prudence::guard inside;
        value *seen = table.find(1, inside);

        EXPECT_TRUE(table.erase(1));
        EXPECT_FALSE(table.erase(1));
        EXPECT_FALSE(table.replace(1, 4));
        EXPECT_TRUE(seen->is(1));
        EXPECT_EQ(table.find(1, inside), nullptr);
    }
    EXPECT_EQ(table.emplace(5), 1U);
    EXPECT_TRUE(table.replace(2, 6));
    EXPECT_TRUE(table.get(2)->is(6));
    EXPECT_EQ(table.size(), 3U);
    unsigned next = 0;
    prudence::guard inside;
    table.find(0, inside)->set(7);
    table.for_each(inside, [&](std::uint32_t id, value &at) {
        EXPECT_EQ(id, next++);
        EXPECT_GT(at.number, 4);
    });
    EXPECT_EQ(next, 3U);
}

TEST_F(owners, objects_of_a_const_type_are_not_changed)
{
    prudence::id_table<const value> table("table");
    prudence::guard inside;

    static_assert(std::is_same_v<decltype(table.find(0, inside)), const value *>);
    EXPECT_TRUE(table.find(table.emplace(1), inside)->is(1));
}

TEST_F(owners, of_threads_that_erase_one_object_one_does)
{
    prudence::id_table<value> table("table");
    std::atomic<int> erased{0};
    std::vector<std::thread> threads;

    for (int i = 0; i < 500; i++)
        static_cast<void>(table.emplace(i));
    for (int t = 0; t < 4; t++)
        threads.emplace_back([&] {
            for (unsigned i = 0; i < 500; i++)
                erased += table.erase(i);
        });
    for (std::thread &thread : threads)
        thread.join();
    EXPECT_EQ(erased, 500);
}

// An address for which only new nodes have room.
prudence::routes<std::array<char, 4000>>::prefix prefix_of(unsigned n)
{
    return {{static_cast<unsigned char>(n >> 8), static_cast<unsigned char>(n), 1, 1}, 32};
}

// Fills a container until memory ends. Returns the number of elements.
template <class Add> std::size_t fill(Add add)
{
    std::size_t added = 0;
    struct prudence_stats now;

    EXPECT_EQ(prudence_stats(&now), 0);
    EXPECT_EQ(prudence_option_set(
                  "limit", std::to_string(now.slab_bytes + now.retained_bytes + (8 << 20)).c_str()),
              0);
    try {
        for (; added < 60000; added++)
            add(static_cast<unsigned>(added));
    } catch (const std::bad_alloc &) {
    }
    EXPECT_EQ(prudence_option_set("limit", "0"), 0);
    return added;
}

TEST_F(owners, without_memory_they_are_as_before)
{
    using block = std::array<char, 4000>;
    prudence::hash_map<unsigned, block> hash_map("blocks");
    prudence::map<unsigned, block> map("blocks");
    prudence::routes<block> routes("blocks");
    prudence::id_table<block> table("blocks");
    std::size_t added = fill([&](unsigned n) { hash_map.emplace(n); });

    EXPECT_LT(added, 60000U);
    EXPECT_EQ(hash_map.size(), added);
    EXPECT_TRUE(hash_map.emplace(static_cast<unsigned>(added)));
    added = fill([&](unsigned n) { map.insert_or_assign(n, block()); });
    EXPECT_LT(added, 60000U);
    EXPECT_EQ(map.size(), added);
    added = fill([&](unsigned n) { routes.emplace(prefix_of(n)); });
    EXPECT_LT(added, 60000U);
    EXPECT_EQ(routes.size(), added);
    added = fill([&](unsigned) { static_cast<void>(table.emplace()); });
    EXPECT_LT(added, 60000U);
    EXPECT_EQ(table.size(), added);
}

} // namespace
