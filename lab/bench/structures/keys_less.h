/* SPDX-License-Identifier: MIT */
/* The order of keys, for maps in C++. Strings are padded with 0, which none of them contains. */
#ifndef BENCH_STRUCTURES_KEYS_LESS_H
#define BENCH_STRUCTURES_KEYS_LESS_H

/* C++ headers that the C headers below would otherwise include inside `extern "C"`. */
#include <cstdlib>
#include <cstring>

extern "C" {
#include "keys.h"
}

struct key_less {
    bool operator()(const bench_key &a, const bench_key &b) const
    {
#ifdef STRING_KEYS
        return std::memcmp(a.text, b.text, sizeof a.text) < 0;
#else
        return a < b;
#endif
    }
};

#endif /* BENCH_STRUCTURES_KEYS_LESS_H */
