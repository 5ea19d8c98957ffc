/* SPDX-License-Identifier: MIT */
/* Throws before main, in it, and behind it: the unwinder is used while options for traces act. */
#include <stdexcept>
#include <string>

static int caught;

static void try_it()
{
    try {
        throw std::runtime_error(std::string(100, 'x'));
    } catch (const std::exception &error) {
        caught += error.what()[99] == 'x';
    }
}

static struct thrower {
    thrower()
    {
        try_it();
    }
    ~thrower()
    {
        try_it();
    }
} outside;

int main()
{
    try_it();
    return caught == 2 ? 0 : 1;
}
