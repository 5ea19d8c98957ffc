/* SPDX-License-Identifier: MIT */
/*
 * RCU variants: ways to find out when a grace period is over, behind one small interface.
 *
 * The historical ones come from kernels whose readers cannot be preempted. A CPU of theirs is here a
 * *place*: a thread that reads, and between its sections passes through lab_switch(), which is their
 * context switch. A place that blocks is idle (lab_idle, lab_busy) and holds up nobody. A place is
 * never preempted inside a section by another section, which is what their argument needs; the
 * thread under it may be, which only makes the section long.
 *
 * Where each differs from its original stands at the top of its file, and in docs/explanation/rcu-variants.md.
 */
#ifndef FLAVOURS_FLAVOUR_H
#define FLAVOURS_FLAVOUR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLACES_MAX 64

struct lab_head {
    struct lab_head *next;
    void (*func)(struct lab_head *head);
};

struct flavour {
    const char *name;
    const char *origin;  /* what it is, where it comes from */
    bool historical;     /* of the thesis */
    bool called_at_once; /* call waits for the grace period itself: it has no callbacks */

    void (*start)(unsigned places); /* once, before any place; all places begin idle */
    void (*stop)(void);             /* after the last one; nothing is outstanding */
    void (*idle)(unsigned place);   /* the place blocks; not in a section */
    void (*busy)(unsigned place);
    void (*leave)(void);                 /* the thread of an idle place ends; NULL: nothing to do */
    void (*read_lock)(unsigned place);   /* NULL: nothing to do */
    void (*read_unlock)(unsigned place); /* likewise */
    void (*context_switch)(unsigned place); /* NULL: nothing to do; not in a section */
    void (*call)(unsigned place, struct lab_head *head, void (*func)(struct lab_head *head));
    void (*synchronize)(unsigned place); /* NULL: by call */
    uint64_t (*start_poll)(void);        /* NULL: cannot be polled */
    bool (*poll)(uint64_t cookie);
};

extern const struct flavour flavour_none, flavour_induced, flavour_taskq, flavour_ring,
    flavour_polling, flavour_barrier, flavour_memb, flavour_qsbr, flavour_urcu_memb,
    flavour_urcu_qsbr, flavour_urcu_mb;
extern const struct flavour *const flavours[]; /* ended by NULL */

/* ------------------------------------------------------------ what a program of RCU variants does */

void lab_start(const struct flavour *flavour, unsigned places);
void lab_stop(void);
extern const struct flavour *lab_flavour;

static inline void lab_full_fence(void)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static inline void lab_read_lock(unsigned place)
{
    if (lab_flavour->read_lock)
        lab_flavour->read_lock(place);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline void lab_read_unlock(unsigned place)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (lab_flavour->read_unlock)
        lab_flavour->read_unlock(place);
}

/* A context switch: a quiescent state, and the work that is due there, callbacks too. */
static inline void lab_switch(unsigned place)
{
    if (lab_flavour->context_switch)
        lab_flavour->context_switch(place);
}

void lab_idle(unsigned place);
void lab_busy(unsigned place);
void lab_leave(unsigned place); /* idle, and the thread ends */
void lab_call(unsigned place, struct lab_head *head, void (*func)(struct lab_head *head));
void lab_synchronize(unsigned place); /* by a busy place, outside of sections */

/* ------------------------------------------------------------------- what the historical ones share */

#define LAB_LINE 128

/* Per place; the flavours have arrays of their own beside it. */
struct lab_place {
    uint32_t is_idle; /* written by its thread, read by the others */
} __attribute__((aligned(LAB_LINE)));

extern struct lab_place lab_places[PLACES_MAX];
extern unsigned lab_place_count;

/*
 * Whether the place has been idle at a moment after the caller's last full fence: then it is in no
 * section, or in one that began since. (Both sides: write, full fence, read.)
 */
static inline bool lab_is_idle(unsigned place)
{
    return __atomic_load_n(&lab_places[place].is_idle, __ATOMIC_ACQUIRE);
}

/* The tick: counted up every LAB_TICK_NS by a thread, as a timer interrupt would. */
#define LAB_TICK_NS 1000000 /* HZ=1000 */
extern uint64_t lab_ticks;
void lab_ticks_start(void);
void lab_ticks_stop(void);

struct lab_queue {
    struct lab_head *first, **last;
};

static inline void queue_make_empty(struct lab_queue *queue)
{
    queue->first = NULL;
    queue->last = &queue->first;
}

static inline void queue_append(struct lab_queue *queue, struct lab_head *head)
{
    head->next = NULL;
    *queue->last = head;
    queue->last = &head->next;
}

/* Everything of `from` behind what is in `to`. */
static inline void queue_move(struct lab_queue *to, struct lab_queue *from)
{
    if (!from->first)
        return;
    *to->last = from->first;
    to->last = from->last;
    queue_make_empty(from);
}

/* Calls every callback of the queue; they may queue again, elsewhere. */
void queue_invoke(struct lab_queue *queue);

void lab_pause(void);
void lab_rest(unsigned place); /* a switch; and a busy place blocks now and then, idle meanwhile */
void lab_sleep_ns(uint64_t nanoseconds);

#endif /* FLAVOURS_FLAVOUR_H */
