/* SPDX-License-Identifier: MIT */
/*
 * Waits for callbacks: until all that were queued have returned; until there is room; or a little,
 * so that threads that queue keep pace with the thread that runs callbacks.
 *
 * Barriers. A check of all lanes that begins after the barrier began has detached everything queued
 * before. When as many callbacks have returned as had been detached at the end of that check, those
 * are among them. The barrier is also over if the queue had no pending callbacks at any moment
 * since; this matters because the queue may have been moved, and then no thread reads the lanes
 * any more. A barrier needs no memory and keeps no state in the queue, so a fork may happen.
 */
#include "gp/user/drive.h"
#include "gp/user/reader_state.h"
#include "toolkit/callbacks/callback_queue.h"
#include "toolkit/callbacks/callback_wait.h"
#include "toolkit/callbacks/callback_worker.h"

#define NAP_NS      20000   /* between checks */
#define LONG_NAP_NS 200000  /* the same while a reader lacks a CPU, which takes longer */
#define PACE_BYTES  262144  /* bytes that wait, above which threads keep pace with the runner */
#define PACE_MAX_NS 4000000 /* longer than another thread keeps the worker off a CPU */
#define NO_PACE_NS  1000000 /* pause after keeping pace without success; doubles each time */
#define NO_PACE_MAX 20000000

/* Does the worker's job if no thread can be started; returns false if a worker exists. Also returns
 * false while a worker is ending, because the queue is about to be moved. */
static bool serve_here(struct callback_queue *queue, unsigned round)
{
    const struct callback_worker *worker = queue->worker;

    if (load_acquire(&worker->started) || load_acquire(&worker->stopping))
        return false;
    if (callback_worker_serve(queue) == CALLBACK_TURN_WAITS)
        callback_worker_wait_for_readers(round);
    return true;
}

/* The longest sleep before a deadline (0: none); 0: the deadline has passed. */
static uint64_t sleep_until(uint64_t deadline)
{
    uint64_t now = deadline ? os_clock_ns() : 0;

    if (!deadline)
        return CALLBACK_POLL_MAX_NS;
    return now < deadline ? min_size(deadline - now, CALLBACK_POLL_MAX_NS) : 0;
}

/* Drives for a thread that waits for callbacks, as gp_wait() does for one that waits for a grace
 * period: without a deadline the thread may block, but only if the oldest callbacks wait for
 * readers. `waits_for` may be out of date; then a later call finds the right cookie. */
static void drive_for_watcher(const struct callback_queue *queue, bool may_block)
{
    struct prudence_domain *domain = queue->domain;
    gp_cookie cookie = {load_relaxed(&queue->waits_for.value)};

    gp_drive_urge(domain);
    if (may_block && domain->scheme->block && cookie.value && !gp_poll(domain, cookie))
        domain->scheme->block(domain);
}

static bool watch(struct callback_queue *queue, uint64_t deadline,
                  bool (*is_over)(const struct callback_queue *queue, uint64_t goal), uint64_t goal)
{
    for (unsigned round = 0; !is_over(queue, goal) && callback_queue_is_pending(queue); round++) {
        uint32_t progress = load_acquire(&queue->progress);
        uint64_t sleep = sleep_until(deadline);

        callback_hurry(queue->worker);
        drive_for_watcher(queue, !deadline);
        if (!sleep)
            return false;
        if (serve_here(queue, round))
            continue;
        add_relaxed(&queue->watchers, 1);
        os_full_fence();
        if (!is_over(queue, goal))
            os_word_wait(&queue->progress, progress, sleep);
        sub_relaxed(&queue->watchers, 1);
    }
    return true;
}

static bool has_collected(const struct callback_queue *queue, uint64_t goal)
{
    return (int32_t)(load_acquire(&queue->collected) - (uint32_t)goal) >= 0;
}

static bool has_invoked(const struct callback_queue *queue, uint64_t goal)
{
    return load_acquire(&queue->invoked) >= goal;
}

bool callback_barrier_until(struct callback_queue *queue, uint64_t deadline)
{
    bool over = true;

    os_copy_check();
    if (callback_queue_is_pending(queue)) {
        os_full_fence();
        over = watch(queue, deadline, has_collected, load_relaxed(&queue->collecting) + 1) &&
               watch(queue, deadline, has_invoked, load_relaxed(&queue->taken));
    }
    if (over)
        tell_acquire(queue);
    return over;
}

void callback_barrier(struct callback_queue *queue)
{
    callback_barrier_until(queue, 0);
}

bool callback_wait_is_worthwhile(struct callback_queue *queue)
{
    if (load_acquire(&queue->expired)) {
        if (load_relaxed(&queue->invoked) == load_relaxed(&queue->expired_invoked))
            return false;
        store_relaxed(&queue->expired, 0u);
    }
    return gp_worth_waiting(queue->domain);
}

bool callback_wait_for_room(struct callback_queue *queue, uint64_t bytes, uint64_t deadline)
{
    while (callback_queue_bytes(queue) > bytes) {
        if (os_clock_ns() >= deadline) {
            gp_note_expired(queue->domain);
            store_relaxed(&queue->expired_invoked, load_relaxed(&queue->invoked));
            store_release(&queue->expired, 1u);
            return false;
        }
        callback_hurry(queue->worker);
        gp_drive(queue->domain);
        os_sleep_ns(NAP_NS);
    }
    return true;
}

/* Why threads that queue should be held back, when too much waits. */
enum behind {
    BEHIND_NOTHING, /* Below the limit, or readers inside have a CPU or wait for something else. */
    BEHIND_RUNNER,  /* callbacks may run, and have not */
    BEHIND_READER,  /* a blocking reader only lacks a CPU, so the caller can lend one */
};

/* Drives the grace period as well, in case the runner has no CPU. */
static enum behind is_behind(struct callback_queue *queue)
{
    gp_cookie cookie = {load_relaxed(&queue->waits_for.value)};

    if (callback_queue_bytes(queue) <= PACE_BYTES)
        return BEHIND_NOTHING;
    if (!cookie.value || gp_poll(queue->domain, cookie))
        return BEHIND_RUNNER;
    gp_drive(queue->domain);
    if (gp_poll(queue->domain, cookie))
        return BEHIND_RUNNER;
    return gp_reader_lacks_cpu(queue->domain) ? BEHIND_READER : BEHIND_NOTHING;
}

/* Doubles the pause before threads keep pace again, because no callback returned: the running one
 * may need a lock of this thread, or wait for this thread's section, or the runner has just lost
 * its CPU for long. */
static void pace_was_in_vain(struct callback_queue *queue, uint64_t now)
{
    uint64_t pause = load_relaxed(&queue->no_pace_ns);

    pause = pause ? min_size(2 * pause, NO_PACE_MAX) : NO_PACE_NS;
    store_relaxed(&queue->no_pace_ns, pause);
    store_relaxed(&queue->no_pace_until, now + pause);
}

bool callback_wait_keep_pace(struct callback_queue *queue)
{
    uint64_t before = load_relaxed(&queue->invoked), now, deadline;
    enum behind behind = is_behind(queue);

    if (behind == BEHIND_NOTHING)
        return false;
    now = os_clock_ns();
    if (behind == BEHIND_RUNNER && now < load_relaxed(&queue->no_pace_until))
        return false;
    for (deadline = now + PACE_MAX_NS; behind && now < deadline; now = os_clock_ns()) {
        callback_hurry(queue->worker);
        os_sleep_ns(behind == BEHIND_READER ? LONG_NAP_NS : NAP_NS);
        behind = is_behind(queue);
    }
    if (behind == BEHIND_RUNNER && load_relaxed(&queue->invoked) == before)
        pace_was_in_vain(queue, now);
    else
        store_relaxed(&queue->no_pace_ns, (uint64_t)0);
    return true;
}
