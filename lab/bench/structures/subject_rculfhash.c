/* SPDX-License-Identifier: MIT */
/* liburcu's lock-free resizable table, as the documentation recommends: split counters,
 * automatic resizes, call_rcu. What is measured is a table that has grown: settle() makes as many
 * buckets as there are objects, because the automatic resizes may have stopped by then. */
#define RCU_MEMBARRIER
#define _LGPL_SOURCE /* the read side inlined, as ours is */
#include <urcu.h>
#include <urcu/rculfhash.h>

#include <stdlib.h>

#include "keys.h"

struct object {
    struct cds_lfht_node node;
    bench_key key;
    uint64_t value;
    struct rcu_head head;
};

static struct cds_lfht *table;

/* Automatic resizes may stop for good during the filling, which with one bucket then takes minutes.
 * The thread that adds sets resize_initiated after it has queued the resize. If the worker has
 * ended that resize before, the flag stays set, and no later resize begins. */
#define BUCKETS_AT_FIRST 4096

static void start(void)
{
    table = cds_lfht_new(BUCKETS_AT_FIRST, 1, 0, CDS_LFHT_AUTO_RESIZE | CDS_LFHT_ACCOUNTING, NULL);
    if (!table)
        abort();
}

static void thread_start(void)
{
    rcu_register_thread();
}

static void thread_end(void)
{
    rcu_unregister_thread();
}

/* Makes as many buckets as objects, as ours has. cds_lfht_resize() also clears resize_initiated, so
 * automatic resizes go on. */
static void settle(void)
{
    long before, after;
    unsigned long objects, buckets = 1;

    rcu_barrier();
    rcu_read_lock();
    cds_lfht_count_nodes(table, &before, &objects, &after);
    rcu_read_unlock();
    while (buckets < objects)
        buckets *= 2;
    cds_lfht_resize(table, buckets);
}

static int has_key(struct cds_lfht_node *node, const void *key)
{
    return key_same(&caa_container_of(node, struct object, node)->key, key);
}

static void free_object(struct rcu_head *head)
{
    free(caa_container_of(head, struct object, head));
}

static inline void read_begin(void)
{
    rcu_read_lock();
}

static inline void read_end(void)
{
    rcu_read_unlock();
}

static inline bool find(uint64_t number, uint64_t *value)
{
    const bench_key key = key_of(number);
    struct cds_lfht_iter iter;
    struct cds_lfht_node *node;

    cds_lfht_lookup(table, key_hash(&key), has_key, &key, &iter);
    node = cds_lfht_iter_get_node(&iter);
    if (node)
        *value = caa_container_of(node, struct object, node)->value;
    return node;
}

static inline bool flip(uint64_t number)
{
    const bench_key key = key_of(number);
    const uint64_t hash = key_hash(&key);
    struct cds_lfht_iter iter;
    struct cds_lfht_node *node;
    struct object *object;
    bool removed = false;

    rcu_read_lock();
    cds_lfht_lookup(table, hash, has_key, &key, &iter);
    node = cds_lfht_iter_get_node(&iter);
    if (node)
        removed = !cds_lfht_del(table, node);
    rcu_read_unlock();
    if (node) {
        if (removed)
            call_rcu(&caa_container_of(node, struct object, node)->head, free_object);
        return false;
    }
    object = malloc(sizeof *object);
    object->key = key;
    object->value = number;
    cds_lfht_node_init(&object->node);
    rcu_read_lock();
    node = cds_lfht_add_unique(table, hash, has_key, &key, &object->node);
    rcu_read_unlock();
    if (node != &object->node)
        free(object);
    return node == &object->node;
}

#include "loop.h"

const struct subject SUBJECT(rculfhash) = {"rculfhash",
                                           "liburcu's cds_lfht, memb flavor, its objects from "
                                           "malloc and to call_rcu; resized after the filling",
                                           .start = start,
                                           .thread_start = thread_start,
                                           .fill = fill,
                                           .settle = settle,
                                           .run = run,
                                           .thread_end = thread_end};
