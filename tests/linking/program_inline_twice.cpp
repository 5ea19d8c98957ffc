// SPDX-License-Identifier: MIT
// Built twice, as two parts of one program: of a template and an inline function that both parts have, the linker keeps
// one each, with its restartable sequences.
#include <prudence/inline.h>

#include <cstdio>

template <int Size> struct pool {
    prudence_cache *cache = prudence_cache_create("pool", Size, nullptr);

    static pool &only()
    {
        static pool one;
        return one;
    }

    void *turn(void *old)
    {
        return prudence_cache_replace(cache, old);
    }
};

inline void give(void *object)
{
    prudence_cache_free(pool<64>::only().cache, object);
}

#ifdef PART
void part(int rounds);

void part(int rounds)
#else
void part(int rounds);

static void first_part(int rounds)
#endif
{
    void *object = nullptr;

    for (int i = 0; i < rounds; i++)
        object = pool<64>::only().turn(object);
    give(object);
}

#ifndef PART
int main()
{
    first_part(10000);
    part(10000);
    std::printf("%s\n", PRUDENCE_INLINED ? "inlined" : "called");
}
#endif
