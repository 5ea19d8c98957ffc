/* SPDX-License-Identifier: MIT */
/*
 * DPDK's cuckoo hash as the programmer's guide configures it for many readers and writers: readers
 * without locks (RW_CONCURRENCY_LF), writers under a lock of DPDK (MULTI_WRITER_ADD), extended
 * buckets, so that no key is refused, DPDK's CRC as the hash, and rte_rcu's QSBR, whose queue gets
 * the removed keys. Keys have a fixed length, and are in the table; the value is in the pointer
 * next to it. A thread is quiescent after each lookup. There is room for a quarter more keys than
 * objects, because keys that wait for readers need places, too.
 */
#include "dpdk.h"

#include <errno.h>
#include <rte_hash.h>
#include <rte_lcore.h>
#include <rte_rcu_qsbr.h>
#include <sched.h>

#include "keys.h"

#define THREADS_MAX 128

static struct rte_hash *table;
static struct rte_rcu_qsbr *readers;
static unsigned threads; /* number of threads that have begun */
static __thread unsigned self;

static void start(void)
{
    const size_t size = rte_rcu_qsbr_get_memsize(THREADS_MAX);

    dpdk_start();
    readers = aligned_alloc(RTE_CACHE_LINE_SIZE, size);
    if (!readers || rte_rcu_qsbr_init(readers, THREADS_MAX))
        abort();
}

/* Registers the thread as an lcore, because the caches of free places belong to lcores. */
static void thread_start(void)
{
    if (rte_lcore_id() == LCORE_ID_ANY && rte_thread_register())
        abort();
    self = __atomic_fetch_add(&threads, 1, __ATOMIC_RELAXED);
    if (rte_rcu_qsbr_thread_register(readers, self))
        abort();
    rte_rcu_qsbr_thread_online(readers, self);
}

static void thread_end(void)
{
    rte_rcu_qsbr_thread_offline(readers, self);
    rte_rcu_qsbr_thread_unregister(readers, self);
}

static inline void read_begin(void)
{
}

static inline void read_end(void)
{
    rte_rcu_qsbr_quiescent(readers, self);
}

static inline bool find(uint64_t number, uint64_t *value)
{
    const bench_key key = key_of(number);
    void *data;

    if (rte_hash_lookup_data(table, &key, &data) < 0)
        return false;
    *value = (uintptr_t)data;
    return true;
}

static inline bool flip(uint64_t number)
{
    const bench_key key = key_of(number);
    int error;

    rte_rcu_qsbr_quiescent(readers, self);
    if (rte_hash_del_key(table, &key) >= 0)
        return false;
    /* All free places wait for a reader that has no CPU. */
    while ((error = rte_hash_add_key_data(table, &key, (void *)(uintptr_t)number)) == -ENOSPC) {
        rte_rcu_qsbr_quiescent(readers, self);
        sched_yield();
    }
    if (error)
        abort();
    return true;
}

#include "loop.h"

static void make_and_fill(uint64_t size)
{
    const struct rte_hash_parameters parameters = {
        .name = "bench",
        .entries = (uint32_t)(size + size / 4),
        .key_len = sizeof(bench_key),
        .socket_id = SOCKET_ID_ANY,
        .extra_flag = RTE_HASH_EXTRA_FLAGS_RW_CONCURRENCY_LF |
                      RTE_HASH_EXTRA_FLAGS_MULTI_WRITER_ADD | RTE_HASH_EXTRA_FLAGS_EXT_TABLE};
    struct rte_hash_rcu_config reclaim = {.v = readers, .mode = RTE_HASH_QSBR_MODE_DQ};

    table = rte_hash_create(&parameters);
    if (!table || rte_hash_rcu_qsbr_add(table, &reclaim))
        abort();
    fill(size);
}

const struct subject SUBJECT(rte_hash) = {
    "rte_hash",
    "DPDK's rte_hash with extended buckets and rte_rcu's QSBR",
    .start = start,
    .thread_start = thread_start,
    .fill = make_and_fill,
    .run = run,
    .thread_end = thread_end};
