// SPDX-License-Identifier: MIT
// <prudence/hazard_pointer.hpp> against the words of C++26: what is retired ends once, by its own
// deleter, when no hazard pointer names it; hazard pointers move; and objects of caches need no base.
#include <atomic>
#include <cstddef>
#include <memory>
#include <new>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>
#if __cplusplus >= 202002L
#include <array>
#include <span>
#endif

#include <gtest/gtest.h>

#include <prudence/hazard_pointer.hpp>
#include <prudence/stats.h>

struct route {
    int hop;
};
template <> inline constexpr bool prudence::is_hazard_protectable<route> = true;

namespace
{

std::atomic<int> ended;

struct node : prudence::hazard_pointer_obj_base<node> {
    explicit node(int v = 0) : value(v)
    {
    }
    ~node()
    {
        ended++;
    }
    int value;
};

struct adds {
    template <class T> void operator()(T *object) const
    {
        ended += number;
        delete object;
    }
    int number = 1;
};

struct other {
    int before = 1;
};

// The base is not the first part.
struct with_deleter : other, prudence::hazard_pointer_obj_base<with_deleter, adds> {
    int value = 7;
};

// Runs the deleters of all that no hazard pointer names, and returns how many objects have ended
// since the last call.
int reclaimed()
{
    prudence_hazard_reclaim();
    return ended.exchange(0);
}

TEST(hazard_pointer, what_is_named_is_not_ended)
{
    std::atomic<node *> source(new node(1));
    prudence::hazard_pointer hazard = prudence::make_hazard_pointer();

    EXPECT_FALSE(hazard.empty());
    node *found = hazard.protect(source);
    source.exchange(new node(2))->retire();
    EXPECT_EQ(reclaimed(), 0);
    EXPECT_EQ(found->value, 1);
    EXPECT_EQ(hazard.protect(source)->value, 2);
    EXPECT_EQ(reclaimed(), 1);
    hazard.reset_protection();
    source.exchange(nullptr)->retire();
    EXPECT_EQ(reclaimed(), 1);
    EXPECT_EQ(hazard.protect(source), nullptr);
}

TEST(hazard_pointer, try_protect_says_what_it_found)
{
    node *first = new node(1), *second = new node(2), *wanted = first;
    std::atomic<node *> source(second);
    prudence::hazard_pointer hazard = prudence::make_hazard_pointer();

    EXPECT_FALSE(hazard.try_protect(wanted, source));
    EXPECT_EQ(wanted, second);
    first->retire(); // nothing names it
    EXPECT_EQ(reclaimed(), 1);
    EXPECT_TRUE(hazard.try_protect(wanted, source));
    second->retire();
    EXPECT_EQ(reclaimed(), 0);
    hazard.reset_protection(nullptr);
    EXPECT_EQ(reclaimed(), 1);
}

TEST(hazard_pointer, an_object_that_is_still_linked_can_be_named)
{
    node *object = new node;
    prudence::hazard_pointer first = prudence::make_hazard_pointer();

    first.reset_protection(object);
    object->retire();
    EXPECT_EQ(reclaimed(), 0);
    first = prudence::hazard_pointer();
    EXPECT_EQ(reclaimed(), 1);
}

TEST(hazard_pointer, it_moves_with_its_protection)
{
    static_assert(!std::is_copy_constructible_v<prudence::hazard_pointer>);
    static_assert(std::is_nothrow_move_constructible_v<prudence::hazard_pointer>);
    static_assert(std::is_nothrow_move_assignable_v<prudence::hazard_pointer>);
    static_assert(std::is_nothrow_default_constructible_v<prudence::hazard_pointer>);
    const std::atomic<node *> source(new node);
    prudence::hazard_pointer empty, first = prudence::make_hazard_pointer();

    EXPECT_TRUE(empty.empty());
    node *found = first.protect(source);
    prudence::hazard_pointer second(std::move(first));
    EXPECT_TRUE(first.empty()); // NOLINT: the standard says so
    first = prudence::make_hazard_pointer();
    swap(first, second);
    empty = std::move(first);
    found->retire();
    EXPECT_EQ(reclaimed(), 0);
    prudence::hazard_pointer &self = empty;
    empty = std::move(self);
    EXPECT_FALSE(empty.empty());
    EXPECT_EQ(reclaimed(), 0);
    std::thread([moved = std::move(empty)] { EXPECT_FALSE(moved.empty()); }).join();
    EXPECT_EQ(reclaimed(), 1);
}

TEST(hazard_pointer, a_deleter_is_kept_and_gets_the_whole_object)
{
    const std::atomic<with_deleter *> source(new with_deleter);
    prudence::hazard_pointer hazard = prudence::make_hazard_pointer();
    with_deleter *found = hazard.protect(source);

    found->retire(adds{5});
    EXPECT_EQ(reclaimed(), 0);
    EXPECT_EQ(found->value, 7);
    EXPECT_EQ(found->before, 1);
    hazard.reset_protection();
    EXPECT_EQ(reclaimed(), 5);
}

TEST(hazard_pointer, objects_of_a_cache_need_no_base)
{
    prudence::cache<route> routes("hazard_routes", prudence::hazard_default_domain());
    std::atomic<route *> source(routes.make(route{1}).release());
    prudence::hazard_pointer hazard = prudence::make_hazard_pointer();
    route *found = hazard.protect(source);

    for (int i = 0; i < 10000; i++)
        routes.retire(typename prudence::cache<route>::unique_ptr(
            source.exchange(routes.make(route{i}).release())));
    EXPECT_EQ(found->hop, 1);
    struct prudence_stats stats;
    ASSERT_EQ(prudence_stats(&stats), 0);
    EXPECT_LT(stats.bytes_latent, 10000 * sizeof(route)); // the others went on
    hazard.reset_protection();
    routes.retire(typename prudence::cache<route>::unique_ptr(source.load()));
}

#if defined(__cpp_lib_span)
TEST(hazard_pointer, batches)
{
    std::array<prudence::hazard_pointer, 20> batch; // more than a record has
    const std::atomic<node *> source(new node);

    prudence::make_hazard_pointer_batch(batch);
    for (prudence::hazard_pointer &each : batch)
        ASSERT_FALSE(each.empty());
    batch[19].protect(source)->retire();
    EXPECT_EQ(reclaimed(), 0);
    prudence::clear_hazard_pointer_batch(batch);
    for (prudence::hazard_pointer &each : batch)
        EXPECT_TRUE(each.empty());
    EXPECT_EQ(reclaimed(), 1);
}
#endif

// Readers follow, writers replace and retire; each object ends once, and none while it is named.
TEST(hazard_pointer, readers_with_writers)
{
    constexpr int writers = 2, rounds = 5000;
    std::atomic<node *> source(new node(1));
    std::atomic<bool> stop(false);
    std::vector<std::thread> threads;

    for (int i = 0; i < 2; i++)
        threads.emplace_back([&] {
            prudence::hazard_pointer hazard = prudence::make_hazard_pointer();

            while (!stop.load(std::memory_order_relaxed))
                if (hazard.protect(source)->value != 1)
                    std::abort();
        });
    std::vector<std::thread> writing;
    for (int i = 0; i < writers; i++)
        writing.emplace_back([&] {
            for (int round = 0; round < rounds; round++) {
                node *old = source.exchange(new node(1));

                prudence::hazard_pointer own = prudence::make_hazard_pointer();
                own.reset_protection(old);
                old->retire();
            }
        });
    for (std::thread &each : writing)
        each.join();
    stop = true;
    for (std::thread &each : threads)
        each.join();
    source.load()->retire();
    EXPECT_EQ(reclaimed(), writers * rounds + 1);
}

} // namespace
