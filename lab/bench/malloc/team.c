/* SPDX-License-Identifier: MIT */
/* The threads of a pattern. */
#define _GNU_SOURCE
#include "load.h"

#include <pthread.h>
#include <string.h>

struct place {
    struct member member;
    void (*work)(struct member *member);
    pthread_barrier_t *start;
    pthread_t thread;
} __attribute__((aligned(128)));

uint64_t load_scaled(const struct load *load, uint64_t count)
{
    double scaled = (double)count * load->scale;

    return scaled < 1 ? 1 : (uint64_t)scaled;
}

static void *place_run(void *argument)
{
    struct place *place = argument;

    pthread_barrier_wait(place->start);
    place->work(&place->member);
    return NULL;
}

uint64_t team_run(const struct load *load, unsigned threads, void (*work)(struct member *member),
                  void *whatever)
{
    static struct place places[MAX_THREADS];
    pthread_barrier_t start;
    uint64_t blocks = 0;

    pthread_barrier_init(&start, NULL, threads);
    for (unsigned i = 0; i < threads; i++) {
        places[i] = (struct place){
            .member = {.load = load,
                       .index = i,
                       .random = load->seed + ((uint64_t)i << 32),
                       .whatever = whatever},
            .work = work,
            .start = &start,
        };
        if (pthread_create(&places[i].thread, NULL, place_run, &places[i]))
            load_fail("cannot start thread %u", i);
    }
    for (unsigned i = 0; i < threads; i++) {
        pthread_join(places[i].thread, NULL);
        blocks += places[i].member.blocks;
    }
    pthread_barrier_destroy(&start);
    return blocks;
}
