/* SPDX-License-Identifier: MIT */
/*
 * Makes and releases queues of callbacks. The default domain's queue is made at first use.
 *
 * Locks: callbacks_lock, for the lists.
 */
#include <pthread.h>

#include "gp/user/domain.h"
#include "guard/annotate.h"
#include "toolkit/callbacks/callback_life.h"
#include "toolkit/callbacks/callback_queue.h"
#include "toolkit/callbacks/callback_worker.h"

static struct callback_lane default_lanes[CALLBACK_LANES_MAX];
static struct callback_queue default_queue;

static unsigned lanes_for_cpus(unsigned most)
{
    return (unsigned)min_size(round_up_to_power_of_two(os_cpu_count()), most);
}

static void default_queue_init(void)
{
    callback_worker_init(&callback_main_worker, -1, false);
    default_queue.lane = default_lanes;
    callback_queue_init(&default_queue, &prudence_default, &callback_main_worker,
                        lanes_for_cpus(CALLBACK_LANES_MAX));
    store_release(&prudence_default.callbacks, &default_queue);
}

struct callback_queue *callback_queue_of(struct prudence_domain *domain)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    if (unlikely(!load_acquire(&prudence_default.callbacks)))
        pthread_once(&once, default_queue_init);
    return domain->callbacks;
}

void callbacks_kick(void)
{
    callback_queue_of(&prudence_default); /* makes the queue ready */
    callback_queue_note_fork();
    os_full_fence(); /* a worker that falls asleep sees the work */
    callback_hurry(&callback_main_worker);
}

static size_t lanes_bytes(unsigned lanes)
{
    return lanes * sizeof(struct callback_lane);
}

/* Informs LeakSanitizer about the queue and the lanes, which may point to blocks of the C library.
 * (The default domain's queue is a variable of the library, where leak detectors check anyway.) */
static void tell_roots(struct callback_queue *queue)
{
    queue->is_told = annotate_root_begins(queue->lane, lanes_bytes(queue->lanes)) &&
                     annotate_root_begins(queue, sizeof *queue);
}

static void forget_roots(const struct callback_queue *queue)
{
    if (!queue->is_told)
        return;
    annotate_root_ends(queue->lane, lanes_bytes(queue->lanes));
    annotate_root_ends(queue, sizeof *queue);
}

void callback_queue_keep(struct callback_queue *queue, void *context)
{
    queue->context = context;
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
    callback_queue_init(queue, domain, &callback_main_worker, lanes);
    tell_roots(queue);
    return queue;
}

/* Waits for the worker, which soon leaves a queue in which nothing runs. */
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
    forget_roots(queue);
    os_meta_free(queue->lane, lanes_bytes(queue->lanes));
    os_meta_free(queue, sizeof *queue);
}
