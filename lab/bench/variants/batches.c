/* SPDX-License-Identifier: MIT */
/* Numbered batches and a barrier (batches.h). */
#include "batches.h"

#include <pthread.h>

static struct {
    struct variant_queue next, current;
    uint64_t batch;       /* of `current` */
    uint64_t noted_batch; /* number of the batch in which `noted` was taken; 0: never */
    uint64_t noted;
} __attribute__((aligned(VARIANT_LINE))) of[PLACES_MAX];

static struct {
    pthread_mutex_t lock;
    uint64_t current; /* the running batch, or the next; written under lock */
    uint64_t wanted;  /* the last batch that a place waits for; under lock */
    uint64_t mask;    /* written under lock */
} batches = {.lock = PTHREAD_MUTEX_INITIALIZER};

void batches_start(unsigned places)
{
    batches.current = 1;
    batches.wanted = 0;
    batches.mask = 0;
    for (unsigned i = 0; i < places; i++) {
        queue_make_empty(&of[i].next);
        queue_make_empty(&of[i].current);
        of[i].noted_batch = 0;
    }
}

struct variant_queue *batches_new(unsigned place)
{
    return &of[place].next;
}

void batches_call(unsigned place, struct variant_head *head, void (*func)(struct variant_head *))
{
    head->func = func;
    queue_append(batches_new(place), head);
}

bool batches_have_callbacks_of(unsigned place)
{
    return of[place].next.first || of[place].current.first;
}

void batches_idle(unsigned place, void (*context_switch)(unsigned place))
{
    while (batches_have_callbacks_of(place)) {
        context_switch(place);
        variant_pause();
    }
}

/* Begins the current batch, if it is wanted and none is running. Called under the lock. */
static void begin(void)
{
    uint64_t mask = 0;

    if (batches.mask || batches.wanted < batches.current)
        return;
    for (unsigned i = 0; i < variant_place_count; i++)
        mask |= UINT64_C(1) << i;
    __atomic_store_n(&batches.mask, mask, __ATOMIC_RELEASE);
}

static void ask_for_batch(unsigned place)
{
    pthread_mutex_lock(&batches.lock);
    /* A running batch may have begun before these were queued. */
    of[place].batch = batches.current + (batches.mask != 0);
    if (batches.wanted < of[place].batch)
        batches.wanted = of[place].batch;
    begin();
    pthread_mutex_unlock(&batches.lock);
}

void batches_advance(unsigned place, struct variant_queue *done)
{
    if (of[place].current.first &&
        of[place].batch < __atomic_load_n(&batches.current, __ATOMIC_ACQUIRE))
        queue_move(done, &of[place].current);
    if (!of[place].current.first && of[place].next.first) {
        queue_move(&of[place].current, &of[place].next);
        ask_for_batch(place);
    }
}

/* Reads the number before the mask: a non-empty mask then belongs to that batch or a later one,
 * so a note is taken after the batch of that number began. */
uint64_t batches_under_way(uint64_t *places)
{
    uint64_t batch = __atomic_load_n(&batches.current, __ATOMIC_ACQUIRE);

    *places = __atomic_load_n(&batches.mask, __ATOMIC_ACQUIRE);
    return *places ? batch : 0;
}

uint64_t batches_wait_for(unsigned place)
{
    uint64_t places, batch = batches_under_way(&places);

    return places >> place & 1 ? batch : 0;
}

bool batches_saw_switch(unsigned place, uint64_t batch, uint64_t switches)
{
    if (of[place].noted_batch != batch) {
        of[place].noted_batch = batch;
        of[place].noted = switches;
        return false;
    }
    return switches != of[place].noted;
}

/* Called under the lock. */
static void clear(uint64_t places)
{
    uint64_t mask = batches.mask & ~places;

    if (mask == batches.mask)
        return;
    __atomic_store_n(&batches.mask, mask, __ATOMIC_RELEASE);
    if (mask)
        return;
    __atomic_store_n(&batches.current, batches.current + 1, __ATOMIC_RELEASE);
    begin();
}

void batches_pass(uint64_t places, uint64_t batch)
{
    pthread_mutex_lock(&batches.lock);
    if (batch == batches.current) /* otherwise it ended without this thread */
        clear(places);
    pthread_mutex_unlock(&batches.lock);
}

static uint64_t idle_among(uint64_t places)
{
    uint64_t idle = 0;

    variant_full_fence();
    for (unsigned i = 0; i < variant_place_count; i++) {
        if (places >> i & 1 && variant_is_idle(i))
            idle |= UINT64_C(1) << i;
    }
    return idle;
}

void batches_look(unsigned place, uint64_t switches)
{
    uint64_t waiting, self = UINT64_C(1) << place, batch = batches_under_way(&waiting);

    if (!batch || (waiting & self && !batches_saw_switch(place, batch, switches)))
        return;
    batches_pass(self | idle_among(waiting), batch);
}
