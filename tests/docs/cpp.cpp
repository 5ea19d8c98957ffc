// SPDX-License-Identifier: MIT
// The headers of C++, in docs/how-to/cpp.md.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <prudence/hash_map.hpp>
#include <prudence/hazard_pointer.hpp>
#include <prudence/reclaimer.hpp>

namespace rcu = prudence;

struct config {
    int timeout;
};

prudence::rcu_ptr<const config> current;

int timeout()
{
    prudence::guard inside;

    return current.load(inside)->timeout; // lives until `inside` ends
}

void set_timeout(int seconds)
{
    prudence::copy_update(current, [=](config &copy) { copy.timeout = seconds; });
}

struct session : rcu::rcu_obj_base<session> {
    std::string user;
};

void close_session(session *unlinked)
{
    unlinked->retire(); // ~session runs when its readers have ended
}

struct greeting : prudence::hazard_pointer_obj_base<greeting> {
    std::string text;
};

std::atomic<greeting *> shown(new greeting);

std::string text()
{
    prudence::hazard_pointer hazard = prudence::make_hazard_pointer();

    return hazard.protect(shown)->text; // lives until `hazard` ends
}

void show(greeting *next)
{
    shown.exchange(next)->retire();
}

prudence::reclaimer ended; // of the main thread

void log_out(session *unlinked)
{
    ended.retire(unlinked); // in any thread
}

bool end_sessions()
{
    ended.run(100); // ~session runs here, for up to 100 of them

    return ended.drain_until(std::chrono::steady_clock::now() + std::chrono::seconds(1));
}

prudence::cache<session> sessions("session");

void reopen(prudence::cache<session>::unique_ptr &slot, const char *user)
{
    auto next = sessions.make();

    next->user = user;
    slot.swap(next);
    sessions.retire(std::move(next)); // unlinked now
}

prudence::hash_map<std::string, unsigned short> ports("ports");

unsigned short port_of(std::string_view service)
{
    return ports.get(service).value_or(0); // a copy
}

bool is_privileged(std::string_view service)
{
    prudence::guard inside;
    const unsigned short *port = ports.find(service, inside); // lives until `inside` ends

    return port && *port < 1024;
}

static void use_containers()
{
    std::vector<int, prudence::allocator<int>> numbers;
    std::pmr::vector<std::pmr::string> names(prudence::get_memory_resource());

    numbers.push_back(1);
    names.emplace_back("one");
}

int main()
{
    auto slot = sessions.make();

    current.publish(std::make_unique<const config>(config{10}));
    set_timeout(20);
    if (timeout() != 20)
        return EXIT_FAILURE;
    close_session(new session);
    show(new greeting);
    if (!text().empty())
        return EXIT_FAILURE;
    delete shown.exchange(nullptr);
    log_out(new session);
    while (!end_sessions())
        ;
    ports.emplace("http", static_cast<unsigned short>(80));
    if (port_of("http") != 80 || port_of("none") != 0 || !is_privileged("http"))
        return EXIT_FAILURE;
    reopen(slot, "somebody");
    use_containers();
    prudence::rcu_barrier();
    return slot->user == "somebody" ? EXIT_SUCCESS : EXIT_FAILURE;
}
