/* SPDX-License-Identifier: MIT */
/*
 * The functions that the headers of <prudence/urcu-compat/> call: liburcu's callbacks, workers and
 * deferred calls on a domain. Programs include those headers under liburcu's names instead
 * (docs/how-to/liburcu.md). This header is private to them, and may change with them.
 *
 * `domain` names a flavour. NULL is the default domain (memb, mb, signal, bp), and
 * prudence_urcu_qsbr() is the qsbr one. A function without a comment does the same as liburcu's
 * function of that name.
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

/* Has the layout of struct prudence_head, and of liburcu's. */
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

/* Returns the domain of the qsbr flavour, made at the first call. */
PRUDENCE_API struct prudence_domain *prudence_urcu_qsbr(void);

/*
 * Returns the same domain, and asks for it once in each source that includes this. The domain lives
 * as long as the process.
 */
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

/*
 * This thread's word in that domain. Until the thread is first online there, a word that belongs to
 * no thread and is 0.
 */
PRUDENCE_API extern PRUDENCE_THREAD_LOCAL struct prudence_reader *prudence_urcu_qsbr_self
    __attribute__((tls_model("initial-exec")));

/*
 * Work like prudence_qsbr_is_online and prudence_qsbr_quiescent for that domain. The domain is
 * never destroyed, so the word belongs to this thread, and names the domain, as long as the pointer
 * is there. Nothing else must be checked.
 */
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

/*
 * Waits for a grace period. Inside a section of its own flavour (of any domain, for qsbr) reports
 * this and aborts. In a handler of pthread_atfork that runs between the library's own, does so if a
 * reader stays for the option wait_max (at least 500 ms). A thread that is online in qsbr may wait
 * for the other flavours, and stays online.
 */
PRUDENCE_API void prudence_urcu_synchronize(struct prudence_domain *domain);

PRUDENCE_API void prudence_urcu_call(struct prudence_domain *domain, struct rcu_head *head,
                                     void (*func)(struct rcu_head *head));
/*
 * Waits for the callbacks of all workers of the flavour. Does not wait, and reports the place, in a
 * callback or a destructor, where prudence_urcu_synchronize would abort, and in a handler of
 * pthread_atfork that runs between the library's own, because no callback runs then. The same
 * applies to _defer_barrier, and to _free and _free_all, which wait for running callbacks; refused,
 * they leave everything as it is.
 */
PRUDENCE_API void prudence_urcu_barrier(struct prudence_domain *domain);

/*
 * Makes a worker. Returns NULL with errno if there is no memory. With RT the worker polls, so
 * no thread needs to wake it.
 */
PRUDENCE_API struct call_rcu_data *prudence_urcu_create(struct prudence_domain *domain,
                                                        unsigned long flags, int cpu_affinity);
/*
 * A thread that is online in qsbr stays online, unless a callback of the worker runs: then it is
 * offline until that has returned. (With liburcu the two may wait for each other.)
 */
PRUDENCE_API void prudence_urcu_free(struct call_rcu_data *worker);
PRUDENCE_API struct call_rcu_data *prudence_urcu_default(struct prudence_domain *domain);
PRUDENCE_API struct call_rcu_data *prudence_urcu_of_cpu(struct prudence_domain *domain, int cpu);
PRUDENCE_API struct call_rcu_data *prudence_urcu_of_thread(struct prudence_domain *domain);
PRUDENCE_API struct call_rcu_data *prudence_urcu_current(struct prudence_domain *domain);
PRUDENCE_API void prudence_urcu_set_thread(struct prudence_domain *domain,
                                           struct call_rcu_data *worker);
/* Returns 0, -EINVAL or -EEXIST. Then errno is EINVAL or EEXIST, too. */
PRUDENCE_API int prudence_urcu_set_cpu(struct prudence_domain *domain, int cpu,
                                       struct call_rcu_data *worker);
PRUDENCE_API int prudence_urcu_create_all(struct prudence_domain *domain, unsigned long flags);
PRUDENCE_API void prudence_urcu_free_all(struct prudence_domain *domain);
/* Returns the worker's pthread_t; waits until there is one. */
PRUDENCE_API unsigned long prudence_urcu_thread(struct call_rcu_data *worker);
struct urcu_atfork;

/*
 * Register handlers that stop a data structure's own threads for a fork (liburcu-cds). Every fork
 * calls them.
 */
PRUDENCE_API void prudence_urcu_atfork_register(struct urcu_atfork *atfork);
PRUDENCE_API void prudence_urcu_atfork_unregister(struct urcu_atfork *atfork);
/*
 * Stops these threads, however long that takes (a fork waits wait_max at most), until
 * after_fork_parent, or in the child. Not needed before a fork. Not for use inside a section. In a
 * handler of pthread_atfork that runs between the library's own, stops nothing, and reports it if
 * the fork has not stopped them.
 */
PRUDENCE_API void prudence_urcu_before_fork(void);
PRUDENCE_API void prudence_urcu_after_fork_parent(void);
/* Starts, in the child of a fork, the workers that have something to do. */
PRUDENCE_API void prudence_urcu_after_fork_child(struct prudence_domain *domain);

PRUDENCE_API void prudence_urcu_defer(struct prudence_domain *domain, void (*function)(void *p),
                                      void *p);
PRUDENCE_API void prudence_urcu_defer_barrier(struct prudence_domain *domain);

/*
 * Used by objects that were compiled with liburcu's own <urcu-pointer.h>. Each RCU library of
 * liburcu has these. Here libprudence-urcu has them (-lprudence-urcu), and libprudence has not.
 * They never wait, may be called anywhere, and cost a call and one atomic access.
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
