/* SPDX-License-Identifier: MIT */
/*
 * A domain whose grace periods are those of a quiescent-state variable of DPDK, for programs that
 * keep rte_rcu_qsbr for reading. Objects of caches that name the domain are handed out again when
 * every thread that is online has reported a quiescent state. There is no defer queue to size.
 *
 *     static unsigned own_id(void) { return rte_lcore_id(); }
 *     static const struct prudence_dpdk_readers readers = {variable, own_id};
 *
 *     domain = prudence_dpdk_domain_create("lcores", &readers);
 *
 * Header only: libprudence does not know DPDK. Grace periods are started and polled by the threads
 * that allocate and defer, which need not be registered. There is no thread.
 */
#ifndef PRUDENCE_DPDK_DOMAIN_H
#define PRUDENCE_DPDK_DOMAIN_H

#include <prudence/language.h> /* first */
#include <prudence/rcu.h>

#include <rte_rcu_qsbr.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Must live as long as the domain. */
struct prudence_dpdk_readers {
    struct rte_rcu_qsbr *variable;
    /*
     * Returns the number by which the calling thread reports to the variable, or
     * RTE_QSBR_THRID_INVALID if it never does. While a thread is online, nothing waits there,
     * because its own report would be missing.
     */
    unsigned (*thread_id)(void);
};

static inline const struct prudence_dpdk_readers *prudence_dpdk_readers_of_(void *context)
{
    return PRUDENCE_CAST(const struct prudence_dpdk_readers *, context);
}

static inline uint64_t prudence_dpdk_start_poll_(void *context)
{
    return rte_rcu_qsbr_start(prudence_dpdk_readers_of_(context)->variable);
}

static inline bool prudence_dpdk_poll_state_(void *context, uint64_t cookie)
{
    return rte_rcu_qsbr_check(prudence_dpdk_readers_of_(context)->variable, cookie, false) != 0;
}

static inline bool prudence_dpdk_read_lock_held_(void *context)
{
    const struct prudence_dpdk_readers *readers = prudence_dpdk_readers_of_(context);
    unsigned id = readers->thread_id();

    /* Relaxed: this thread alone writes its counter. */
    return id < readers->variable->max_threads &&
           __atomic_load_n(&readers->variable->qsbr_cnt[id].cnt, __ATOMIC_RELAXED) !=
               __RTE_QSBR_CNT_THR_OFFLINE;
}

/*
 * Makes the domain. Errors and destruction are as for prudence_domain_create_external.
 */
static inline struct prudence_domain *
prudence_dpdk_domain_create(const char *name, const struct prudence_dpdk_readers *readers)
{
    struct prudence_domain_ops ops;

    memset(&ops, 0, sizeof ops);
    ops.size = sizeof ops;
    ops.start_poll = prudence_dpdk_start_poll_;
    ops.poll_state = prudence_dpdk_poll_state_;
    ops.read_lock_held = prudence_dpdk_read_lock_held_;
    return prudence_domain_create_external(
        name, &ops, PRUDENCE_CAST(void *, PRUDENCE_CAST(uintptr_t, readers)));
}

#ifdef __cplusplus
}
#endif

#endif /* PRUDENCE_DPDK_DOMAIN_H */
