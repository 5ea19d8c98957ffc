// SPDX-License-Identifier: MIT
// A plug-in of program_plugins.cpp that retires as WAY says, with deleters of its own code, also
// while its static objects end.
#include <memory>
#include <string>

#include <prudence/hash_map.hpp>
#include <prudence/hazard_pointer.hpp>
#include <prudence/rcu.hpp>
#include <prudence/reclaimer.hpp>

extern "C" void use();

namespace
{

struct config {
    std::string name = "a name that is on the heap";
    ~config()
    {
        name[0] = 'b';
    }
};

#if WAY == 1
prudence::rcu_ptr<config> current(std::make_unique<config>());
#elif WAY == 2
struct late {
    ~late()
    {
        prudence::rcu_retire(new config);
    }
} retires_late;
#elif WAY == 3
struct object : prudence::hazard_pointer_obj_base<object> {
    config of;
};
struct late {
    ~late()
    {
        (new object)->retire();
    }
} retires_late;
#elif WAY == 4
struct tenant {
    prudence::hash_map<int, config> users{"users"};
};
prudence::hash_map<int, std::unique_ptr<tenant>> tenants("tenants");
#elif WAY == 5
struct nested { // its deleter retires
    ~nested()
    {
        prudence::rcu_retire(new config);
    }
};
#endif

} // namespace

void use()
{
#if WAY == 1
    current.publish(std::make_unique<config>());
#elif WAY == 2
    prudence::rcu_retire(new config);
#elif WAY == 3
    for (int i = 0; i < 10; i++)
        (new object)->retire();
#elif WAY == 4
    for (int i = 0; i < 10; i++) {
        auto one = std::make_unique<tenant>();

        one->users.emplace(i);
        one->users.erase(i);
        one->users.emplace(i);
        tenants.insert_or_assign(i % 3, std::move(one));
    }
#elif WAY == 5
    prudence::rcu_retire(new nested);
#endif
}
