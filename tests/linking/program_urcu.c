/* SPDX-License-Identifier: MIT */
/*
 * A program for liburcu, built on this library's headers of the same names. A writer replaces an
 * object, and frees the old one in each way that liburcu has, while readers read it. Built with
 * ThreadSanitizer by test_thread_sanitizer.py; the library is not.
 *
 *   program_urcu FLAVOUR          no race; FLAVOUR: memb, qsbr, bp
 *   program_urcu FLAVOUR race     and each object is written once more when readers can find it
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <urcu/urcu-bp.h>
#include <urcu/urcu-memb.h>
#include <urcu/urcu-qsbr.h>

#include <urcu/pointer.h>

#define READERS 2
#define ROUNDS  200

struct object {
    unsigned long value, copy;
    struct rcu_head head;
};

static struct object *current;
static int stop;
static unsigned long rounds; /* of all readers; atomic */

static void check(const struct object *object)
{
    if (object && object->value != object->copy)
        abort();
}

static void read_memb(void)
{
    urcu_memb_read_lock();
    check(rcu_dereference(current));
    if (!urcu_memb_read_ongoing())
        abort();
    urcu_memb_read_unlock();
}

static void read_qsbr(void)
{
    check(rcu_dereference(current));
    urcu_qsbr_quiescent_state();
    check(rcu_dereference(current));
    if (!urcu_qsbr_read_ongoing())
        abort();
    urcu_qsbr_thread_offline();
    urcu_qsbr_thread_online();
}

static void read_bp(void)
{
    urcu_bp_read_lock();
    check(rcu_dereference(current));
    urcu_bp_read_unlock();
}

static void nothing(void)
{
}

static const struct flavour {
    const char *name;
    void (*begin)(void), (*read)(void), (*end)(void);
    void (*synchronize)(void), (*barrier)(void);
    void (*call)(struct rcu_head *head, void (*func)(struct rcu_head *head));
} flavours[] = {
    {"memb", urcu_memb_register_thread, read_memb, urcu_memb_unregister_thread,
     urcu_memb_synchronize_rcu, urcu_memb_barrier, urcu_memb_call_rcu},
    {"qsbr", urcu_qsbr_register_thread, read_qsbr, urcu_qsbr_unregister_thread,
     urcu_qsbr_synchronize_rcu, urcu_qsbr_barrier, urcu_qsbr_call_rcu},
    {"bp", nothing, read_bp, nothing, urcu_bp_synchronize_rcu, urcu_bp_barrier, urcu_bp_call_rcu},
};

static const struct flavour *chosen;

static void let_go(struct rcu_head *head)
{
    struct object *object = (struct object *)((char *)head - offsetof(struct object, head));

    object->value = object->copy = 0;
    free(object);
}

static void replace(unsigned long round, bool races)
{
    struct object *fresh = malloc(sizeof *fresh), *old;

    if (!fresh)
        abort();
    fresh->value = fresh->copy = round;
    old = rcu_xchg_pointer(&current, fresh);
    if (races)
        fresh->value = fresh->copy = round;
    if (!old)
        return;
    if (round % 2) {
        chosen->call(&old->head, let_go);
        return;
    }
    chosen->synchronize();
    let_go(&old->head);
}

static void *read_all(void *unused)
{
    chosen->begin();
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        chosen->read();
        __atomic_fetch_add(&rounds, 1, __ATOMIC_RELAXED);
    }
    chosen->end();
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t readers[READERS];

    for (unsigned i = 0; i < sizeof flavours / sizeof flavours[0]; i++)
        if (argc > 1 && !strcmp(argv[1], flavours[i].name))
            chosen = &flavours[i];
    if (!chosen)
        abort();
    for (unsigned i = 0; i < READERS; i++)
        if (pthread_create(&readers[i], NULL, read_all, NULL))
            abort();
    for (unsigned long round = 0; round < ROUNDS; round++) {
        unsigned long until = __atomic_load_n(&rounds, __ATOMIC_RELAXED) + READERS;

        replace(round, argc > 2);
        while (round % 20 == 0 && __atomic_load_n(&rounds, __ATOMIC_RELAXED) < until)
            usleep(10); /* lets the readers have this CPU */
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < READERS; i++)
        pthread_join(readers[i], NULL);
    chosen->barrier();
    puts("done");
    return 0;
}
