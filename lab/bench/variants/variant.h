/* SPDX-License-Identifier: MIT */
/*
 * RCU variants: ways to find out when a grace period is over, behind one small interface.
 *
 * The historical ones come from kernels whose readers cannot be preempted. A CPU of theirs is here
 * a *place*: a thread that reads, and between its sections passes through variant_switch(), which
 * is their context switch. A place that blocks is idle (variant_idle, variant_busy) and holds up
 * no other place. A place is never preempted inside a section by another section, and most variants
 * rely on that; its thread may be, which only makes the section long. Where a variant has
 * `preempt`, a place may have further readers that are preempted inside sections.
 *
 * The top of each variant's file, and docs/explanation/rcu-variants.md, say how it differs from the
 * original.
 */
#ifndef VARIANTS_VARIANT_H
#define VARIANTS_VARIANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLACES_MAX 64

struct variant_head {
    struct variant_head *next;
    void (*func)(struct variant_head *head);
};

/* A reader that was preempted inside a section: data that a variant needs until it continues. */
struct variant_task {
    uint64_t *counter;
};

struct variant {
    const char *name;
    const char *origin;  /* its kind and source */
    bool historical;     /* of the thesis */
    bool called_at_once; /* call waits for the grace period itself, so there are no callbacks */
    unsigned places_max; /* 0: no limit */

    void (*start)(unsigned places); /* called once, before any place; all places begin idle */
    void (*stop)(void);             /* called after the last place; nothing is outstanding */
    void (*idle)(unsigned place);   /* the place blocks, outside of sections */
    void (*busy)(unsigned place);
    /* the thread of an idle place ends; NULL if that needs no work */
    void (*leave)(void);
    void (*read_lock)(unsigned place);      /* NULL if that needs no work */
    void (*read_unlock)(unsigned place);    /* likewise */
    void (*context_switch)(unsigned place); /* NULL if that needs no work; outside of sections */
    /* The running reader loses the place, maybe inside a section, and another task begins there.
     * NULL: a place has one reader at a time. */
    void (*preempt)(unsigned place, struct variant_task *task);
    /* The reader continues, maybe at another place, whose task has ended, outside of sections. */
    void (*resume)(unsigned place, struct variant_task *task);
    void (*call)(unsigned place, struct variant_head *head,
                 void (*func)(struct variant_head *head));
    void (*synchronize)(unsigned place); /* NULL: uses call */
    uint64_t (*start_poll)(void);        /* NULL: cannot be polled */
    bool (*poll)(uint64_t cookie);
};

extern const struct variant variant_none, variant_induced, variant_batch, variant_taskq,
    variant_ring, variant_polling, variant_polling_percpu, variant_barrier, variant_xrcu,
    variant_krcud, variant_preempt, variant_k42, variant_single, variant_memb, variant_qsbr,
    variant_urcu_memb, variant_urcu_qsbr, variant_urcu_mb;
extern const struct variant *const variants[]; /* ended by NULL */

/* ---------------------------------------------------------- what a program of RCU variants does */

void variant_start(const struct variant *variant, unsigned places);
void variant_stop(void);
extern const struct variant *variant_in_use;

static inline void variant_full_fence(void)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static inline void variant_read_lock(unsigned place)
{
    if (variant_in_use->read_lock)
        variant_in_use->read_lock(place);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline void variant_read_unlock(unsigned place)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (variant_in_use->read_unlock)
        variant_in_use->read_unlock(place);
}

/* A context switch: a quiescent state, and the work that is due there, callbacks too. */
static inline void variant_switch(unsigned place)
{
    if (variant_in_use->context_switch)
        variant_in_use->context_switch(place);
}

void variant_idle(unsigned place);
void variant_busy(unsigned place);
void variant_leave(unsigned place); /* idle, and the thread ends */
void variant_call(unsigned place, struct variant_head *head,
                  void (*func)(struct variant_head *head));
void variant_synchronize(unsigned place); /* by a busy place, outside of sections */

/* --------------------------------------------------------------- what the historical ones share */

#define VARIANT_LINE 128

/* State of a place; the variants have further arrays of their own. */
struct variant_place {
    uint32_t is_idle; /* written by its thread, read by the others */
} __attribute__((aligned(VARIANT_LINE)));

extern struct variant_place variant_places[PLACES_MAX];
extern unsigned variant_place_count;

/*
 * Returns whether the place has been idle at a moment after the caller's last full fence: then it
 * is in no section, or in one that began since. (Both sides: write, full fence, read.)
 */
static inline bool variant_is_idle(unsigned place)
{
    return __atomic_load_n(&variant_places[place].is_idle, __ATOMIC_ACQUIRE);
}

/* The tick: a thread increments it every VARIANT_TICK_NS, as a timer interrupt would. */
#define VARIANT_TICK_NS 1000000 /* HZ=1000 */
extern uint64_t variant_ticks;
void variant_ticks_start(void);
void variant_ticks_stop(void);

struct variant_queue {
    struct variant_head *first, **last;
};

static inline void queue_make_empty(struct variant_queue *queue)
{
    queue->first = NULL;
    queue->last = &queue->first;
}

static inline void queue_append(struct variant_queue *queue, struct variant_head *head)
{
    head->next = NULL;
    *queue->last = head;
    queue->last = &head->next;
}

/* Appends all of `from` to `to`. */
static inline void queue_move(struct variant_queue *to, struct variant_queue *from)
{
    if (!from->first)
        return;
    *to->last = from->first;
    to->last = from->last;
    queue_make_empty(from);
}

/* Calls every callback of the queue, and returns how many; they may queue again, elsewhere. */
uint64_t queue_invoke(struct variant_queue *queue);

void variant_pause(void);
/* Switches; now and then a busy place also blocks, and is idle for that time. */
void variant_rest(unsigned place);
void variant_sleep_ns(uint64_t nanoseconds);

#endif /* VARIANTS_VARIANT_H */
