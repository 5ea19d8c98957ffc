/* SPDX-License-Identifier: MIT */
/*
 * A program that fills a defer queue of DPDK, lets the queue reclaim, and deletes the queue. Prints
 * how many objects the queue took, refused, and freed within enqueue.
 */
#include <rte_eal.h>
#include <rte_rcu_qsbr.h>
#include <stdio.h>
#include <stdlib.h>

#define BYTES  1000
#define FILL   1000
#define REPORT 100

static unsigned taken, refused, freed;

static void end(void *unused, void *elements, unsigned count)
{
    void **objects = elements;

    (void)unused;
    for (unsigned i = 0; i < count; i++)
        free(objects[i]);
    freed += count;
}

static void defer(struct rte_rcu_qsbr_dq *queue)
{
    void *object = malloc(BYTES);

    if (!object)
        abort();
    if (rte_rcu_qsbr_dq_enqueue(queue, &object)) {
        free(object);
        refused++;
    } else {
        taken++;
    }
}

int main(int count, char **words)
{
    struct rte_rcu_qsbr_dq_parameters wanted = {
        .name = "queue", .size = 8, .esize = sizeof(void *), .max_reclaim_size = 4, .free_fn = end};
    struct rte_rcu_qsbr_dq *queue;
    unsigned reclaimed, pending, available;

    (void)words;
    if (rte_eal_init(count, words) < 0)
        return 77;
    wanted.v = aligned_alloc(RTE_CACHE_LINE_SIZE, rte_rcu_qsbr_get_memsize(1));
    if (!wanted.v || rte_rcu_qsbr_init(wanted.v, 1) || rte_rcu_qsbr_thread_register(wanted.v, 0))
        abort();
    rte_rcu_qsbr_thread_online(wanted.v, 0);
    queue = rte_rcu_qsbr_dq_create(&wanted);
    if (!queue)
        abort();
    for (int i = 0; i < FILL; i++)
        defer(queue);
    for (int i = 0; i < REPORT; i++) {
        rte_rcu_qsbr_quiescent(wanted.v, 0);
        defer(queue);
    }
    printf("%u %u %u", taken, refused, freed);
    rte_rcu_qsbr_thread_offline(wanted.v, 0);
    rte_rcu_qsbr_synchronize(wanted.v, RTE_QSBR_THRID_INVALID);
    if (rte_rcu_qsbr_dq_reclaim(queue, 1, &reclaimed, &pending, &available) ||
        rte_rcu_qsbr_dq_delete(queue))
        abort();
    printf(" %u %u %u\n", reclaimed, pending, available);
    return 0;
}
