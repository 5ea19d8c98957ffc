/* SPDX-License-Identifier: MIT */
/* Readers of one domain that enter and leave as the test says, at most READERS. */
#ifndef TESTS_SUPPORT_TOLD_READERS_H
#define TESTS_SUPPORT_TOLD_READERS_H

#include "gp/user/domain.h"
#include "gp/user/readers.h"
#include "support/actor.h"

static struct prudence_domain *domain;

static struct told_reader {
    struct actor actor;
    void (*step)(void);
    struct reader_slot *slot; /* slot of this reader after the last step */
} readers[READERS];

static int reader_does(void *argument)
{
    struct told_reader *reader = argument;

    reader->step();
    reader->slot = readers_slot_if_any(domain);
    return 0;
}

static void tell(unsigned index, void (*step)(void))
{
    readers[index].step = step;
    does(&readers[index].actor, reader_does, &readers[index]);
}

static void enter(void)
{
    if (domain == &prudence_default)
        prudence_read_lock();
    else if (domain->kind == PRUDENCE_DOMAIN_QSBR)
        prudence_qsbr_online(domain);
    else
        prudence_domain_read_lock(domain);
}

static void leave(void)
{
    if (domain == &prudence_default)
        prudence_read_unlock();
    else if (domain->kind == PRUDENCE_DOMAIN_QSBR)
        prudence_qsbr_offline(domain);
    else
        prudence_domain_read_unlock(domain);
}

static void read_once(void)
{
    enter();
    leave();
}

static void start_readers(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        actor_start(&readers[i].actor);
        tell(i, read_once);
    }
}

static void end_readers(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        actor_end(&readers[i].actor);
}

#endif /* TESTS_SUPPORT_TOLD_READERS_H */
