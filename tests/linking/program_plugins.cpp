// SPDX-License-Identifier: MIT
// Loads, uses and unloads a plug-in 20 times. What the plug-in has retired must have ended before its code
// is gone: afterwards this waits for callbacks, and calls deleters.
#include <cstdio>

#include <dlfcn.h>

#include <prudence/hazard.h>
#include <prudence/rcu.hpp>

int main(int, char **arguments)
{
    for (int i = 0; i < 20; i++) {
        void *plugin = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);

        if (!plugin) {
            std::puts(dlerror());
            return 2;
        }
        reinterpret_cast<void (*)()>(dlsym(plugin, "use"))();
        dlclose(plugin);
        if (dlopen(arguments[1], RTLD_NOW | RTLD_NOLOAD)) {
            std::puts("the plug-in was not unloaded");
            return 3;
        }
        prudence::rcu_barrier();
        prudence_hazard_reclaim();
    }
    std::puts("ok");
}
