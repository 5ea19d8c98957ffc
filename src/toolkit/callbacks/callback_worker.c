/* SPDX-License-Identifier: MIT */
/*
 * The threads that run callbacks.
 *
 * One thread at a time runs a queue's callbacks, so callbacks of one lane keep their order, and the
 * number that have returned shows which have. That thread is a worker. The first push starts the
 * worker, which drives the grace periods that its queues wait for, takes turns of TURN_MAX
 * callbacks among them, and sleeps without timeouts when all are empty. After callbacks have run,
 * the worker rests for a moment, so that callbacks queued in that time share a grace period and a
 * turn. No other thread runs a callback, because the callback's author does not know which locks a
 * thread holds that allocates, polls or queues. Only if no thread can be started does a barrier run
 * them (callback_wait.c).
 *
 * The process has a worker for the queues of all domains; single queues may have a separate one.
 */
#include <pthread.h>

#include "gp/user/domain.h"
#include "gp/user/drive.h"
#include "toolkit/callbacks/callback_queue.h"
#include "toolkit/callbacks/callback_worker.h"

#define TURN_MAX    256    /* callbacks of one queue, before others have their turn */
#define REST_NS     250000 /* a rest, unless another thread ends it */
#define SPIN_ROUNDS 8
#define POLL_NS     20000    /* between checks of a grace period */
#define RETRY_NS    10000000 /* after the system refused a thread */

READ_MOSTLY size_t (*callbacks_weigh)(const struct prudence_head *head) = NULL;
void (*callbacks_leave)(const struct prudence_head *head);
enum callback_turn (*callbacks_other_work)(void);

struct callback_worker callback_main_worker;
struct list callback_workers = {&callback_workers, &callback_workers};
__thread struct callback_worker *callback_worker_here;

/* ---------------------------------------------------------------------------------- its thread */

static void work(void *argument);

/* Starts the thread, or ends its sleep. Starts no thread while the caller owns something of the
 * library, as callback_worker_move_queue() and a fork do, because starting one allocates. Such a
 * caller checks again afterwards. */
void callback_worker_wake(struct callback_worker *worker)
{
    uint32_t no = 0;

    if (!compare_exchange(&worker->awake, &no, 1u) && load_relaxed(&worker->started))
        return;
    no = 0;
    if (load_relaxed(&worker->started)) {
        os_word_wake(&worker->awake);
        return;
    }
    if (os_busy || load_acquire(&worker->stopping) ||
        os_clock_ns() < load_relaxed(&worker->retry_at))
        return;
    os_copy_check(); /* repairs a forked copy before the library has a thread there */
    if (os_copy_is_unnoticed() || !compare_exchange(&worker->started, &no, 1u))
        return;
    store_relaxed(&worker->awake, 1u);
    if (!os_thread_start("prudence-call", worker->cpu, 0, work, worker)) {
        store_relaxed(&worker->retry_at, os_clock_ns() + RETRY_NS);
        store_release(&worker->started, 0u);
    }
}

void callback_worker_end_rest(struct callback_worker *worker)
{
    uint32_t rests = CALLBACK_RESTS;

    if (compare_exchange(&worker->awake, &rests, (uint32_t)CALLBACK_AWAKE))
        os_word_wake(&worker->awake);
}

void callback_worker_look_at(struct callback_queue *queue)
{
    callback_queue_note_fork();
    os_full_fence();
    callback_hurry(queue->worker);
}

void callback_worker_nudge(void)
{
    os_full_fence();
    if (load_acquire(&callback_main_worker.started))
        callback_hurry(&callback_main_worker);
}

void callback_worker_init(struct callback_worker *worker, int cpu, bool polls)
{
    worker->cpu = cpu;
    worker->polls = polls;
    list_init(&worker->queues);
    os_lock_take(&callbacks_lock);
    list_append(&callback_workers, &worker->link);
    os_lock_release(&callbacks_lock);
}

/* ------------------------------------------------------------------------------------- running */

/* Called before the callback, which may free the head, and while the runner is busy: a child in
 * which the callback counts as done has counted its bytes, too. */
static void account_for(struct callback_queue *queue, const struct prudence_head *head)
{
    size_t bytes = callbacks_weigh ? callbacks_weigh(head) : 0;

    if (callbacks_leave)
        callbacks_leave(head);
    store_relaxed(&queue->bytes_left, queue->bytes_left + bytes);
}

static void run_one(const struct callback_queue *queue, struct prudence_head *head)
{
    tell_acquire(head);
    gp_drive_tell_over(queue->domain);
    callback_depth++;
    os_foreign_call("a callback");
    head->func(head);
    callback_depth--;
    tell_release(queue);
}

bool callback_here(void)
{
    return callback_depth > 0;
}

void callback_worker_note_vain(struct callback_queue *queue)
{
    queue->in_vain++; /* this thread is the runner */
}

/* Calls a function of `around`, outside of a callback: a child forked there has all callbacks. */
static void call_around(void (*function)(void *argument), void *argument, const char *what)
{
    if (!function)
        return;
    callback_depth++;
    os_foreign_call(what);
    function(argument);
    callback_depth--;
}

static unsigned run_some(struct callback_queue *queue, unsigned most)
{
    struct prudence_head *head;
    unsigned count = 0;

    queue->in_vain = 0;
    callback_queue_become_busy(queue);
    while (count < most && (head = callback_queue_next_ready(queue))) {
        account_for(queue, head);
        callback_queue_become_idle(queue);
        run_one(queue, head);
        count++;
        callback_queue_become_busy(queue);
        store_relaxed(&queue->current, NULL);
        store_release(&queue->invoked, queue->invoked + 1);
    }
    callback_queue_become_idle(queue);
    return count;
}

static unsigned run_ready(struct callback_queue *queue)
{
    const struct callback_around *around = &queue->around;
    unsigned count;

    if (!queue->ready.first)
        return 0;
    call_around(around->begin, around->argument, "begin of prudence_domain_call_around");
    count = run_some(queue, around->most ? around->most : TURN_MAX);
    call_around(around->end, around->argument, "end of prudence_domain_call_around");
    return count;
}

/* Notifies threads that keep pace which cookie the oldest callbacks wait for, or 0. */
static void say_what_it_waits_for(struct callback_queue *queue)
{
    bool readers = !queue->ready.first && queue->segments_used;

    store_relaxed(&queue->waits_for.value,
                  readers ? queue->segments[queue->first_segment].cookie.value : 0);
}

enum callback_turn callback_worker_serve(struct callback_queue *queue)
{
    unsigned count, in_vain;
    bool waits;
    gp_cookie cookie = {0};

    if (!callback_queue_become_runner(queue))
        return CALLBACK_TURN_WAITS;
    callback_queue_become_busy(queue);
    callback_queue_collect(queue);
    callback_queue_promote(queue);
    waits = queue->segments_used > 0;
    if (waits)
        cookie = queue->segments[queue->first_segment].cookie;
    callback_queue_become_idle(queue);
    if (waits) {
        gp_request(queue->domain, cookie);
        gp_drive(queue->domain);
        callback_queue_become_busy(queue);
        callback_queue_promote(queue);
        callback_queue_become_idle(queue);
    }
    say_what_it_waits_for(queue);
    count = run_ready(queue);
    in_vain = queue->in_vain;
    waits = queue->taken != queue->invoked;
    callback_queue_end_running(queue);
    callback_queue_tell_watchers(queue);
    if (count > in_vain)
        return CALLBACK_TURN_RAN;
    return waits ? CALLBACK_TURN_WAITS : count ? CALLBACK_TURN_LATER : CALLBACK_TURN_EMPTY;
}

/* Returns the queue after the one served last, held against release; NULL at the end of a round. */
static struct callback_queue *next_queue(struct callback_worker *worker)
{
    struct callback_queue *queue;
    struct list *next;

    os_lock_take(&callbacks_lock);
    next = worker->serving ? worker->serving->link.next : worker->queues.next;
    queue = next == &worker->queues ? NULL : list_entry(next, struct callback_queue, link);
    store_relaxed(&worker->serving, queue);
    os_lock_release(&callbacks_lock);
    return queue;
}

enum callback_turn callback_worker_serve_all(struct callback_worker *worker)
{
    struct callback_queue *queue;
    enum callback_turn most = CALLBACK_TURN_EMPTY, turn;

    while ((queue = next_queue(worker))) {
        turn = callback_worker_serve(queue);
        most = turn > most ? turn : most;
    }
    if (worker == &callback_main_worker && callbacks_other_work) {
        turn = callbacks_other_work();
        most = turn > most ? turn : most;
    }
    return most;
}

/* Pauses before the next check, longer each round, because readers wake no thread. */
void callback_worker_wait_for_readers(unsigned round)
{
    if (round < SPIN_ROUNDS)
        os_relax();
    else if (round < SPIN_ROUNDS + 32)
        os_sleep_ns(POLL_NS);
    else
        os_sleep_ns(min_size((size_t)POLL_NS * (round / 32), CALLBACK_POLL_MAX_NS));
}

/* The fence is between the store to `awake` and the check. A push stores the head and then loads
 * `awake`, both sequentially consistent (callback_kick). So either this check finds the head, or
 * the push finds that the worker must be woken. */
bool callback_worker_may_sleep(struct callback_worker *worker)
{
    store_relaxed(&worker->awake, 0u);
    os_full_fence();
    if (callback_worker_serve_all(worker) == CALLBACK_TURN_EMPTY &&
        !load_acquire(&worker->stopping))
        return true;
    store_relaxed(&worker->awake, 1u);
    return false;
}

static void fall_asleep(struct callback_worker *worker)
{
    if (worker->polls) {
        os_sleep_ns(CALLBACK_POLL_MAX_NS);
        return;
    }
    if (callback_worker_may_sleep(worker))
        while (!load_acquire(&worker->awake))
            os_word_wait(&worker->awake, 0, 0);
}

/* A thread that ends the rest before it has begun has no effect, and waits for the whole rest. */
static void rest(struct callback_worker *worker, uint64_t nanoseconds)
{
    store_relaxed(&worker->awake, (uint32_t)CALLBACK_RESTS);
    os_word_wait(&worker->awake, CALLBACK_RESTS, nanoseconds);
    store_relaxed(&worker->awake, (uint32_t)CALLBACK_AWAKE);
}

enum callback_pause callback_worker_pause_after(enum callback_turn turn, bool *rested)
{
    if (turn == CALLBACK_TURN_RAN) {
        *rested = false;
        return CALLBACK_NO_PAUSE;
    }
    if (!*rested) {
        *rested = true;
        return CALLBACK_REST;
    }
    if (turn == CALLBACK_TURN_LATER)
        return CALLBACK_LONG_REST;
    return turn == CALLBACK_TURN_WAITS ? CALLBACK_POLL : CALLBACK_SLEEP;
}

static void work(void *argument)
{
    struct callback_worker *worker = argument;
    bool rested = true;
    unsigned waited = 0;

    callback_worker_here = worker;
    store_release(&worker->thread, (uintptr_t)pthread_self());
    while (!load_acquire(&worker->stopping)) {
        switch (callback_worker_pause_after(callback_worker_serve_all(worker), &rested)) {
        case CALLBACK_NO_PAUSE:
            waited = 0;
            break;
        case CALLBACK_REST:
            rest(worker, REST_NS);
            break;
        case CALLBACK_LONG_REST:
            rest(worker, CALLBACK_POLL_MAX_NS);
            break;
        case CALLBACK_POLL:
            callback_worker_wait_for_readers(waited++);
            break;
        case CALLBACK_SLEEP:
            waited = 0;
            fall_asleep(worker);
            break;
        }
    }
    store_release(&worker->started, 0u);
    os_word_wake(&worker->started);
}

/* ------------------------------------------------------------------------- workers of their own */

/* Gives the queue a separate worker, before anything was pushed. */
struct callback_worker *callback_worker_make(struct callback_queue *queue, int cpu, bool polls)
{
    struct callback_worker *worker = os_meta_alloc(sizeof *worker), *before = queue->worker;

    if (!worker)
        return NULL;
    callback_worker_init(worker, cpu, polls);
    os_lock_take(&callbacks_lock);
    while (load_relaxed(&before->serving) == queue) {
        os_lock_release(&callbacks_lock);
        os_sleep_ns(10000);
        os_lock_take(&callbacks_lock);
    }
    list_remove(&queue->link);
    list_append(&worker->queues, &queue->link);
    queue->worker = worker;
    os_lock_release(&callbacks_lock);
    return worker;
}

/* Asks the worker's thread to end, and waits a little. Returns whether it had ended. */
static bool worker_ends(struct callback_worker *worker)
{
    store_release(&worker->stopping, 1u);
    if (!load_acquire(&worker->started))
        return true;
    store_release(&worker->awake, 1u);
    os_word_wake(&worker->awake);
    os_word_wait(&worker->started, 1, 1000000);
    return false;
}

/* Ends the worker's thread, and leaves its queues without one. */
static void worker_stop(struct callback_worker *worker)
{
    while (!worker_ends(worker))
        ;
}

bool callback_worker_ends(struct callback_queue *queue)
{
    if (!worker_ends(queue->worker))
        return false;
    if (!load_acquire(&queue->running))
        return true;
    os_sleep_ns(100000);
    return false;
}

/*
 * A barrier reads `from` and then `to`, and must miss no callback, so a callback is in `to`
 * before counting as invoked in `from`. The mover is the runner during the move; otherwise a
 * barrier that finds no worker would run the queue.
 */
void callback_worker_move_queue(struct callback_queue *from, struct callback_queue *to)
{
    struct prudence_head *head;

    worker_stop(from->worker);
    while (!callback_queue_become_runner(from))
        os_sleep_ns(100000);
    callback_queue_become_busy(from);
    callback_queue_gather(from);
    while ((head = callback_queue_next_ready(from))) {
        size_t bytes = callbacks_weigh ? callbacks_weigh(head) : 0;

        /* takes a new cookie, which is as good as an older one */
        callback_queue_push_quietly(to, head, bytes);
        store_relaxed(&from->current, NULL);
        store_relaxed(&from->bytes_left, from->bytes_left + bytes);
        store_release(&from->invoked, from->invoked + 1);
    }
    callback_queue_become_idle(from);
    callback_queue_end_running(from);
    callback_queue_tell_watchers(from);
    /* Not while this thread is busy, because this may start a thread. */
    if (callback_queue_is_pending(to))
        callback_worker_look_at(to);
}

void callback_worker_release(struct callback_worker *worker)
{
    worker_stop(worker);
    os_lock_take(&callbacks_lock);
    list_remove(&worker->link);
    os_lock_release(&callbacks_lock);
    os_meta_free(worker, sizeof *worker);
}
