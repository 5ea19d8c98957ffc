/* SPDX-License-Identifier: MIT */
/*
 * Passes shared objects to their receivers. The thesis has one pool for all threads, from which
 * each thread takes new objects, and marks them with a bit; that limits the threads to 58, and
 * each reads objects that others still wait for. Here each thread has an inbox, and a shared
 * group is put into the inbox of each of its receivers, its own thread among them: the same objects
 * arrive at the same threads. A thread closes its inbox when it is done.
 */
#ifndef ACDC_INBOX_H
#define ACDC_INBOX_H

#include <pthread.h>
#include <stdbool.h>

struct holding;

struct inbox {
    _Alignas(64) pthread_mutex_t lock;
    struct holding *first; /* the last one put; accessed under the lock, except to peek */
    bool closed;
};

void inbox_open(struct inbox *inbox);
void inbox_end(struct inbox *inbox);

/* Returns false if the inbox is closed. */
bool inbox_put(struct inbox *inbox, struct holding *holding);

/* Takes all holdings, the oldest first; with `close` for the last time. */
struct holding *inbox_take(struct inbox *inbox, bool close);

/* Does the same; but if the inbox is empty (NULL), no thread can put until inbox_release(). */
struct holding *inbox_take_or_hold(struct inbox *inbox);
void inbox_release(struct inbox *inbox);

#endif /* ACDC_INBOX_H */
