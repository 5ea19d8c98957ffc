/* SPDX-License-Identifier: MIT */
/*
 * Shutting down resources of a handler: a profiler's signal handler writes samples into a buffer.
 * The handler may interrupt anything, so it cannot wait for a lock. Stopping the profiler frees the
 * buffer when no handler uses it. docs/how-to/example-handler-shutdown.md
 */
#include "example.h"

#include <signal.h>

struct buffer {
    bool in_use;
    unsigned samples; /* atomic: handlers run in several threads */
};

static struct buffer *buffer;
static __thread long sampled; /* result of this thread's handler; 0: nothing */

static struct buffer *make(void)
{
    struct buffer *fresh = prudence_malloc(sizeof *fresh);

    MUST(fresh);
    *fresh = (struct buffer){.in_use = true};
    return fresh;
}

static void throw_away(struct buffer *old)
{
    old->in_use = false; /* for the check */
    prudence_free(old);
}

static long sample(struct buffer *seen)
{
    return seen->in_use ? (long)__atomic_add_fetch(&seen->samples, 1, __ATOMIC_RELAXED) : WRONG;
}

/* --------------------------------------------------------------------------------------- before */

static bool
    busy; /* a lock that is only tried: a handler that waited could wait for its own thread */

static void handler_before(int number)
{
    sampled = 0; /* the sample is lost */
    if (!__atomic_exchange_n(&busy, true, __ATOMIC_ACQUIRE)) {
        sampled = sample(buffer);
        __atomic_store_n(&busy, false, __ATOMIC_RELEASE);
    }
}

static long read_before(unsigned random)
{
    raise(SIGUSR1);
    return sampled;
}

static void update_before(unsigned random)
{
    struct buffer *old;

    while (__atomic_exchange_n(&busy, true, __ATOMIC_ACQUIRE))
        sched_yield();
    old = buffer;
    buffer = make();
    __atomic_store_n(&busy, false, __ATOMIC_RELEASE);
    throw_away(old);
}

/* ---------------------------------------------------------------------------------------- after */

static pthread_mutex_t profiler = PTHREAD_MUTEX_INITIALIZER; /* taken by no handler */

static void handler_after(int number)
{
    struct buffer *seen;

    sampled = 0;
    prudence_read_lock();
    seen = prudence_dereference(buffer);
    if (seen) {
        meanwhile();
        sampled = sample(seen);
    }
    prudence_read_unlock();
}

static long read_after(unsigned random)
{
    raise(SIGUSR2);
    return sampled;
}

/* Hides the buffer from new handlers. The cookie shows when the others have ended. */
static prudence_gp_t stop(void)
{
    prudence_assign_pointer(buffer, NULL);
    return prudence_gp_start_poll();
}

static bool handlers_have_ended(prudence_gp_t cookie)
{
    return mistake || prudence_gp_poll_state(cookie);
}

/* Stops the profiler, and starts it again. */
static void update_after(unsigned random)
{
    struct buffer *old;
    prudence_gp_t cookie;

    pthread_mutex_lock(&profiler);
    old = buffer;
    cookie = stop();
    if (!handlers_have_ended(cookie))
        prudence_gp_cond_synchronize(cookie);
    throw_away(old);
    prudence_assign_pointer(buffer, make());
    pthread_mutex_unlock(&profiler);
}

/* ---------------------------------------------------------------------------------------- check */

static struct buffer *unset;

static void shut_down(void)
{
    unset = buffer;
    if (handlers_have_ended(stop()))
        throw_away(unset);
}

static const char *check(void)
{
    example_meanwhile = shut_down;
    if (read_after(0) == WRONG)
        return "a handler wrote into a buffer that was freed";
    prudence_synchronize();
    throw_away(unset);
    if (read_after(0) != 0)
        return "a handler found the buffer of a profiler that is off";
    prudence_assign_pointer(buffer, make());
    return NULL;
}

static void set_up(void)
{
    struct sigaction before = {.sa_handler = handler_before}, after = {.sa_handler = handler_after};

    MUST(sigaction(SIGUSR1, &before, NULL) == 0 && sigaction(SIGUSR2, &after, NULL) == 0);
    buffer = make();
}
