/* SPDX-License-Identifier: MIT */
/* Objects that a thread has taken to run their destructors (see destruct_hand.c). */
#ifndef TOOLKIT_CALLBACKS_DESTRUCT_HAND_H
#define TOOLKIT_CALLBACKS_DESTRUCT_HAND_H

#include "slab/reuse.h"

struct slab;

/* A destructor that this thread is in. */
struct destruct_run {
    const struct prudence_cache *cache;
    struct destruct_run *outer;
};
extern __thread struct destruct_run *destruct_runs;

/* The objects of a hand are pending, and count as such, though no bit in their slab says so. They
 * are destroyed from the first to the last: done <= begun <= count. */
struct destruct_hand {
    struct prudence_cache *cache;
    void **objects;
    unsigned count;
    uint32_t epochs; /* one bit for each object */
    unsigned begun;  /* destructors that have begun, or have returned; atomic */
    unsigned done;
    unsigned uncounted; /* of those done, the first ones that no longer count as pending */
    uint32_t deciding;  /* the thread begins a destructor, unless a fork copies; atomic */
    /* The lists have all hands, so that a forked child finds those of missing threads. */
    unsigned list;
    struct destruct_hand *next, **place;
    const void *thread; /* the address of the thread's destruct_runs */
};
_Static_assert(REUSE_MAX <= 32, "a bit for each object");

static inline unsigned destruct_hand_epoch(const struct destruct_hand *hand, unsigned index)
{
    return hand->epochs >> index & 1;
}

/* Begin and end a hand, whose first five members are set. The caller carries the objects, but not
 * while they are destroyed. */
void destruct_hand_begin(struct destruct_hand *hand);
void destruct_hand_destroy(struct destruct_hand *hand);
void destruct_hand_end(struct destruct_hand *hand);

/* Runs the destructor of an object that was freed. */
void destruct_hand_now(struct prudence_cache *cache, struct slab *slab, void *object);

/* Whether destructors may begin while the process is copied is decided without a fence of the
 * thread that begins one. Called before the first one. */
void destruct_hands_start(void);

/* Returns whether membarrier stands for fences of other threads, since the first cache. */
bool destruct_hands_use_membarrier(void);

/* Fork: no thread carries between the first two. In the child, the third visits all hands, and the
 * last takes one out that belongs to a thread which the child does not have. */
void destruct_hands_hold(void);
void destruct_hands_let_go(void);
void destruct_hands_visit(void (*visit)(struct destruct_hand *hand));
void destruct_hand_forget(struct destruct_hand *hand);

/* Returns whether the object is in a hand, and its destructor has not begun. The caller keeps
 * threads from carrying. */
bool destruct_hands_have(const void *object);

#endif /* TOOLKIT_CALLBACKS_DESTRUCT_HAND_H */
