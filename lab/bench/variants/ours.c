/* SPDX-License-Identifier: MIT */
/* Prudence's variants, and none at all, which shows the cost of the loops by themselves. */
#include "variant.h"

#include <stdlib.h>

#include <prudence/call.h>
#include <prudence/rcu.h>

_Static_assert(sizeof(struct variant_head) == sizeof(struct prudence_head) &&
                   offsetof(struct variant_head, func) == offsetof(struct prudence_head, func),
               "one head for all");

/* ---------------------------------------------------------------------------------------- memb */

static void memb_read_lock(unsigned place)
{
    (void)place;
    prudence_read_lock();
}

static void memb_read_unlock(unsigned place)
{
    (void)place;
    prudence_read_unlock();
}

static void memb_call(unsigned place, struct variant_head *head,
                      void (*func)(struct variant_head *))
{
    (void)place;
    prudence_call((struct prudence_head *)head, (void (*)(struct prudence_head *))func);
}

static void memb_synchronize(unsigned place)
{
    (void)place;
    prudence_synchronize();
}

static uint64_t memb_start_poll(void)
{
    return prudence_gp_start_poll().private_value;
}

static bool memb_poll(uint64_t cookie)
{
    return prudence_gp_poll_state((prudence_gp_t){cookie});
}

static void memb_stop(void)
{
    prudence_barrier();
}

const struct variant variant_memb = {
    .name = "memb",
    .origin = "Prudence's default: readers register themselves, membarrier or fences by rates",
    .stop = memb_stop,
    .read_lock = memb_read_lock,
    .read_unlock = memb_read_unlock,
    .call = memb_call,
    .synchronize = memb_synchronize,
    .start_poll = memb_start_poll,
    .poll = memb_poll,
};

/* ---------------------------------------------------------------------------------------- qsbr */

static struct prudence_domain *qsbr;

static void qsbr_start(unsigned places)
{
    (void)places;
    qsbr = prudence_domain_create("variant", PRUDENCE_DOMAIN_QSBR, NULL);
    if (!qsbr)
        abort();
}

static void qsbr_idle(unsigned place)
{
    (void)place;
    prudence_qsbr_offline(qsbr);
}

static void qsbr_busy(unsigned place)
{
    (void)place;
    prudence_qsbr_online(qsbr);
}

static void qsbr_switch(unsigned place)
{
    (void)place;
    prudence_qsbr_quiescent(qsbr);
}

static void qsbr_call(unsigned place, struct variant_head *head,
                      void (*func)(struct variant_head *))
{
    (void)place;
    prudence_domain_call(qsbr, (struct prudence_head *)head,
                         (void (*)(struct prudence_head *))func);
}

static void qsbr_synchronize(unsigned place)
{
    (void)place;
    if (prudence_domain_synchronize(qsbr))
        abort();
}

static uint64_t qsbr_start_poll(void)
{
    return prudence_domain_start_poll(qsbr).private_value;
}

static bool qsbr_poll(uint64_t cookie)
{
    return prudence_domain_poll_state(qsbr, (prudence_gp_t){cookie});
}

static void qsbr_stop(void)
{
    prudence_domain_barrier(qsbr);
    if (prudence_domain_destroy(qsbr))
        abort();
}

const struct variant variant_qsbr = {
    .name = "qsbr",
    .origin = "Prudence's qsbr domain: free reads, explicit quiescent states",
    .start = qsbr_start,
    .stop = qsbr_stop,
    .idle = qsbr_idle,
    .busy = qsbr_busy,
    .context_switch = qsbr_switch,
    .call = qsbr_call,
    .synchronize = qsbr_synchronize,
    .start_poll = qsbr_start_poll,
    .poll = qsbr_poll,
};

/* ---------------------------------------------------------------------------------------- none */

static void none_call(unsigned place, struct variant_head *head,
                      void (*func)(struct variant_head *))
{
    (void)place;
    func(head); /* waits for no reader, to show the loop's cost; never used with readers */
}

const struct variant variant_none = {
    .name = "none",
    .origin = "no reclamation: the loops by themselves; readers are not waited for",
    .called_at_once = true,
    .call = none_call,
};
