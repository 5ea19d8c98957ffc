/* SPDX-License-Identifier: MIT */
/*
 * Callbacks after a grace period.
 *
 * A callback's way: pushed to the lane of a CPU, by one compare-and-swap; detached with all that
 * the lanes hold by the queue's runner, who then fences and takes a cookie (gp_snapshot), in that
 * order: the rule of batches (drive.c); put into a segment with that cookie; once it is over, into
 * `ready`; run. There are few segments, with distinct cookies. When all are in use the newest takes
 * what comes, and its cookie is renewed: the others end meanwhile, so one renewed cookie cannot keep
 * anything for ever.
 *
 * Runner. One thread at a time runs a queue's callbacks, so those of one lane keep their order, and
 * "so many have returned" says which. It is a worker: a thread that is started at the first push,
 * drives the grace periods that its queues wait for, takes turns of RUN_MAX callbacks among them, and
 * sleeps without waking when all are empty. Nobody else runs a callback: its writer knows no locks of
 * whoever might be allocating, polling or queueing. Only where no thread can be had does a barrier.
 *
 * Barrier: a look at all lanes that begins after the barrier did has detached all that was queued
 * before; when as many callbacks have returned as had been detached at the end of that look, these
 * are among them. It needs no memory, and nothing of it is in the queue: a fork may happen.
 *
 * Fork closes the lanes (who pushes waits, but for the forking thread itself) and keeps runners from
 * touching lists: a runner marks itself busy, fences, and looks whether a fork is under way. It does
 * not wait for a callback to return, which might wait for the forking thread. In the child that one
 * callback counts as done, and there are no workers until somebody needs one.
 */
#include <pthread.h>

#include "gp/callbacks.h"
#include "gp/domain.h"

#define RUN_MAX     256   /* callbacks of one queue, before others have their turn */
#define LINGER_NS   30000 /* between looks of an idle worker, before it sleeps */
#define LINGER_MAX  3
#define SPIN_ROUNDS 8
#define POLL_NS     20000 /* between looks at a grace period */
#define POLL_MAX_NS 1000000
#define RETRY_NS    10000000 /* after the system refused a thread */
#define LOOK_BYTES  16384    /* pushed to a lane between looks at the limit */
#define PACE_BYTES  262144   /* that wait, before who queues keeps pace with the runner */
#define PACE_MAX_NS 4000000  /* longer than the worker loses its processor to another thread */
#define NO_PACE_NS  20000000 /* after it was in vain */
#define CLOSED      ((uintptr_t)1)

struct os_lock callbacks_lock = OS_LOCK_INIT(OS_RANK_CALLBACKS);
size_t (*callbacks_weigh)(const struct prudence_head *head);
void (*callbacks_leave)(const struct prudence_head *head);
bool (*callbacks_other_work)(void);

static struct callback_lane default_lanes[CALLBACK_LANES_MAX];
static struct callback_worker main_worker;
static struct list workers = {&workers, &workers}; /* under callbacks_lock */
static struct callback_queue default_queue;
static uint32_t forking;
static __thread struct callback_worker *worker_here;
static __thread unsigned callbacks_here; /* depth: a barrier without a thread may run some, too */

/* ------------------------------------------------------------------------------------- workers */

static void work(void *argument);

/* Starts the thread, or ends its sleep. */
static void wake(struct callback_worker *worker)
{
    uint32_t no = 0;

    if (!compare_exchange(&worker->awake, &no, 1u) && load_relaxed(&worker->started))
        return;
    no = 0;
    if (load_relaxed(&worker->started)) {
        os_word_wake(&worker->awake);
        return;
    }
    if (os_clock_ns() < load_relaxed(&worker->retry_at) ||
        !compare_exchange(&worker->started, &no, 1u))
        return;
    store_relaxed(&worker->awake, 1u);
    if (!os_thread_start("prudence-call", worker->cpu, work, worker)) {
        store_relaxed(&worker->retry_at, os_clock_ns() + RETRY_NS);
        store_release(&worker->started, 0u);
    }
}

static inline void kick(struct callback_worker *worker)
{
    if (unlikely(!load_relaxed(&worker->awake) || !load_relaxed(&worker->started)))
        wake(worker);
}

void callbacks_kick(void)
{
    callback_queue_of(&prudence_default); /* makes it ready */
    os_full_fence();                      /* what there is to do is seen by who falls asleep */
    kick(&main_worker);
}

void callback_start(struct callback_queue *queue)
{
    os_full_fence();
    kick(queue->worker);
}

void callbacks_nudge(void)
{
    os_full_fence();
    if (load_acquire(&main_worker.started) && !load_relaxed(&main_worker.awake))
        wake(&main_worker);
}

/* -------------------------------------------------------------------------------------- queues */

static void segment_init(struct callback_segment *segment)
{
    segment->first = NULL;
    segment->last = &segment->first;
}

/* `from` behind `to`; `from` is empty then. */
static void segment_join(struct callback_segment *to, struct callback_segment *from)
{
    if (!from->first)
        return;
    *to->last = from->first;
    to->last = from->last;
    segment_init(from);
}

static void worker_init(struct callback_worker *worker, int cpu, bool polls)
{
    worker->cpu = cpu;
    worker->polls = polls;
    list_init(&worker->queues);
    os_lock_take(&callbacks_lock);
    list_add_tail(&workers, &worker->link);
    os_lock_release(&callbacks_lock);
}

static unsigned lanes_for_cpus(unsigned most)
{
    return (unsigned)min_size(round_up_to_power_of_two(os_cpu_count()), most);
}

static void queue_init(struct callback_queue *queue, struct prudence_domain *domain,
                       struct callback_worker *worker, unsigned lanes)
{
    queue->domain = domain;
    queue->worker = worker;
    queue->lanes = lanes;
    for (unsigned i = 0; i < CALLBACK_SEGMENTS; i++)
        segment_init(&queue->segments[i]);
    segment_init(&queue->ready);
    os_lock_take(&callbacks_lock);
    list_add_tail(&worker->queues, &queue->link);
    os_lock_release(&callbacks_lock);
}

static void default_queue_init(void)
{
    worker_init(&main_worker, -1, false);
    default_queue.lane = default_lanes;
    queue_init(&default_queue, &prudence_default, &main_worker, lanes_for_cpus(CALLBACK_LANES_MAX));
    store_release(&prudence_default.callbacks, &default_queue);
}

struct callback_queue *callback_queue_of(struct prudence_domain *domain)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    if (unlikely(!load_acquire(&prudence_default.callbacks)))
        pthread_once(&once, default_queue_init);
    return domain->callbacks;
}

static size_t lanes_bytes(unsigned lanes)
{
    return lanes * sizeof(struct callback_lane);
}

struct callback_queue *callback_queue_make(struct prudence_domain *domain, unsigned lanes)
{
    struct callback_queue *queue = os_meta_alloc(sizeof *queue);

    if (!queue)
        return NULL;
    callback_queue_of(&prudence_default);
    lanes = lanes_for_cpus(lanes);
    queue->lane = os_meta_alloc(lanes_bytes(lanes));
    if (!queue->lane) {
        os_meta_free(queue, sizeof *queue);
        return NULL;
    }
    queue_init(queue, domain, &main_worker, lanes);
    return queue;
}

static bool lane_is_empty(const struct callback_lane *lane)
{
    return (load_acquire(&lane->incoming) & ~CLOSED) == 0;
}

static bool lanes_are_empty(const struct callback_queue *queue)
{
    for (unsigned i = 0; i < queue->lanes; i++)
        if (!lane_is_empty(&queue->lane[i]))
            return false;
    return true;
}

/* In this order: a runner detaches lanes while it is `running`, and says so in `taken` before it
 * stops. */
bool callback_is_pending(const struct callback_queue *queue)
{
    uint64_t invoked;

    if (!lanes_are_empty(queue) || load_acquire(&queue->running))
        return true;
    invoked = load_acquire(&queue->invoked);
    return load_relaxed(&queue->taken) != invoked;
}

/* A runner that has detached lanes, and not said so yet, is busy. */
bool callback_waits(const struct callback_queue *queue)
{
    uint64_t invoked;

    if (!lanes_are_empty(queue))
        return true;
    while (load_acquire(&queue->busy))
        os_relax();
    invoked = load_acquire(&queue->invoked);
    return load_relaxed(&queue->taken) != invoked;
}

/* A turn in which nothing is run is soon over. */
void callback_queue_release(struct callback_queue *queue)
{
    bool served;

    do {
        os_lock_take(&callbacks_lock);
        served = load_relaxed(&queue->worker->serving) == queue || load_acquire(&queue->running);
        if (!served)
            list_remove(&queue->link);
        os_lock_release(&callbacks_lock);
        if (served)
            os_sleep_ns(10000);
    } while (served);
    os_meta_free(queue->lane, lanes_bytes(queue->lanes));
    os_meta_free(queue, sizeof *queue);
}

uint64_t callback_bytes(const struct callback_queue *queue)
{
    uint64_t left = load_relaxed(&queue->bytes_left), pushed = 0;

    for (unsigned i = 0; i < queue->lanes; i++)
        pushed += load_relaxed(&queue->lane[i].bytes_pushed);
    return (int64_t)(pushed - left) > 0 ? pushed - left : 0;
}

/* ------------------------------------------------------------------------------------- pushing */

/* A closed lane opens when the fork is over; the forking thread itself goes on. */
static uintptr_t lane_newest(const struct callback_lane *lane)
{
    uintptr_t newest = load_relaxed(&lane->incoming);

    while (unlikely(newest & CLOSED) && !os_lock_forking) {
        os_sleep_ns(10000);
        newest = load_relaxed(&lane->incoming);
    }
    return newest;
}

static void lane_push(struct callback_lane *lane, struct prudence_head *head)
{
    uintptr_t newest;

    do {
        newest = lane_newest(lane);
        /* Atomic: where a head is queued twice, and nobody checks, that is no second fault. */
        store_relaxed(&head->next, (struct prudence_head *)(newest & ~CLOSED));
    } while (!compare_exchange(&lane->incoming, &newest, (uintptr_t)head | (newest & CLOSED)));
}

bool callback_push(struct callback_queue *queue, struct prudence_head *head, size_t bytes)
{
    struct callback_lane *lane = &queue->lane[os_cpu_current() & (queue->lanes - 1)];
    uint64_t before = add_relaxed(&lane->bytes_pushed, bytes);

    lane_push(lane, head);
    kick(queue->worker); /* the compare-and-swap fenced: it sees the head, or this that it sleeps */
    return (before ^ (before + bytes)) >= LOOK_BYTES;
}

/* ------------------------------------------------------------------- the runner's hold on lists */

/* Between busy and idle the lists change, and no fork happens. */
static void become_busy(struct callback_queue *queue)
{
    os_busy_enter(); /* a signal handler that forks must not wait for this thread */
    for (;;) {
        store_relaxed(&queue->busy, 1u);
        os_full_fence();
        if (likely(!load_acquire(&forking)) || os_lock_forking)
            return;
        store_release(&queue->busy, 0u);
        while (load_relaxed(&forking))
            os_sleep_ns(10000);
    }
}

static void become_idle(struct callback_queue *queue)
{
    store_release(&queue->busy, 0u);
    os_busy_leave();
}

static struct callback_segment *newest_segment(struct callback_queue *queue)
{
    unsigned last = queue->first_segment + queue->segments_used - 1;

    return &queue->segments[last % CALLBACK_SEGMENTS];
}

/* A lane's callbacks, oldest first, behind `to`. Returns how many. */
static uint64_t lane_detach(struct callback_lane *lane, struct callback_segment *to)
{
    struct prudence_head *newest, *older = NULL;
    uint64_t count = 0;

    if (lane_is_empty(lane))
        return 0;
    newest = (struct prudence_head *)exchange_acquire(&lane->incoming, (uintptr_t)0);
    for (struct prudence_head *next, *head = newest; head; head = next, count++) {
        next = head->next;
        head->next = older;
        older = head;
    }
    *to->last = older;
    to->last = &newest->next;
    return count;
}

/* Detaches all lanes, fences, takes the cookie: see the head of this file. */
static void collect(struct callback_queue *queue)
{
    struct callback_segment fresh;
    uint64_t count = 0;
    gp_cookie cookie;

    segment_init(&fresh);
    store_relaxed(&queue->collecting, queue->collecting + 1);
    os_full_fence(); /* a barrier that saw the old count pushed before these looks at the lanes */
    for (unsigned i = 0; i < queue->lanes; i++)
        count += lane_detach(&queue->lane[i], &fresh);
    if (count) {
        cookie = gp_snapshot(queue->domain);
        if (!queue->segments_used ||
            (newest_segment(queue)->cookie != cookie && queue->segments_used < CALLBACK_SEGMENTS))
            queue->segments_used++;
        newest_segment(queue)->cookie = cookie;
        segment_join(newest_segment(queue), &fresh);
    }
    store_relaxed(&queue->taken, queue->taken + count);
    store_release(&queue->collected, queue->collecting);
}

/* Segments whose cookie is over become ready. */
static void promote(struct callback_queue *queue)
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

/* The next callback that may run, which is then `current`. */
static struct prudence_head *next_ready(struct callback_queue *queue)
{
    struct prudence_head *head = queue->ready.first;

    queue->current = head;
    if (!head)
        return NULL;
    queue->ready.first = head->next;
    if (!head->next)
        segment_init(&queue->ready);
    return head;
}

static void tell_watchers(struct callback_queue *queue)
{
    os_full_fence();
    if (likely(!load_relaxed(&queue->watchers)))
        return;
    add_relaxed(&queue->progress, 1);
    os_word_wake(&queue->progress);
}

/* ------------------------------------------------------------------------------------- running */

static void run_one(struct callback_queue *queue, struct prudence_head *head)
{
    size_t bytes = callbacks_weigh ? callbacks_weigh(head) : 0;

    if (callbacks_leave)
        callbacks_leave(head);
    callbacks_here++;
    head->func(head);
    callbacks_here--;
    store_relaxed(&queue->bytes_left, queue->bytes_left + bytes);
}

static unsigned run_ready(struct callback_queue *queue)
{
    struct prudence_head *head;
    unsigned count = 0;

    become_busy(queue);
    while (count < RUN_MAX && (head = next_ready(queue))) {
        become_idle(queue);
        run_one(queue, head);
        count++;
        become_busy(queue);
        queue->current = NULL;
        store_release(&queue->invoked, queue->invoked + 1);
    }
    become_idle(queue);
    return count;
}

/* Who keeps pace asks whether it is the readers that the oldest callbacks wait for. */
static void say_what_it_waits_for(struct callback_queue *queue)
{
    bool readers = !queue->ready.first && queue->segments_used;

    store_relaxed(&queue->waits_for, readers ? queue->segments[queue->first_segment].cookie : 0);
}

enum turn { TURN_EMPTY, TURN_WAITS, TURN_RAN };

/* One turn of a queue. TURN_WAITS also where another thread runs it. */
static enum turn serve(struct callback_queue *queue)
{
    uint32_t no = 0;
    unsigned count;
    bool waits;
    gp_cookie cookie = 0;

    if (load_relaxed(&queue->running) || !compare_exchange(&queue->running, &no, 1u))
        return TURN_WAITS;
    store_relaxed(&queue->runner, (uintptr_t)&callbacks_here);
    become_busy(queue);
    collect(queue);
    promote(queue);
    waits = queue->segments_used > 0;
    if (waits)
        cookie = queue->segments[queue->first_segment].cookie;
    become_idle(queue);
    if (waits) {
        gp_request(queue->domain, cookie);
        gp_drive(queue->domain);
        become_busy(queue);
        promote(queue);
        become_idle(queue);
    }
    say_what_it_waits_for(queue);
    count = run_ready(queue);
    waits = queue->taken != queue->invoked;
    store_release(&queue->running, 0u);
    tell_watchers(queue);
    return count ? TURN_RAN : waits ? TURN_WAITS : TURN_EMPTY;
}

/* The queue that follows the one served last, held against release; NULL at the end of a round. */
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

/* One turn of each queue. */
static enum turn serve_all(struct callback_worker *worker)
{
    struct callback_queue *queue;
    enum turn most = TURN_EMPTY, turn;

    while ((queue = next_queue(worker))) {
        turn = serve(queue);
        most = turn > most ? turn : most;
    }
    if (worker == &main_worker && callbacks_other_work && callbacks_other_work())
        most = most > TURN_WAITS ? most : TURN_WAITS;
    return most;
}

/* Readers wake nobody, so it looks again: at once at first, then ever more rarely. */
static void wait_for_readers(unsigned round)
{
    if (round < SPIN_ROUNDS)
        os_relax();
    else if (round < SPIN_ROUNDS + 32)
        os_sleep_ns(POLL_NS);
    else
        os_sleep_ns(min_size((size_t)POLL_NS * (round / 32), POLL_MAX_NS));
}

/* Says that it sleeps, looks once more, and sleeps. Returns whether there was something. */
static bool fall_asleep(struct callback_worker *worker)
{
    if (worker->polls) {
        os_sleep_ns(POLL_MAX_NS);
        return false;
    }
    store_relaxed(&worker->awake, 0u);
    os_full_fence();
    if (serve_all(worker) != TURN_EMPTY || load_acquire(&worker->stopping)) {
        store_relaxed(&worker->awake, 1u);
        return true;
    }
    while (!load_acquire(&worker->awake))
        os_word_wait(&worker->awake, 0, 0);
    return false;
}

static void work(void *argument)
{
    struct callback_worker *worker = argument;
    unsigned waited = 0, idle = 0;

    worker_here = worker;
    store_release(&worker->thread, (uintptr_t)pthread_self());
    while (!load_acquire(&worker->stopping)) {
        enum turn turn = serve_all(worker);

        if (turn == TURN_RAN) {
            waited = idle = 0;
        } else if (turn == TURN_WAITS) {
            idle = 0;
            wait_for_readers(waited++);
        } else if (idle++ < LINGER_MAX) {
            waited = 0;
            os_sleep_ns(LINGER_NS);
        } else {
            fall_asleep(worker);
            idle = 0;
        }
    }
    store_release(&worker->started, 0u);
    os_word_wake(&worker->started);
}

/* -------------------------------------------------------------------------- workers of their own */

/* From now on the queue is served by a thread of its own. Nothing was pushed yet. */
struct callback_worker *callback_worker_make(struct callback_queue *queue, int cpu, bool polls)
{
    struct callback_worker *worker = os_meta_alloc(sizeof *worker), *before = queue->worker;

    if (!worker)
        return NULL;
    worker_init(worker, cpu, polls);
    os_lock_take(&callbacks_lock);
    while (load_relaxed(&before->serving) == queue) {
        os_lock_release(&callbacks_lock);
        os_sleep_ns(10000);
        os_lock_take(&callbacks_lock);
    }
    list_remove(&queue->link);
    list_add_tail(&worker->queues, &queue->link);
    queue->worker = worker;
    os_lock_release(&callbacks_lock);
    return worker;
}

/* Ends its thread; its queues are nobody's then. */
static void worker_stop(struct callback_worker *worker)
{
    store_release(&worker->stopping, 1u);
    while (load_acquire(&worker->started)) {
        store_release(&worker->awake, 1u);
        os_word_wake(&worker->awake);
        os_word_wait(&worker->started, 1, 1000000);
    }
}

/* All segments, safe or not. */
static void gather(struct callback_queue *queue)
{
    collect(queue);
    for (; queue->segments_used; queue->segments_used--) {
        segment_join(&queue->ready, &queue->segments[queue->first_segment]);
        queue->first_segment = (queue->first_segment + 1) % CALLBACK_SEGMENTS;
    }
}

void callback_move(struct callback_queue *from, struct callback_queue *to)
{
    struct prudence_head *head;

    worker_stop(from->worker);
    become_busy(from);
    gather(from);
    while ((head = next_ready(from))) { /* a new cookie, which is as good as an older one */
        size_t bytes = callbacks_weigh ? callbacks_weigh(head) : 0;

        callback_push(to, head, bytes);
        from->current = NULL;
        store_relaxed(&from->bytes_left, from->bytes_left + bytes);
        store_release(&from->invoked, from->invoked + 1);
    }
    become_idle(from);
    tell_watchers(from);
}

void callback_worker_release(struct callback_worker *worker)
{
    worker_stop(worker);
    os_lock_take(&callbacks_lock);
    list_remove(&worker->link);
    os_lock_release(&callbacks_lock);
    os_meta_free(worker, sizeof *worker);
}

/* ----------------------------------------------------------------------------------- waiting */

bool callback_here(void)
{
    return callbacks_here > 0;
}

/* Until the queue has made some progress. Without a thread the caller does the work. */
static void watch(struct callback_queue *queue,
                  bool (*is_over)(const struct callback_queue *queue, uint64_t goal), uint64_t goal)
{
    for (unsigned round = 0; !is_over(queue, goal); round++) {
        uint32_t progress = load_acquire(&queue->progress);

        kick(queue->worker);
        if (!load_acquire(&queue->worker->started)) {
            if (serve(queue) == TURN_WAITS)
                wait_for_readers(round);
            continue;
        }
        add_relaxed(&queue->watchers, 1);
        os_full_fence();
        if (!is_over(queue, goal))
            os_word_wait(&queue->progress, progress, POLL_MAX_NS);
        sub_relaxed(&queue->watchers, 1);
    }
}

static bool has_collected(const struct callback_queue *queue, uint64_t goal)
{
    return (int32_t)(load_acquire(&queue->collected) - (uint32_t)goal) >= 0;
}

static bool has_invoked(const struct callback_queue *queue, uint64_t goal)
{
    return load_acquire(&queue->invoked) >= goal;
}

void callback_barrier(struct callback_queue *queue)
{
    if (!callback_is_pending(queue))
        return;
    os_full_fence();
    watch(queue, has_collected, load_relaxed(&queue->collecting) + 1);
    watch(queue, has_invoked, load_relaxed(&queue->taken));
}

bool callback_worth_waiting(struct callback_queue *queue)
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
    while (callback_bytes(queue) > bytes) {
        if (os_clock_ns() >= deadline) {
            gp_note_expired(queue->domain);
            store_relaxed(&queue->expired_invoked, load_relaxed(&queue->invoked));
            store_release(&queue->expired, 1u);
            return false;
        }
        kick(queue->worker);
        gp_drive(queue->domain);
        os_sleep_ns(POLL_NS);
    }
    return true;
}

/* Too much waits, and not for readers. (Where the runner has no processor it is the caller that drives
 * the grace period.) */
static bool is_behind(struct callback_queue *queue)
{
    gp_cookie cookie = load_relaxed(&queue->waits_for);

    if (callback_bytes(queue) <= PACE_BYTES)
        return false;
    if (!cookie || gp_poll(queue->domain, cookie))
        return true;
    gp_drive(queue->domain);
    return gp_poll(queue->domain, cookie);
}

bool callback_keep_pace(struct callback_queue *queue)
{
    uint64_t before = load_relaxed(&queue->invoked), now, deadline;

    if (!is_behind(queue) || (now = os_clock_ns()) < load_relaxed(&queue->no_pace_until))
        return false;
    deadline = now + PACE_MAX_NS;
    do {
        kick(queue->worker);
        os_sleep_ns(POLL_NS);
        now = os_clock_ns();
        if (!is_behind(queue))
            return true;
    } while (now < deadline);
    /* None returned: the one that runs may want a lock of this thread's, or wait for its section. */
    if (load_relaxed(&queue->invoked) == before)
        store_relaxed(&queue->no_pace_until, now + NO_PACE_NS);
    return true;
}

/* ---------------------------------------------------------------------------------------- fork */

static void for_all_queues(void (*visit)(struct callback_queue *queue))
{
    struct list *item, *at;

    list_for_each(at, &workers)
    {
        struct callback_worker *worker = list_entry(at, struct callback_worker, link);

        list_for_each(item, &worker->queues)
        {
            visit(list_entry(item, struct callback_queue, link));
        }
    }
}

/* What was pushed is whole, and nothing is pushed any more. */
static void close_lanes(struct callback_queue *queue)
{
    for (unsigned i = 0; i < queue->lanes; i++)
        __atomic_fetch_or(&queue->lane[i].incoming, CLOSED, __ATOMIC_SEQ_CST);
}

static void open_lanes(struct callback_queue *queue)
{
    for (unsigned i = 0; i < queue->lanes; i++)
        __atomic_fetch_and(&queue->lane[i].incoming, ~CLOSED, __ATOMIC_SEQ_CST);
}

static void wait_until_idle(struct callback_queue *queue)
{
    while (load_acquire(&queue->busy))
        os_sleep_ns(1000);
}

void callbacks_fork_prepare(void)
{
    os_lock_take_for_fork(&callbacks_lock);
    store_release(&forking, 1u);
    os_full_fence();
    for_all_queues(wait_until_idle);
    for_all_queues(close_lanes);
}

/* Its runner is not in the child, unless it is who forks: in a callback. */
static void forget_runner(struct callback_queue *queue)
{
    queue->watchers = 0;
    if (!queue->running || queue->runner == (uintptr_t)&callbacks_here)
        return;
    queue->running = queue->busy = 0;
    if (queue->current) {
        queue->current = NULL;
        queue->invoked++;
    }
}

void callbacks_fork_child(void)
{
    struct list *at;

    for_all_queues(forget_runner);
    list_for_each(at, &workers)
    {
        struct callback_worker *worker = list_entry(at, struct callback_worker, link);

        if (worker == worker_here)
            continue;
        worker->started = worker->awake = 0;
        worker->serving = NULL;
    }
}

void callbacks_fork_done(void)
{
    for_all_queues(open_lanes);
    store_release(&forking, 0u);
    os_lock_release_from_fork(&callbacks_lock);
}
