/* SPDX-License-Identifier: MIT */
/* Threads that repeat one thing for a time, and the rate of all of them together. */
#ifndef ADVISE_CREW_H
#define ADVISE_CREW_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define APART           128 /* bytes; many processors fetch lines in pairs */
#define CREW_MOST       1024
#define CREW_LOOKS      50
#define CREW_RANDOM_END (UINT64_C(1) << 53)

struct crew_member {
    pthread_t thread;
    const struct crew *crew;
    unsigned number; /* from 0 */
    uint64_t random; /* state of crew_random(), not 0 */
    uint64_t done;   /* counted by turns */
    uint64_t before; /* part of `done` from before the measurement */
    uint64_t sum;    /* sum of read values, so that no read is optimized away */
} __attribute__((aligned(APART)));

struct crew {
    unsigned threads;                       /* up to CREW_MOST */
    void (*turn)(struct crew_member *self); /* repeated; adds to self->done */
    void (*begin)(void);                    /* called when the measurement begins; NULL: nothing */
    void (*look)(unsigned number); /* CREW_LOOKS times in the measurement, from 0; NULL: nothing */
    bool pinned;                   /* binds each member to a CPU, if there are enough */
};

/* Initializes a member. Random numbers differ for each number, and are the same in each run. */
static inline void crew_member_init(struct crew_member *self, unsigned number)
{
    *self = (struct crew_member){
        .number = number, .random = 88172645463325252 + number * UINT64_C(0x9e3779b97f4a7c15)};
}

/* Returns an evenly distributed number below CREW_RANDOM_END. */
static inline uint64_t crew_random(struct crew_member *self)
{
    self->random ^= self->random << 13;
    self->random ^= self->random >> 7;
    self->random ^= self->random << 17;
    return self->random >> 11;
}

/*
 * Lets the crew work for `seconds`, after a fifth of that for warm-up, or longer until a turn has
 * ended. Returns the operations per second, which are above 0, or -1 with errno.
 */
double crew_rate(const struct crew *crew, double seconds);

#endif /* ADVISE_CREW_H */
