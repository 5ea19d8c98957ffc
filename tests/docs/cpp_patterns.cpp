// SPDX-License-Identifier: MIT
// Patterns of RCU in C++, in docs/how-to/cpp.md.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <prudence/id_table.hpp>

struct account {
    std::mutex lock;
    bool closed = false; // guarded by the lock, as the balance is
    long balance = 0;
};

prudence::id_table<account> accounts("accounts");

bool deposit(std::uint32_t id, long amount)
{
    prudence::guard inside;
    account *found = accounts.find(id, inside);

    if (!found)
        return false;
    std::scoped_lock locked(found->lock);
    if (found->closed)
        return false;
    found->balance += amount;
    return true;
}

bool close_account(std::uint32_t id)
{
    prudence::guard inside;
    account *found = accounts.find(id, inside);

    if (!found)
        return false;
    std::scoped_lock locked(found->lock);
    if (found->closed)
        return false;
    found->closed = true; // this thread alone erases it
    return accounts.erase(id);
}

struct limits {
    long low, high;
};

prudence::rcu_ptr<const limits> allowed;

bool is_allowed(long value)
{
    prudence::guard inside;
    const limits *seen = allowed.load(inside); // only once, so both fields are of one version

    return seen->low <= value && value <= seen->high;
}

void move_limits(long by)
{
    prudence::copy_update(allowed, [=](limits &copy) {
        copy.low += by;
        copy.high += by;
    });
}

int main()
{
    std::vector<std::thread> threads;
    std::uint32_t id = accounts.emplace();

    allowed.publish(std::make_unique<const limits>(limits{0, 10}));
    for (int t = 0; t < 2; t++)
        threads.emplace_back([&] {
            for (int i = 0; i < 1000; i++) {
                move_limits(1);
                if (!deposit(id, 1))
                    std::abort();
            }
        });
    for (std::thread &thread : threads)
        thread.join();
    if (is_allowed(1999) || !is_allowed(2000) || !is_allowed(2010) || is_allowed(2011))
        return EXIT_FAILURE;
    {
        prudence::guard inside;

        if (accounts.find(id, inside)->balance != 2000)
            return EXIT_FAILURE;
    }
    return close_account(id) && !close_account(id) && !deposit(id, 1) ? EXIT_SUCCESS : EXIT_FAILURE;
}
