/* SPDX-License-Identifier: MIT */
/*
 * What stands behind the headers of <prudence/urcu-compat/>: liburcu's callbacks, workers and deferred
 * calls on a domain. Programs include those headers under liburcu's names instead (docs/how-to/liburcu.md);
 * this one is theirs, and may change with them.
 *
 * `domain` names a flavour: NULL is the default domain (memb, mb, signal, bp), and
 * prudence_urcu_qsbr() is the one of qsbr. Functions without a comment mean what liburcu's of that name
 * means.
 */
#ifndef PRUDENCE_URCU_COMPAT_H
#define PRUDENCE_URCU_COMPAT_H

#include <prudence/call.h>
#include <prudence/language.h>
#include <prudence/poll.h>
#include <prudence/prudence.h>
#include <prudence/rcu.h>

#ifdef __cplusplus
extern "C" {
#endif

struct call_rcu_data;

/* Laid out as struct prudence_head, and as liburcu's. */
struct rcu_head {
    struct {
        void *prudence_next;
    } next;
    void (*func)(struct rcu_head *head);
};

#define URCU_CALL_RCU_RT      (1U << 0)
#define URCU_CALL_RCU_RUNNING (1U << 1)
#define URCU_CALL_RCU_STOP    (1U << 2)
#define URCU_CALL_RCU_STOPPED (1U << 3)
#define URCU_CALL_RCU_PAUSE   (1U << 4)
#define URCU_CALL_RCU_PAUSED  (1U << 5)

/* The domain of the qsbr flavour, made at first. */
PRUDENCE_API struct prudence_domain *prudence_urcu_qsbr(void);

/* The same, asked for once by each source that includes this: it lives as long as the process. */
static inline struct prudence_domain *prudence_urcu_qsbr_known(void)
{
    static struct prudence_domain *known;
    struct prudence_domain *domain = __atomic_load_n(&known, __ATOMIC_ACQUIRE);

    if (__builtin_expect(!domain, 0)) {
        domain = prudence_urcu_qsbr();
        __atomic_store_n(&known, domain, __ATOMIC_RELEASE);
    }
    return domain;
}

/* This thread's word in that domain; before it was first online there, one that is nobody's, and 0. */
PRUDENCE_API extern PRUDENCE_THREAD_LOCAL struct prudence_reader *prudence_urcu_qsbr_self
    __attribute__((tls_model("initial-exec")));

/* As prudence_qsbr_is_online and prudence_qsbr_quiescent of that domain. It is never destroyed, so the word
 * is this thread's as long as the pointer is there, and names the domain: nothing else has to be asked. */
static inline bool prudence_urcu_qsbr_is_online(void)
{
    return __atomic_load_n(&prudence_urcu_qsbr_self->word, __ATOMIC_RELAXED) != 0;
}

static inline void prudence_urcu_qsbr_quiescent(void)
{
    const struct prudence_reader *self = prudence_urcu_qsbr_self;
    const struct prudence_domain_shared *shared =
        prudence_domain_shared_of(__atomic_load_n(&self->domain, __ATOMIC_RELAXED));

    if (__builtin_expect(__atomic_load_n(&self->word, __ATOMIC_RELAXED) ==
                             (__atomic_load_n(&shared->sequence, __ATOMIC_ACQUIRE) | 1),
                         1))
        return;
    prudence_qsbr_announce(prudence_urcu_qsbr());
}

/* Inside a section of its own flavour (of any domain, for qsbr): reported, and the process aborts. A thread
 * that is online in qsbr may wait for the other flavours; it stays online. */
PRUDENCE_API void prudence_urcu_synchronize(struct prudence_domain *domain);

PRUDENCE_API void prudence_urcu_call(struct prudence_domain *domain, struct rcu_head *head,
                                     void (*func)(struct rcu_head *head));
/*
 * Waits for the callbacks of all workers of the flavour. Does not wait, and reports the place, in a callback or a
 * destructor, and where prudence_urcu_synchronize would abort. The same applies to _defer_barrier; and to
 * _free and _free_all, which wait for callbacks that run, and then leave everything as it is.
 */
PRUDENCE_API void prudence_urcu_barrier(struct prudence_domain *domain);

/* NULL, with errno, when there is no memory. RT: the worker polls, so that nobody needs to wake it. */
PRUDENCE_API struct call_rcu_data *prudence_urcu_create(struct prudence_domain *domain,
                                                        unsigned long flags, int cpu_affinity);
PRUDENCE_API void prudence_urcu_free(struct call_rcu_data *worker);
PRUDENCE_API struct call_rcu_data *prudence_urcu_default(struct prudence_domain *domain);
PRUDENCE_API struct call_rcu_data *prudence_urcu_of_cpu(struct prudence_domain *domain, int cpu);
PRUDENCE_API struct call_rcu_data *prudence_urcu_of_thread(struct prudence_domain *domain);
PRUDENCE_API struct call_rcu_data *prudence_urcu_current(struct prudence_domain *domain);
PRUDENCE_API void prudence_urcu_set_thread(struct prudence_domain *domain,
                                           struct call_rcu_data *worker);
/* 0, or -1 with errno EINVAL or EEXIST. */
PRUDENCE_API int prudence_urcu_set_cpu(struct prudence_domain *domain, int cpu,
                                       struct call_rcu_data *worker);
PRUDENCE_API int prudence_urcu_create_all(struct prudence_domain *domain, unsigned long flags);
PRUDENCE_API void prudence_urcu_free_all(struct prudence_domain *domain);
/* The worker's pthread_t; waits until there is one. */
PRUDENCE_API unsigned long prudence_urcu_thread(struct call_rcu_data *worker);
struct urcu_atfork;

/* Handlers that stop a data structure's own threads for a fork (liburcu-cds). Every fork calls them. */
PRUDENCE_API void prudence_urcu_atfork_register(struct urcu_atfork *atfork);
PRUDENCE_API void prudence_urcu_atfork_unregister(struct urcu_atfork *atfork);
/* Not needed before a fork. Stops these threads, however long that takes (a fork waits wait_max at most), until
 * after_fork_parent, or the child. Not inside a section. */
PRUDENCE_API void prudence_urcu_before_fork(void);
PRUDENCE_API void prudence_urcu_after_fork_parent(void);
/* After a fork, in the child: starts the workers that have something to do. */
PRUDENCE_API void prudence_urcu_after_fork_child(struct prudence_domain *domain);

PRUDENCE_API void prudence_urcu_defer(struct prudence_domain *domain, void (*function)(void *p),
                                      void *p);
PRUDENCE_API void prudence_urcu_defer_barrier(struct prudence_domain *domain);

/*
 * For binaries that were compiled against liburcu's own <urcu-pointer.h>, where each of its RCU libraries
 * has these.
 */
PRUDENCE_API void *rcu_dereference_sym(void *p);
PRUDENCE_API void *rcu_dereference_sym2(void **p);
PRUDENCE_API void *rcu_set_pointer_sym(void **p, void *v);
PRUDENCE_API void *rcu_xchg_pointer_sym(void **p, void *v);
PRUDENCE_API void *rcu_cmpxchg_pointer_sym(void **p, void *old, void *fresh);

#ifdef __cplusplus
}
#endif

#endif /* PRUDENCE_URCU_COMPAT_H */
