/* SPDX-License-Identifier: MIT */
/* Requests to run on a place, counted: one number asked for, one carried out. No lock. */
#include "runs.h"

static struct {
    uint64_t wanted, done; /* requests; those carried out, written by the place */
} __attribute__((aligned(VARIANT_LINE))) runs[PLACES_MAX];

void runs_switch(unsigned place)
{
    uint64_t wanted = __atomic_load_n(&runs[place].wanted, __ATOMIC_ACQUIRE);

    if (wanted == runs[place].done)
        return;
    variant_full_fence(); /* the switch itself */
    __atomic_store_n(&runs[place].done, wanted, __ATOMIC_RELEASE);
}

uint64_t runs_ask(unsigned place)
{
    return __atomic_add_fetch(&runs[place].wanted, 1, __ATOMIC_SEQ_CST);
}

void runs_wait(unsigned place, uint64_t wanted, int self)
{
    for (;;) {
        if (__atomic_load_n(&runs[place].done, __ATOMIC_ACQUIRE) >= wanted ||
            variant_is_idle(place))
            return;
        if (self >= 0)
            runs_switch((unsigned)self);
        variant_pause();
    }
}
