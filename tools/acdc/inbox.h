/* SPDX-License-Identifier: MIT */
/*
 * How shared objects get to their receivers. The thesis has one pool for all threads, from which each
 * thread takes what it has not taken yet, and marks it with its bit; that limits the threads to 58 and
 * each looks at what others still wait for. Here each thread has an inbox, and a shared group is put into
 * the inbox of each of its receivers, its own thread among them: the same objects arrive at the same
 * threads. A thread that is done closes its inbox.
 */
#ifndef ACDC_INBOX_H
#define ACDC_INBOX_H

#include <pthread.h>
#include <stdbool.h>

struct holding;

struct inbox {
    _Alignas(64) pthread_mutex_t lock;
    struct holding *first; /* the last one put in; under the lock, except to look */
    bool closed;
};

void inbox_open(struct inbox *inbox);
void inbox_end(struct inbox *inbox);

/* False: it is closed. */
bool inbox_put(struct inbox *inbox, struct holding *holding);

/* Takes all that is there, the oldest first; with `close` for the last time. */
struct holding *inbox_take(struct inbox *inbox, bool close);

/* The same; but if nothing is there (NULL), nothing can be put in until inbox_release(). */
struct holding *inbox_take_or_hold(struct inbox *inbox);
void inbox_release(struct inbox *inbox);

#endif /* ACDC_INBOX_H */
