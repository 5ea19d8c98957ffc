/* SPDX-License-Identifier: MIT */
/*
 * liburcu under the interface of variant.h. A file that includes this has chosen the flavor by
 * liburcu's own switches, and names it by URCU_NAME, URCU_SYMBOL and URCU_ORIGIN. Places are
 * registered while they are busy.
 */
#define _LGPL_SOURCE /* the read side inlined, as ours is */
#include URCU_HEADER

#include "variant.h"

_Static_assert(sizeof(struct variant_head) == sizeof(struct rcu_head), "one head for all");

static __thread bool registered;

static void busy(unsigned place)
{
    (void)place;
    if (!registered)
        rcu_register_thread();
    registered = true;
#ifdef URCU_IS_QSBR
    rcu_thread_online();
#endif
}

static void idle(unsigned place)
{
    (void)place;
#ifdef URCU_IS_QSBR
    if (registered)
        rcu_thread_offline();
#endif
}

static void leave(void)
{
    if (registered)
        rcu_unregister_thread();
    registered = false;
}

#ifdef URCU_IS_QSBR
static void context_switch(unsigned place)
{
    (void)place;
    rcu_quiescent_state();
}
#else
static void read_lock(unsigned place)
{
    (void)place;
    rcu_read_lock();
}

static void read_unlock(unsigned place)
{
    (void)place;
    rcu_read_unlock();
}
#endif

/* liburcu's head also begins with the queue's link; our head only provides the room. */
static void call(unsigned place, struct variant_head *head, void (*func)(struct variant_head *))
{
    (void)place;
    call_rcu((struct rcu_head *)head, (void (*)(struct rcu_head *))func);
}

static void synchronize(unsigned place)
{
    (void)place;
    synchronize_rcu();
}

static void stop(void)
{
    rcu_barrier();
}

const struct variant URCU_SYMBOL = {
    .name = URCU_NAME,
    .origin = URCU_ORIGIN,
    .stop = stop,
    .idle = idle,
    .busy = busy,
    .leave = leave,
#ifdef URCU_IS_QSBR
    .context_switch = context_switch,
#else
    .read_lock = read_lock,
    .read_unlock = read_unlock,
#endif
    .call = call,
    .synchronize = synchronize,
};
