/* SPDX-License-Identifier: MIT */
/*
 * A bounded queue of batches of blocks, for any number of writers and readers. A batch is copied,
 * so the queue needs no heap. Its mutex protects all members.
 */
#ifndef BENCH_MALLOC_QUEUE_H
#define BENCH_MALLOC_QUEUE_H

#include <pthread.h>
#include <stdbool.h>

#include "load.h"

#define BATCH        128 /* blocks */
#define QUEUE_LENGTH 64  /* batches */

struct batch {
    unsigned count;
    struct block block[BATCH];
};

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned first, count; /* `count` batches are queued, the oldest at `first` */
    unsigned writers;      /* writers that have not ended */
    struct batch batch[QUEUE_LENGTH];
};

void queue_init(struct queue *queue, unsigned writers);

/* Waits for room, copies `batch` and empties it. */
void queue_put(struct queue *queue, struct batch *batch);

/* Waits for a batch and copies it. Returns false if there is none and all writers have ended. */
bool queue_get(struct queue *queue, struct batch *batch);

/* Reports that a writer has ended. */
void queue_leave(struct queue *queue);

#endif /* BENCH_MALLOC_QUEUE_H */
