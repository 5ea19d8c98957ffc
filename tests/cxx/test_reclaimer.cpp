// SPDX-License-Identifier: MIT
// prudence::reclaimer: what is retired ends once, after its readers, and on the thread that runs the
// reclaimer. Deadlines of this and of the other barriers.
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <prudence/reclaimer.hpp>

namespace
{

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using std::chrono::system_clock;

std::atomic<int> ended, elsewhere;
thread_local bool is_here;

struct object {
    explicit object(int v = 1) : value(v)
    {
    }
    object(const object &) = delete;
    object &operator=(const object &) = delete;
    ~object()
    {
        ended += value;
        elsewhere += !is_here;
    }
    int value;
};

class reclaimer : public testing::Test
{
  protected:
    void SetUp() override
    {
        prudence::rcu_barrier();
        ended = elsewhere = 0;
        is_here = true;
    }
};

TEST_F(reclaimer, objects_end_where_it_runs)
{
    prudence::reclaimer objects;

    std::thread([&] {
        for (int i = 0; i < 100; i++)
            objects.retire(new object);
    }).join();
    prudence::rcu_barrier();
    EXPECT_EQ(ended, 0);
    EXPECT_EQ(objects.pending(), 100U);
    EXPECT_EQ(objects.run(30), 30U);
    EXPECT_EQ(objects.pending(), 70U);
    objects.retire(new object);
    prudence::rcu_barrier();
    EXPECT_EQ(objects.run(), 71U);
    EXPECT_EQ(objects.run(), 0U);
    EXPECT_EQ(ended, 101);
    EXPECT_EQ(elsewhere, 0);
}

TEST_F(reclaimer, none_ends_before_its_readers_have_left)
{
    prudence::reclaimer objects;
    object *seen = new object(7);
    {
        prudence::guard inside;

        objects.retire(seen);
        EXPECT_EQ(objects.run(), 0U);
        EXPECT_EQ(seen->value, 7);
    }
    objects.drain();
    EXPECT_EQ(ended, 7);
    EXPECT_EQ(objects.pending(), 0U);
}

TEST_F(reclaimer, deleters_of_every_kind)
{
    prudence::cache<object> cached("object");
    {
        prudence::reclaimer objects;
        auto kept = std::make_unique<int>(100);

        objects.retire(new int(1), [other = std::move(kept)](int *one) {
            ended += *other;
            delete one;
        });
        objects.retire(cached.make(10).release(), prudence::cache_delete<object>());
        objects.retire(new const object(1000));
        objects.retire(new int(1)); // memory alone, perhaps without a record
    }
    EXPECT_EQ(ended, 1110);
    EXPECT_EQ(elsewhere, 0);
}

TEST_F(reclaimer, the_end_of_a_reclaimer_ends_what_deleters_retire)
{
    {
        prudence::reclaimer objects;

        objects.retire(new object, [&objects](object *one) {
            objects.retire(new object);
            delete one;
            objects.run();
        });
    }
    EXPECT_EQ(ended, 2);
}

TEST_F(reclaimer, a_deleter_that_cannot_be_moved_retires_nothing)
{
    struct deleter {
        deleter() = default;
        deleter(const deleter &) = default;
        deleter(deleter &&)
        {
            throw std::runtime_error("move");
        }
        deleter &operator=(const deleter &) = default;
        void operator()(object *one) const
        {
            delete one;
        }
    };
    prudence::reclaimer objects;
    auto one = std::make_unique<object>();
    deleter ends;

    EXPECT_THROW(objects.retire(one.get(), ends), std::runtime_error);
    EXPECT_EQ(objects.pending(), 0U);
}

std::atomic<int> told;

TEST_F(reclaimer, tells_when_the_first_object_is_ready)
{
    prudence::reclaimer objects(
        [](void *count) noexcept { ++*static_cast<std::atomic<int> *>(count); }, &told);

    told = 0;
    for (int round = 1; round <= 3; round++) {
        {
            prudence::guard inside;

            for (int i = 0; i < 10; i++)
                objects.retire(new object);
            EXPECT_EQ(told, round - 1);
        }
        prudence::rcu_barrier();
        EXPECT_EQ(told, round);
        EXPECT_EQ(objects.run(), 10U);
    }
}

TEST_F(reclaimer, a_deadline)
{
    prudence::reclaimer objects;
    prudence::cache<object> cached("object");
    std::atomic<bool> inside{false}, leave{false};
    std::thread reader([&] {
        prudence::guard region;

        inside = true;
        while (!leave)
            std::this_thread::yield();
    });

    while (!inside)
        std::this_thread::yield();
    objects.retire(new object);
    prudence::rcu_retire(new object(10));
    cached.retire(cached.make(100));
    EXPECT_FALSE(objects.drain_until(steady_clock::now()));
    EXPECT_FALSE(objects.drain_until(steady_clock::now() + milliseconds(3)));
    EXPECT_FALSE(prudence::flush_until(system_clock::now() + milliseconds(3)));
    EXPECT_FALSE(prudence::flush_until(steady_clock::time_point::min()));
    EXPECT_FALSE(cached.barrier_until(steady_clock::now() + milliseconds(3)));
    EXPECT_EQ(ended, 0);
    leave = true;
    reader.join();
    EXPECT_TRUE(prudence::flush_until(system_clock::now() + hours(1)));
    EXPECT_TRUE(cached.barrier_until(steady_clock::time_point::max()));
    EXPECT_EQ(ended, 110);
    EXPECT_FALSE(objects.drain_until(steady_clock::now()));
    EXPECT_EQ(ended, 110);
    EXPECT_TRUE(objects.drain_until(steady_clock::now() + hours(1)));
    EXPECT_EQ(ended, 111);
    // On a busy machine an object may be ready before the call; not each time.
    for (int i = 0; i < 100; i++) {
        objects.retire(new object);
        EXPECT_TRUE(objects.drain_until(steady_clock::now() + hours(1)));
        EXPECT_EQ(ended, 112 + i);
    }
}

TEST_F(reclaimer, one_for_each_thread)
{
    std::vector<std::thread> threads;

    for (int t = 0; t < 4; t++)
        threads.emplace_back([] {
            thread_local prudence::reclaimer mine;

            is_here = true;
            for (int i = 0; i < 500; i++) {
                mine.retire(new object);
                mine.run();
            }
        });
    for (std::thread &thread : threads)
        thread.join();
    EXPECT_EQ(ended, 4 * 500);
    EXPECT_EQ(elsewhere, 0);
}

TEST_F(reclaimer, threads_that_retire_while_one_runs_it)
{
    constexpr int each = 2000;
    prudence::reclaimer objects;
    std::vector<std::thread> threads;

    for (int t = 0; t < 4; t++)
        threads.emplace_back([&] {
            for (int i = 0; i < each; i++) {
                prudence::guard inside;

                objects.retire(new object);
            }
        });
    while (ended < 4 * each)
        if (!objects.run(100))
            std::this_thread::yield();
    for (std::thread &thread : threads)
        thread.join();
    EXPECT_EQ(ended, 4 * each);
    EXPECT_EQ(elsewhere, 0);
    EXPECT_EQ(objects.pending(), 0U);
}

} // namespace
