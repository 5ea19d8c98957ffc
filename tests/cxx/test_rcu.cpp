// SPDX-License-Identifier: MIT
// <prudence/rcu.hpp> against the words of C++26: what is retired ends once, after the regions that
// were open, by its own deleter; and memory alone goes without a callback where no thread could
// notice.
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <prudence/rcu.hpp>
#include <prudence/stats.h>

#include "on_malloc.h"

namespace
{

std::atomic<int> ended;

// Bytes of objects that are deferred now.
std::uint64_t latent()
{
    struct prudence_stats stats;

    EXPECT_EQ(prudence_stats(&stats), 0);
    return stats.bytes_latent;
}

struct node : prudence::rcu_obj_base<node> {
    explicit node(int v = 0) : value(v)
    {
    }
    ~node()
    {
        ended++;
    }
    int value;
};

struct trivial : prudence::rcu_obj_base<trivial> {
    int value = 0;
};

struct count_and_delete {
    template <class T> void operator()(T *object) const
    {
        ended++;
        delete object;
    }
};

struct with_deleter : prudence::rcu_obj_base<with_deleter, count_and_delete> {
};

struct keeps_a_number {
    void operator()(int *object) const
    {
        ended += number;
        delete object;
    }
    int number = 1;
};

struct own_delete {
    static void *operator new(std::size_t size)
    {
        return ::operator new(size);
    }
    static void operator delete(void *object)
    {
        ended++;
        ::operator delete(object);
    }
    int value = 0;
};

struct alignas(64) over_aligned {
    int value = 0;
};

struct base {
    virtual ~base()
    {
        ended++;
    }
    int value = 0;
};

struct derived : base {
    ~derived() override
    {
        ended += 10;
    }
};

class rcu : public testing::Test
{
  protected:
    void SetUp() override
    {
        ended = 0;
    }

    // Objects that wait at exit seem a leak: the library's memory is not searched for pointers.
    void TearDown() override
    {
        prudence::rcu_barrier();
    }
};

TEST_F(rcu, the_domain_is_lockable_and_regions_nest)
{
    prudence::rcu_domain &domain = prudence::rcu_default_domain();

    EXPECT_EQ(&domain, &prudence::rcu_default_domain());
    {
        std::scoped_lock outer(domain);
        std::unique_lock inner(domain, std::try_to_lock);

        EXPECT_TRUE(inner.owns_lock());
        EXPECT_TRUE(prudence_is_reading());
        inner.unlock();
        EXPECT_TRUE(prudence_is_reading());
    }
    EXPECT_FALSE(prudence_is_reading());
    static_assert(!std::is_copy_constructible_v<prudence::rcu_domain>);
    static_assert(!std::is_default_constructible_v<prudence::rcu_domain>);
    static_assert(noexcept(domain.lock()) &&noexcept(domain.unlock()));
}

TEST_F(rcu, an_object_retires_itself)
{
    node *one = new node(5);
    {
        prudence::guard inside;

        one->retire();
        EXPECT_EQ(one->value, 5);
        EXPECT_EQ(ended, 0);
    }
    prudence::rcu_barrier();
    EXPECT_EQ(ended, 1);
    static_assert(noexcept(one->retire()));
}

TEST_F(rcu, deleters_of_every_kind_are_called_once)
{
    (new with_deleter)->retire();
    prudence::rcu_retire(new node);
    prudence::rcu_retire(new int(1), count_and_delete());
    prudence::rcu_retire(new int(1), keeps_a_number{100});
    prudence::rcu_retire(new int(1), [](int *object) {
        ended += 1000;
        delete object;
    });
    prudence::rcu_retire(new own_delete);
    prudence::rcu_retire<base>(new derived);
    prudence::rcu_barrier();
    EXPECT_EQ(ended, 1 + 1 + 1 + 100 + 1000 + 1 + 11);
}

TEST_F(rcu, a_deleter_that_only_moves)
{
    auto other = std::make_unique<int>(7);

    prudence::rcu_retire(new int(1), [kept = std::move(other)](int *object) {
        ended += *kept;
        delete object;
    });
    prudence::rcu_barrier();
    EXPECT_EQ(ended, 7);
}

struct plain : prudence::rcu_obj_base<plain> {
    int value = 0;
};
static_assert(std::is_trivially_copyable_v<plain> && std::is_trivially_destructible_v<plain>,
              "as C++26's rcu_obj_base, if the deleter is");

TEST_F(rcu, a_copy_has_a_head_of_its_own)
{
    node *one = new node(3);
    prudence::guard inside;

    one->retire();
    node *copy = new node(*one);
    node assigned;
    assigned = *one;
    EXPECT_EQ(copy->value + assigned.value, 6);
    copy->retire();
}

TEST_F(rcu, memory_alone_needs_no_callback_if_operator_delete_is_ours)
{
    EXPECT_EQ(prudence_malloc_deletes(), on_malloc);
    prudence::guard inside;
    std::uint64_t before = latent();

    for (int i = 0; i < 100; i++) {
        prudence::rcu_retire(new int(1));
        (new trivial)->retire();
    }
    EXPECT_EQ(latent() - before >= 100 * (sizeof(int) + sizeof(trivial)), on_malloc);
    before = latent();
    for (int i = 0; i < 100; i++)
        prudence::rcu_retire(new own_delete);
    prudence::rcu_retire(new over_aligned);
    EXPECT_EQ(latent(), before);
}

TEST_F(rcu, objects_of_caches_need_none_in_any_process)
{
    prudence::cache<int> numbers("numbers");
    {
        prudence::guard inside;
        std::uint64_t before = latent();

        for (int i = 0; i < 100; i++)
            prudence::rcu_retire(numbers.make(i).release(), prudence::cache_delete<int>());
        EXPECT_GE(latent() - before, 100 * sizeof(int));
    }
}

TEST_F(rcu, objects_of_another_domain_wait_for_readers_of_this_one)
{
    prudence_domain *domain = prudence_domain_create("other", PRUDENCE_DOMAIN_SRCU, nullptr);
    {
        prudence::cache<int> numbers("numbers", domain);
        {
            prudence::guard inside;
            int *number = numbers.make(5).release();
            std::uint64_t before = latent();

            prudence::rcu_retire(number, prudence::cache_delete<int>());
            EXPECT_EQ(latent(), before);
            EXPECT_EQ(*number, 5);
        }
        prudence::rcu_barrier();
    }
    EXPECT_EQ(prudence_domain_destroy(domain), 0);
}

TEST_F(rcu, foreign_and_inner_addresses_are_not_deferred)
{
    int *numbers = static_cast<int *>(prudence_malloc(64)), local = 0;

    EXPECT_FALSE(prudence_domain_free_deferred(prudence_default_domain(), numbers + 4));
    EXPECT_FALSE(prudence_domain_free_deferred(prudence_default_domain(), &local));
    EXPECT_TRUE(prudence_domain_free_deferred(prudence_default_domain(), nullptr));
    EXPECT_TRUE(prudence_domain_free_deferred(prudence_default_domain(), numbers));
}

TEST_F(rcu, a_deleter_may_retire)
{
    prudence::rcu_retire(new int(1), [](int *object) {
        delete object;
        (new node)->retire();
        ended++;
    });
    prudence::rcu_barrier();
    prudence::rcu_barrier();
    EXPECT_EQ(ended, 2);
}

TEST_F(rcu, an_owner_that_readers_follow)
{
    prudence::rcu_ptr<node> current(std::make_unique<node>(1));
    {
        prudence::guard inside;
        node *seen = current.load(inside);

        current.publish(std::make_unique<node>(2));
        EXPECT_EQ(seen->value, 1);
        EXPECT_EQ(current.load(inside)->value, 2);
    }
    prudence::rcu_barrier();
    EXPECT_EQ(ended, 1);
    current.publish(nullptr);
    prudence::rcu_barrier();
    EXPECT_EQ(ended, 2);
    {
        prudence::guard inside;

        EXPECT_EQ(current.load(inside), nullptr);
        std::unique_ptr<node> next = std::make_unique<node>(3);
        EXPECT_FALSE(current.publish_if(next.get(), next));
        EXPECT_EQ(next->value, 3);
        EXPECT_TRUE(current.publish_if(nullptr, next));
        EXPECT_EQ(next, nullptr);
    }
}

struct config {
    int first, second;
};

TEST_F(rcu, copies_of_several_writers_lose_no_update)
{
    prudence::rcu_ptr<const config> current(std::make_unique<const config>(config{0, 0}));
    prudence::cache<config> configs("config");
    prudence::rcu_ptr<config, prudence::cache_delete<config>> cached(configs.make(config{0, 0}));
    std::atomic<bool> stop{false};
    std::vector<std::thread> writers;
    std::thread reader([&] {
        while (!stop) {
            prudence::guard inside;
            const config *one = current.load(inside), *other = cached.load(inside);

            ASSERT_EQ(one->first, one->second);
            ASSERT_EQ(other->first, other->second);
        }
    });
    auto change = [](config &copy) {
        copy.first++;
        copy.second++;
    };

    for (int t = 0; t < 4; t++)
        writers.emplace_back([&] {
            for (int i = 0; i < 2000; i++) {
                ASSERT_TRUE(prudence::copy_update(current, change));
                ASSERT_TRUE(prudence::copy_update(cached, configs, change));
            }
        });
    for (std::thread &writer : writers)
        writer.join();
    stop = true;
    reader.join();
    {
        prudence::guard inside;

        EXPECT_EQ(current.load(inside)->first, 8000);
        EXPECT_EQ(cached.load(inside)->first, 8000);
    }
    cached.publish(nullptr);
}

TEST_F(rcu, an_update_starts_over_when_another_publishes_meanwhile)
{
    prudence::rcu_ptr<config> one(std::make_unique<config>(config{1, 1}));
    int calls = 0;

    EXPECT_TRUE(prudence::copy_update(one, [&](config &copy) {
        if (calls++ == 0)
            one.publish(std::make_unique<config>(config{10, 10}));
        copy.first++;
    }));
    EXPECT_EQ(calls, 2);
    prudence::guard inside;
    EXPECT_EQ(one.load(inside)->first, 11);
}

// A destructor that waits for readers would fail inside the region.
TEST_F(rcu, a_copy_that_is_not_published_ends_after_the_region)
{
    prudence::rcu_ptr<std::shared_ptr<int>> one(std::make_unique<std::shared_ptr<int>>());
    int calls = 0, inside = 0;
    auto change = [&](std::shared_ptr<int> &copy) {
        copy = {new int, [&](const int *number) {
                    inside += prudence_is_reading();
                    delete number;
                }};
        if (++calls == 1)
            one.publish(std::make_unique<std::shared_ptr<int>>());
        if (calls == 3)
            throw 1;
    };

    EXPECT_TRUE(prudence::copy_update(one, change));
    EXPECT_EQ(calls, 2);
    EXPECT_THROW(prudence::copy_update(one, change), int);
    EXPECT_EQ(inside, 0);
}

TEST_F(rcu, an_update_of_nothing_and_one_that_throws_change_nothing)
{
    prudence::rcu_ptr<config> empty, one(std::make_unique<config>(config{1, 1}));

    EXPECT_FALSE(prudence::copy_update(empty, [](config &) {}));
    EXPECT_THROW(prudence::copy_update(one,
                                       [](config &copy) {
                                           copy.first = 2;
                                           throw 1;
                                       }),
                 int);
    EXPECT_FALSE(prudence_is_reading());
    prudence::guard inside;
    EXPECT_EQ(one.load(inside)->first, 1);
}

TEST_F(rcu, threads_that_retire_while_others_read)
{
    constexpr int each = 3000;
    prudence::rcu_ptr<node> current(std::make_unique<node>(0));
    std::vector<std::thread> threads;

    for (int t = 0; t < 4; t++) {
        threads.emplace_back([&] {
            for (int i = 0; i < each; i++)
                current.publish(std::make_unique<node>(i));
        });
        threads.emplace_back([&] {
            for (int i = 0; i < each; i++) {
                std::scoped_lock region(prudence::rcu_default_domain());
                prudence::guard inside;

                ASSERT_LT(current.load(inside)->value, each);
            }
        });
    }
    for (std::thread &thread : threads)
        thread.join();
    prudence::rcu_synchronize();
    prudence::rcu_barrier();
    EXPECT_EQ(ended, 4 * each);
}

} // namespace
