// SPDX-License-Identifier: MIT
// prudence::cache<T>: every object that was made is destroyed exactly once, when its readers have
// ended, whatever owns it, and also if its constructor throws.
#include <array>
#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <prudence/cache.hpp>
#include <prudence/rcu.h>
#include <prudence/stats.h>

namespace
{

std::atomic<int> alive, destroyed;

struct counted {
    explicit counted(int v) : value(v)
    {
        alive++;
    }
    counted(const counted &) = delete;
    counted &operator=(const counted &) = delete;
    ~counted()
    {
        alive--;
        destroyed++;
    }
    int value;
};

struct plain {
    int value;
};

struct throws {
    explicit throws(bool now) : text("more text than a string keeps in itself")
    {
        if (now)
            throw std::runtime_error("constructor");
        alive++;
    }
    throws(const throws &) = delete;
    throws &operator=(const throws &) = delete;
    ~throws()
    {
        alive--;
        destroyed++;
    }
    std::string text;
};

struct alignas(256) aligned {
    char bytes[300];
};

class cache : public testing::Test
{
  protected:
    void SetUp() override
    {
        alive = 0;
        destroyed = 0;
    }
};

TEST_F(cache, an_owner_destroys_at_once)
{
    prudence::cache<counted> objects("counted");
    {
        auto one = objects.make(7);

        EXPECT_EQ(one->value, 7);
        EXPECT_EQ(alive, 1);
    }
    EXPECT_EQ(destroyed, 1);
}

TEST_F(cache, a_retired_object_outlives_its_readers)
{
    prudence::cache<counted> objects("counted");
    auto one = objects.make(7);
    counted *seen = one.get();

    prudence_read_lock();
    objects.retire(std::move(one));
    for (int i = 0; i < 1000; i++)
        static_cast<void>(prudence_gp_poll_state(prudence_gp_get_state()));
    EXPECT_EQ(seen->value, 7);
    EXPECT_EQ(destroyed, 0);
    prudence_read_unlock();
    objects.barrier();
    EXPECT_EQ(destroyed, 1);
}

TEST_F(cache, a_cache_that_ends_has_destroyed_all_that_was_retired)
{
    {
        prudence::cache<counted> objects("counted");

        for (int i = 0; i < 10000; i++)
            objects.retire(objects.make(i));
    }
    EXPECT_EQ(destroyed, 10000);
    EXPECT_EQ(alive, 0);
}

TEST_F(cache, objects_without_a_destructor_need_no_destructor_in_c)
{
    static_assert(prudence::cache<plain>::only_memory);
    static_assert(!prudence::cache<counted>::only_memory);
    prudence::cache<plain> objects("plain");

    for (int i = 0; i < 10000; i++)
        objects.retire(objects.make(plain{i}));
    objects.barrier();
}

TEST_F(cache, a_constructor_that_throws_leaves_nothing)
{
    prudence::cache<throws> objects("throws");

    for (int i = 0; i < 1000; i++) {
        EXPECT_THROW(static_cast<void>(objects.make(true)), std::runtime_error);
        EXPECT_EQ(destroyed, i);
        EXPECT_EQ(objects.make(false)->text.size(), 39U);
    }
    EXPECT_EQ(alive, 0);
    EXPECT_EQ(destroyed, 1000);
}

TEST_F(cache, reserved_memory_may_stay_without_an_object)
{
    prudence::cache<counted> objects("counted");
    {
        auto unused = objects.reserve();
        auto used = objects.reserve();
        auto one = objects.make_in(std::move(used), 5);

        EXPECT_EQ(one->value, 5);
    }
    EXPECT_EQ(destroyed, 1);
}

TEST_F(cache, owners_may_share_or_retire)
{
    prudence::cache<counted> objects("counted");
    {
        std::shared_ptr<counted> shared = objects.make(1);
        std::shared_ptr<counted> second = shared;
    }
    EXPECT_EQ(destroyed, 1);
    {
        auto retiring = objects.make_retiring(2);
    }
    objects.barrier();
    EXPECT_EQ(destroyed, 2);
}

TEST_F(cache, objects_are_aligned)
{
    prudence::cache<aligned> objects("aligned");
    std::vector<prudence::cache<aligned>::unique_ptr> some;

    for (int i = 0; i < 40; i++) {
        some.push_back(objects.make());
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(some.back().get()) % 256, 0U);
    }
}

TEST_F(cache, refusals_are_exceptions_with_the_number_of_c)
{
    try {
        prudence::cache<plain> nameless("");
        FAIL();
    } catch (const std::system_error &error) {
        EXPECT_EQ(error.code().value(), EINVAL);
    }
    prudence::cache<plain> objects("plain");
    prudence_read_lock();
    EXPECT_THROW(objects.barrier(), std::system_error);
    prudence_read_unlock();
    objects.barrier();
}

TEST_F(cache, a_domain_of_ones_own)
{
    prudence_domain *domain = prudence_domain_create("own", PRUDENCE_DOMAIN_SRCU, nullptr);
    {
        prudence::cache<counted> objects("counted", domain);

        prudence_domain_read_lock(domain);
        objects.retire(objects.make(1));
        EXPECT_EQ(destroyed, 0);
        prudence_domain_read_unlock(domain);
        objects.barrier();
        EXPECT_EQ(destroyed, 1);
    }
    EXPECT_EQ(prudence_domain_destroy(domain), 0);
}

// Returns how many caches have the name.
int caches_called(const std::string &name)
{
    prudence_walk walk = PRUDENCE_WALK_INIT;
    struct prudence_cache_stats stats;
    int count = 0;

    while (prudence_next_cache(&walk, &stats) == 0)
        count += stats.name == name;
    return count;
}

TEST_F(cache, a_cache_in_an_object_of_a_cache_ends)
{
    struct owner {
        prudence::cache<counted> inner{"inner"};
    };
    constexpr int owners = 100;
    prudence::cache<owner> outer("outer");

    for (int i = 0; i < owners; i++) {
        auto one = outer.make();

        one->inner.retire(one->inner.make(i));
        outer.retire(std::move(one));
    }
    while (caches_called("inner"))
        std::this_thread::yield();
    EXPECT_EQ(destroyed, owners);
}

TEST_F(cache, many_threads_lose_nothing)
{
    constexpr int each = 3000;
    {
        prudence::cache<throws> objects("throws");
        std::vector<std::thread> threads;

        for (int t = 0; t < 8; t++)
            threads.emplace_back([&objects, t] {
                for (int i = 0; i < each; i++) {
                    try {
                        objects.retire(objects.make((i + t) % 3 == 0));
                    } catch (const std::runtime_error &) {
                    }
                }
            });
        for (std::thread &thread : threads)
            thread.join();
    }
    EXPECT_EQ(alive, 0);
    EXPECT_EQ(destroyed, 8 * each * 2 / 3);
}

} // namespace
