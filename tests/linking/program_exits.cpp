// SPDX-License-Identifier: MIT
// Global objects end in the reverse order in which they were made, with what they retired: deleters find
// what was made before. Prints what ended before what they use, and ends with status 1 if anything did.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include <prudence/hazard_pointer.hpp>
#include <prudence/rcu.hpp>

namespace
{

std::atomic<bool> journal_ended;
std::atomic<int> ended;

struct checks { // made first, ends last
    ~checks()
    {
        std::printf("%d ended\n", ended.load());
        std::fflush(stdout);
        if (ended != 5)
            std::_Exit(1);
    }
} first;

struct journal {
    ~journal()
    {
        journal_ended = true;
    }
} the_journal;

template <int Number> struct config {
    std::string name = "a name that is on the heap";
    ~config()
    {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        if (journal_ended) {
            std::printf("object %d ended after the journal\n", Number);
            std::fflush(stdout);
            std::_Exit(1);
        }
        ended++;
    }
};

struct outer { // its rcu_ptr ends in a callback, where nothing can wait
    config<1> own;
    prudence::rcu_ptr<config<2>> inner{std::make_unique<config<2>>()};
};

prudence::rcu_ptr<outer> current(std::make_unique<outer>());

struct named : prudence::hazard_pointer_obj_base<named> {
    config<3> own;
};

} // namespace

int main(int count, char **)
{
    prudence::rcu_retire(new config<4>);
    current.publish(std::make_unique<outer>()); // 1 and 2 end twice
    if (count > 1)
        (new named)->retire();
    else
        ended++;
    ended--; // config<4> is the sixth
    if (count > 2)
        std::thread([] { std::exit(0); }).join();
}
