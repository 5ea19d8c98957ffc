// SPDX-License-Identifier: MIT
// The program of docs/tutorial/first-program.md in C++, in docs/how-to/cpp.md.
#include <cstdlib>
#include <thread>

#include <prudence/rcu.hpp>

struct route {
    int next_hop;
};

prudence::cache<route> routes("routes");
prudence::rcu_ptr<route, prudence::cache_delete<route>> current;

int lookup()
{
    prudence::guard inside;

    return current.load(inside)->next_hop;
}

void replace(int next_hop)
{
    current.publish(routes.make(route{next_hop})); // and defers the old one
}

int main()
{
    constexpr int last = 100000;
    int seen = 0;

    replace(0);
    std::thread reader([&] {
        while (seen < last)
            seen = lookup();
    });
    for (int hop = 1; hop <= last; hop++)
        replace(hop);
    reader.join();
    return seen == last ? EXIT_SUCCESS : EXIT_FAILURE;
}
