/* SPDX-License-Identifier: MIT */
/*
 * Token ring with preemption (K42 and Tornado, the thesis's 4.4.3).
 *
 * Each CPU has two counters of tasks. A task counts itself in its CPU's current counter when it is
 * created or returns from a voluntary switch, and remembers which one that was. When it ends or
 * switches voluntarily, wherever it then runs, it removes itself from that counter. So a preempted
 * task is still counted. The CPU that has the token exchanges the roles of its counters when the
 * previous one, which can only fall, is empty. After two exchanges it passes the token on. The time
 * from one arrival of the token to the next is a grace period of that CPU: it contains two
 * exchanges on each CPU, and the tasks that were counted before the first have ended before the
 * second. At an arrival the CPU calls the callbacks that waited since the last one, and new ones
 * begin to wait.
 *
 * Differences. A switch of a place is the original's explicit quiescent state; its threads are so
 * short that their ends are enough. The place itself takes its steps with the token, and also the
 * steps of an idle place after it, under a lock, because an idle place has no loop. The token rests
 * while there are no callbacks. A place with callbacks stays until they have run before it becomes
 * idle.
 */
#include "variant.h"

#include <pthread.h>

static struct {
    uint64_t counter[2];              /* tasks; atomic */
    uint32_t current;                 /* index; written under the token's lock */
    uint64_t *held;                   /* own: the counter of the running task */
    struct variant_queue next, waits; /* own */
} __attribute__((aligned(VARIANT_LINE))) cpu[PLACES_MAX];

static struct {
    pthread_mutex_t lock;
    unsigned at;
    unsigned exchanges; /* since the token arrived there */
    bool arrived;       /* and no thread has taken a step since */
} token = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t pending __attribute__((aligned(VARIANT_LINE))); /* callbacks; atomic */

/* Counts a task. Either this sees an exchange after it has counted, or the thread that exchanges
 * sees the count before it exchanges again (both: write, full fence, read). */
static uint64_t *count_task(unsigned place)
{
    for (;;) {
        uint32_t current = __atomic_load_n(&cpu[place].current, __ATOMIC_ACQUIRE);
        uint64_t *counter = &cpu[place].counter[current];

        __atomic_add_fetch(counter, 1, __ATOMIC_SEQ_CST);
        variant_full_fence();
        if (__atomic_load_n(&cpu[place].current, __ATOMIC_ACQUIRE) == current)
            return counter;
        __atomic_sub_fetch(counter, 1, __ATOMIC_SEQ_CST);
    }
}

static void end_task(unsigned place)
{
    __atomic_sub_fetch(cpu[place].held, 1, __ATOMIC_SEQ_CST);
}

/* Returns false if a task from before the last exchange is still counted. Called under the
 * token's lock. */
static bool exchange_roles(unsigned place)
{
    uint32_t previous = !cpu[place].current;

    variant_full_fence();
    if (__atomic_load_n(&cpu[place].counter[previous], __ATOMIC_ACQUIRE))
        return false;
    __atomic_store_n(&cpu[place].current, previous, __ATOMIC_RELEASE);
    return true;
}

static void pass_token_on(void)
{
    token.at = (token.at + 1) % variant_place_count;
    token.exchanges = 0;
    token.arrived = true;
}

/* Takes the steps of this place, and of idle ones after it. An idle place has no callbacks for
 * an arrival to handle. */
static void take_steps(unsigned place, struct variant_queue *over)
{
    if (pthread_mutex_trylock(&token.lock))
        return;
    while (token.at == place || variant_is_idle(token.at)) {
        if (token.arrived && token.at == place) {
            queue_move(over, &cpu[place].waits);
            queue_move(&cpu[place].waits, &cpu[place].next);
        }
        token.arrived = false;
        if (!exchange_roles(token.at))
            break;
        if (++token.exchanges == 2)
            pass_token_on();
    }
    pthread_mutex_unlock(&token.lock);
}

static void context_switch(unsigned place)
{
    struct variant_queue over;

    end_task(place);
    cpu[place].held = count_task(place);
    if (!__atomic_load_n(&pending, __ATOMIC_RELAXED))
        return;
    queue_make_empty(&over);
    take_steps(place, &over);
    if (over.first)
        __atomic_sub_fetch(&pending, queue_invoke(&over), __ATOMIC_RELAXED);
}

static void preempt(unsigned place, struct variant_task *task)
{
    task->counter = cpu[place].held;
    cpu[place].held = count_task(place);
}

static void resume(unsigned place, struct variant_task *task)
{
    end_task(place);
    cpu[place].held = task->counter;
}

static void call(unsigned place, struct variant_head *head, void (*func)(struct variant_head *))
{
    head->func = func;
    queue_append(&cpu[place].next, head);
    __atomic_add_fetch(&pending, 1, __ATOMIC_RELAXED);
}

static void busy(unsigned place)
{
    cpu[place].held = count_task(place);
}

static void idle(unsigned place)
{
    while (cpu[place].next.first || cpu[place].waits.first) {
        context_switch(place);
        variant_pause();
    }
    end_task(place);
}

static void start(unsigned places)
{
    pending = 0;
    token.at = 0;
    token.exchanges = 0;
    token.arrived = true;
    for (unsigned i = 0; i < places; i++) {
        cpu[i].counter[0] = cpu[i].counter[1] = 0;
        cpu[i].current = 0;
        queue_make_empty(&cpu[i].next);
        queue_make_empty(&cpu[i].waits);
    }
}

const struct variant variant_k42 = {
    .name = "k42",
    .origin = "token ring with two counters of tasks per CPU (K42 and Tornado, 4.4.3)",
    .historical = true,
    .start = start,
    .idle = idle,
    .busy = busy,
    .context_switch = context_switch,
    .preempt = preempt,
    .resume = resume,
    .call = call,
};
