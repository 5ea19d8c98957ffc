/* SPDX-License-Identifier: MIT */
/*
 * Queues of callbacks: pushes callbacks, detaches them, finds them safe, and hands them to the
 * thread that runs them.
 *
 * The steps of a callback:
 *   - pushed to the lane of a CPU, by one compare-and-swap;
 *   - detached, with all others in the lanes, by the queue's runner, which then fences and takes a
 *     cookie (gp_snapshot), in the order that batches require (drive.c);
 *   - put into a segment with that cookie;
 *   - once the grace period is over, put into `ready`;
 *   - run (callback_worker.c).
 *
 * There are few segments, with distinct cookies. When all are in use, the newest takes further
 * callbacks and gets a new cookie. The other segments become safe in that time, so renewed cookies
 * cannot keep callbacks waiting forever.
 *
 * Everything except the lanes is the runner's, between callback_queue_become_busy() and idle.
 */
#include "gp/user/domain.h"
#include "toolkit/callbacks/callback_queue.h"

#define LOOK_BYTES  16384 /* pushed to a lane between checks of the limit */
#define BUSY_SPINS  100   /* checks of a busy runner before the first sleep */
#define BUSY_NAP_NS 1000  /* between checks, then */

struct os_lock callbacks_lock = OS_LOCK_INIT(OS_RANK_CALLBACKS);
uint32_t callbacks_forking;
__thread unsigned callback_depth;

/* The process in which this thread last asked for a worker between fork's handlers. Not a flag,
 * because in a child's first handlers a flag of the parent would still be set. */
static __thread int asked_in_fork_of;

void callback_queue_note_fork(void)
{
    if (os_lock_forking)
        asked_in_fork_of = os_process_id();
}

bool callback_queue_asked_in_fork(void)
{
    return asked_in_fork_of && asked_in_fork_of == os_process_id();
}

void callback_queue_forget_fork(void)
{
    asked_in_fork_of = 0;
}

static void segment_init(struct callback_segment *segment)
{
    segment->first = NULL;
    segment->last = &segment->first;
}

/* Appends `from` to `to`, and leaves `from` empty. */
static void segment_join(struct callback_segment *to, struct callback_segment *from)
{
    if (!from->first)
        return;
    *to->last = from->first;
    to->last = from->last;
    segment_init(from);
}

void callback_queue_init(struct callback_queue *queue, struct prudence_domain *domain,
                         struct callback_worker *worker, unsigned lanes)
{
    queue->domain = domain;
    queue->worker = worker;
    queue->lanes = lanes;
    for (unsigned i = 0; i < CALLBACK_SEGMENTS; i++)
        segment_init(&queue->segments[i]);
    segment_init(&queue->ready);
    for (unsigned i = 0; i < lanes; i++) /* the end of the fork opens them */
        queue->lane[i].incoming = os_lock_forking ? CALLBACK_CLOSED : 0;
    os_lock_take(&callbacks_lock);
    list_append(&worker->queues, &queue->link);
    os_lock_release(&callbacks_lock);
}

static bool lane_is_empty(const struct callback_lane *lane)
{
    return (load_acquire(&lane->incoming) & ~CALLBACK_CLOSED) == 0;
}

static bool lanes_are_empty(const struct callback_queue *queue)
{
    for (unsigned i = 0; i < queue->lanes; i++)
        if (!lane_is_empty(&queue->lane[i]))
            return false;
    return true;
}

/* Checks in this order because a runner detaches lanes while `running` is set, and updates `taken`
 * before clearing it. */
bool callback_queue_is_pending(const struct callback_queue *queue)
{
    uint64_t invoked;

    if (!lanes_are_empty(queue) || load_acquire(&queue->running))
        return true;
    invoked = load_acquire(&queue->invoked);
    return load_relaxed(&queue->taken) != invoked;
}

/* Returns whether this thread is the queue's runner. No other thread writes this thread's mark. */
static bool runs_here(const struct callback_queue *queue)
{
    return load_relaxed(&queue->runner) == (uintptr_t)&callback_depth;
}

/* A runner that has detached lanes, but not updated `taken`, is busy. Sleeps after some spins,
 * because this thread may keep the runner off its CPU. The only lock that the runner takes while it
 * is busy is that of the heads with check=1 (callbacks_leave), so callers may hold others. */
bool callback_queue_waits(const struct callback_queue *queue)
{
    uint64_t invoked;

    if (!lanes_are_empty(queue) || runs_here(queue))
        return true;
    for (unsigned spins = 0; load_acquire(&queue->busy); spins++)
        if (spins < BUSY_SPINS)
            os_relax();
        else
            os_sleep_ns(BUSY_NAP_NS);
    invoked = load_acquire(&queue->invoked);
    return load_relaxed(&queue->taken) != invoked;
}

uint64_t callback_queue_bytes(const struct callback_queue *queue)
{
    uint64_t left = load_relaxed(&queue->bytes_left), pushed = 0;

    for (unsigned i = 0; i < queue->lanes; i++)
        pushed += load_relaxed(&queue->lane[i].bytes_pushed);
    return (int64_t)(pushed - left) > 0 ? pushed - left : 0;
}

/* ------------------------------------------------------------------------------------- pushing */

/* Waits while a fork has closed the lane, except in the forking thread. */
static uintptr_t lane_newest(const struct callback_lane *lane)
{
    uintptr_t newest = load_relaxed(&lane->incoming);

    while (unlikely(newest & CALLBACK_CLOSED) && !os_lock_forking) {
        os_sleep_ns(10000);
        newest = load_relaxed(&lane->incoming);
    }
    if (unlikely(newest & CALLBACK_CLOSED))
        callback_queue_note_fork();
    return newest;
}

static void lane_push(struct callback_lane *lane, struct prudence_head *head)
{
    uintptr_t newest;

    do {
        newest = lane_newest(lane);
        /* Atomic, so that a head queued twice, without check=1, makes no second fault. */
        store_relaxed(&head->next, (struct prudence_head *)(newest & ~CALLBACK_CLOSED));
    } while (
        !compare_exchange(&lane->incoming, &newest, (uintptr_t)head | (newest & CALLBACK_CLOSED)));
}

bool callback_queue_push_quietly(struct callback_queue *queue, struct prudence_head *head,
                                 size_t bytes)
{
    struct callback_lane *lane = &queue->lane[os_cpu_current() & (queue->lanes - 1)];
    uint64_t before = add_relaxed(&lane->bytes_pushed, bytes);

    tell_release(head);
    lane_push(lane, head);
    return (before ^ (before + bytes)) >= LOOK_BYTES;
}

/* ------------------------------------------------------------------- the runner's hold on lists */

bool callback_queue_become_runner(struct callback_queue *queue)
{
    uint32_t no = 0;

    if (load_relaxed(&queue->running) || !compare_exchange(&queue->running, &no, 1u))
        return false;
    store_relaxed(&queue->runner, (uintptr_t)&callback_depth);
    return true;
}

/* Clears `runner` first. A forked child copied between the next runner's two stores must not find
 * this thread in `runner`, because this thread may be the one that forks. */
void callback_queue_end_running(struct callback_queue *queue)
{
    store_relaxed(&queue->runner, (uintptr_t)0);
    store_release(&queue->running, 0u);
}

/* Marks the lists as changing, so that no fork happens until idle. */
void callback_queue_become_busy(struct callback_queue *queue)
{
    os_busy_enter(); /* a signal handler that forks must not wait for this thread */
    for (;;) {
        store_relaxed(&queue->busy, 1u);
        os_full_fence();
        if (likely(!load_acquire(&callbacks_forking)) || os_lock_forking)
            return;
        store_release(&queue->busy, 0u);
        while (load_relaxed(&callbacks_forking))
            os_sleep_ns(10000);
    }
}

void callback_queue_become_idle(struct callback_queue *queue)
{
    store_release(&queue->busy, 0u);
    os_busy_leave();
}

static struct callback_segment *newest_segment(struct callback_queue *queue)
{
    unsigned last = queue->first_segment + queue->segments_used - 1;

    return &queue->segments[last % CALLBACK_SEGMENTS];
}

/* Takes the newest callback, which leads to all older ones. A closed lane stays closed, because the
 * forking thread may do this in a fork handler of the program. */
static struct prudence_head *lane_take(struct callback_lane *lane)
{
    uintptr_t newest = __atomic_fetch_and(&lane->incoming, CALLBACK_CLOSED, __ATOMIC_ACQUIRE);

    return (struct prudence_head *)(newest & ~CALLBACK_CLOSED);
}

/* Appends a lane's callbacks to `to`, oldest first. Returns their number. */
static uint64_t lane_detach(struct callback_lane *lane, struct callback_segment *to)
{
    struct prudence_head *newest, *older = NULL;
    uint64_t count = 0;

    if (lane_is_empty(lane))
        return 0;
    newest = lane_take(lane);
    for (struct prudence_head *next, *head = newest; head; head = next, count++) {
        next = head->next;
        head->next = older;
        older = head;
    }
    *to->last = older;
    to->last = &newest->next;
    return count;
}

/* Detaches all lanes, fences, and takes the cookie; see the head of this file. */
void callback_queue_collect(struct callback_queue *queue)
{
    struct callback_segment fresh;
    uint64_t count = 0;
    gp_cookie cookie;

    segment_init(&fresh);
    store_relaxed(&queue->collecting, queue->collecting + 1);
    os_full_fence(); /* a barrier that saw the old count pushed before these reads the lanes */
    for (unsigned i = 0; i < queue->lanes; i++)
        count += lane_detach(&queue->lane[i], &fresh);
    if (count) {
        cookie = gp_snapshot(queue->domain);
        if (!queue->segments_used || (!gp_is_same(newest_segment(queue)->cookie, cookie) &&
                                      queue->segments_used < CALLBACK_SEGMENTS))
            queue->segments_used++;
        newest_segment(queue)->cookie = cookie;
        segment_join(newest_segment(queue), &fresh);
    }
    store_relaxed(&queue->taken, queue->taken + count);
    store_release(&queue->collected, queue->collecting);
}

/* Moves segments whose cookie is over to `ready`. */
void callback_queue_promote(struct callback_queue *queue)
{
    while (queue->segments_used) {
        struct callback_segment *oldest = &queue->segments[queue->first_segment];

        if (!gp_poll(queue->domain, oldest->cookie))
            return;
        segment_join(&queue->ready, oldest);
        queue->first_segment = (queue->first_segment + 1) % CALLBACK_SEGMENTS;
        queue->segments_used--;
    }
}

/* Takes the next callback that may run, and makes it `current`. */
struct prudence_head *callback_queue_next_ready(struct callback_queue *queue)
{
    struct prudence_head *head = queue->ready.first;

    store_relaxed(&queue->current, head);
    if (!head)
        return NULL;
    queue->ready.first = head->next;
    if (!head->next)
        segment_init(&queue->ready);
    return head;
}

void callback_queue_tell_watchers(struct callback_queue *queue)
{
    os_full_fence();
    if (likely(!load_relaxed(&queue->watchers)))
        return;
    add_relaxed(&queue->progress, 1);
    os_word_wake(&queue->progress);
}

/* Moves all segments to `ready`, safe or not. */
void callback_queue_gather(struct callback_queue *queue)
{
    callback_queue_collect(queue);
    for (; queue->segments_used; queue->segments_used--) {
        segment_join(&queue->ready, &queue->segments[queue->first_segment]);
        queue->first_segment = (queue->first_segment + 1) % CALLBACK_SEGMENTS;
    }
}
