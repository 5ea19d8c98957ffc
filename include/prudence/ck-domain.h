/* SPDX-License-Identifier: MIT */
/*
 * A domain whose grace periods are those of Concurrency Kit's epochs, for programs that keep
 * ck_epoch for reading. Objects of caches that name the domain are handed out again when the
 * readers that could hold them have ended their sections. Nothing of ck_epoch_call is used, so no
 * thread has to poll a record.
 *
 *     static ck_epoch_t epoch;
 *     static __thread ck_epoch_record_t *record;
 *     static ck_epoch_record_t *own_record(void) { return record; }
 *     static const struct prudence_ck_readers readers = {&epoch, own_record};
 *
 *     domain = prudence_ck_domain_create("epochs", &readers);
 *
 * Header only, and for C, as <ck_epoch.h> is. A thread of the library waits for epochs when
 * a thread needs a grace period. After fork the child must end the sections of threads that it does
 * not have. Their records stay active, and the child would wait for them.
 */
#ifndef PRUDENCE_CK_DOMAIN_H
#define PRUDENCE_CK_DOMAIN_H

#include <prudence/rcu.h> /* first */

#include <ck_epoch.h>
#include <sched.h>
#include <string.h>

/* Must live as long as the domain. */
struct prudence_ck_readers {
    ck_epoch_t *epoch;
    /*
     * Returns the record of the calling thread, or NULL if it has none. Threads inside a section of
     * that record are recognized: nothing waits there.
     */
    ck_epoch_record_t *(*record)(void);
};

static inline const struct prudence_ck_readers *prudence_ck_readers_of_(void *context)
{
    return (const struct prudence_ck_readers *)context;
}

/* Called again and again while a reader is blocking, which may want this CPU. */
static inline void prudence_ck_yield_(ck_epoch_t *epoch, ck_epoch_record_t *reader, void *context)
{
    (void)epoch;
    (void)reader;
    (void)context;
    sched_yield();
}

static inline void prudence_ck_synchronize_(void *context)
{
    ck_epoch_synchronize_wait(prudence_ck_readers_of_(context)->epoch, prudence_ck_yield_, NULL);
}

static inline bool prudence_ck_read_lock_held_(void *context)
{
    const ck_epoch_record_t *record = prudence_ck_readers_of_(context)->record();

    return record && record->active != 0;
}

/*
 * Makes the domain. Errors and destruction are as for prudence_domain_create_external.
 */
static inline struct prudence_domain *
prudence_ck_domain_create(const char *name, const struct prudence_ck_readers *readers)
{
    struct prudence_domain_ops ops;

    memset(&ops, 0, sizeof ops);
    ops.size = sizeof ops;
    ops.synchronize = prudence_ck_synchronize_;
    ops.read_lock_held = prudence_ck_read_lock_held_;
    return prudence_domain_create_external(name, &ops, (void *)(uintptr_t)readers);
}

#endif /* PRUDENCE_CK_DOMAIN_H */
