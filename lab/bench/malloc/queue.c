/* SPDX-License-Identifier: MIT */
#include "queue.h"

void queue_init(struct queue *queue, unsigned writers)
{
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->changed, NULL);
    queue->first = 0;
    queue->count = 0;
    queue->writers = writers;
}

void queue_put(struct queue *queue, struct batch *batch)
{
    pthread_mutex_lock(&queue->lock);
    while (queue->count == QUEUE_LENGTH)
        pthread_cond_wait(&queue->changed, &queue->lock);
    queue->batch[(queue->first + queue->count++) % QUEUE_LENGTH] = *batch;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
    batch->count = 0;
}

bool queue_get(struct queue *queue, struct batch *batch)
{
    bool any;

    pthread_mutex_lock(&queue->lock);
    while (!queue->count && queue->writers)
        pthread_cond_wait(&queue->changed, &queue->lock);
    any = queue->count;
    if (any) {
        *batch = queue->batch[queue->first];
        queue->first = (queue->first + 1) % QUEUE_LENGTH;
        queue->count--;
        pthread_cond_broadcast(&queue->changed);
    }
    pthread_mutex_unlock(&queue->lock);
    return any;
}

void queue_leave(struct queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->writers--;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
}
