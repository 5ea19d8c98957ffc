/* SPDX-License-Identifier: MIT */
/*
 * Objects reach readers by the small structures and by what headers inline: a handle that is swapped in both ways, a log, a stack, reference counts, a split
 * counter, lists of both kinds, names that are renamed, and grace periods that are polled for. One at a time, because order that one makes would do for
 * the others. Built with ThreadSanitizer by test_thread_sanitizer.py; the library is not.
 *
 *   program_small NAME          no race
 *   program_small NAME race     and each object is written once more when readers can find it
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <prudence/counter.h>
#include <prudence/hash_rename.h>
#include <prudence/log.h>
#include <prudence/poll.h>
#include <prudence/prudence.h>
#include <prudence/rcu.h>
#include <prudence/rcuhlist.h>
#include <prudence/rculist.h>
#include <prudence/ref.h>
#include <prudence/stack.h>
#include <prudence/swap.h>

#define READERS 2
#define ROUNDS  400
#define KEYS    16

struct object {
    struct prudence_hash_name name;
    struct prudence_stack_node stack_node;
    struct prudence_list link;
    struct prudence_hlist_node hlink;
    struct prudence_ref references;
    unsigned long key, value, copy;
};

static bool races;
static int stop;
static unsigned long rounds; /* of all readers; atomic */

static struct object *make(unsigned long key)
{
    struct object *object = prudence_malloc(sizeof *object);

    if (!object)
        abort();
    object->key = key;
    object->value = object->copy = key + 1;
    prudence_hash_name_init(&object->name);
    prudence_ref_init(&object->references, 1);
    return object;
}

static void touch(struct object *object)
{
    if (races)
        object->value = object->copy = object->key + 1;
}

static void check(const struct object *object)
{
    if (object && (object->value != object->copy || object->value != object->key + 1))
        abort();
}

/* --------------------------------------------------------------------------------------------- swap */

static struct prudence_swap handle;

static int transfer(void *old, void *fresh, void *context)
{
    struct object *from = old, *to = fresh;

    (void)context;
    check(from);
    from->value = from->copy = 0; /* nobody has it */
    to->value = to->copy = to->key + 1;
    return 0;
}

static void update_swap(unsigned long round)
{
    struct object *fresh = make(round);
    void *old;

    if (round % 2) {
        old = prudence_swap_exchange(&handle, fresh);
        touch(fresh);
        check(old);
        prudence_free_deferred(old);
        return;
    }
    if (prudence_swap_transfer(&handle, fresh, &old, transfer, NULL, NULL))
        prudence_free(fresh);
    else
        touch(fresh);
    prudence_free(old);
}

static void read_swap(unsigned long round)
{
    (void)round;
    check(prudence_swap_get(&handle));
}

/* ---------------------------------------------------------------------------------------------- log */

static struct prudence_log *log_of_all;

static void write_out(void *context, const void *entries, size_t bytes)
{
    const struct entry {
        unsigned long value, copy;
    } *entry = entries;

    (void)context;
    for (size_t i = 0; i < bytes / sizeof *entry; i++)
        if (entry[i].value != entry[i].copy)
            abort();
}

static void update_log(unsigned long round)
{
    (void)round;
    if (prudence_log_flush(log_of_all, write_out, NULL))
        abort();
}

static void read_log(unsigned long round)
{
    unsigned long *entry = prudence_log_reserve(log_of_all, 2 * sizeof *entry);

    if (entry)
        entry[0] = entry[1] = round;
}

/* A reader writes into its place when its section is over, and has no other section that could make order. */
static void read_log_late(void)
{
    unsigned long *entry;

    prudence_read_lock();
    entry = prudence_log_reserve(log_of_all, 2 * sizeof *entry);
    prudence_read_unlock();
    __atomic_fetch_add(&rounds, 1, __ATOMIC_RELAXED);
    if (entry)
        entry[0] = entry[1] = 1;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
        usleep(10); /* the readers may want this CPU */
}

/* -------------------------------------------------------------------------------- stack and references */

static struct prudence_stack stack;

static void update_stack(unsigned long round)
{
    struct prudence_stack_node *all, *below;
    struct object *object = make(round);

    prudence_stack_push(&stack, &object->stack_node);
    touch(object);
    if (round % 50)
        return;
    for (all = prudence_stack_take_all(&stack); all; all = below) {
        below = prudence_stack_below(all);
        object = prudence_stack_entry(all, struct object, stack_node);
        check(object);
        prudence_free_deferred(object);
    }
}

static void read_stack(unsigned long round)
{
    struct prudence_stack_node *node = prudence_stack_pop(&stack);
    struct object *object = node ? prudence_stack_entry(node, struct object, stack_node) : NULL;

    (void)round;
    check(object);
    if (object)
        object->value = 0; /* the one that popped it owns it */
    prudence_free_deferred(object);
}

static struct object *counted;

static void let_go(struct object *object)
{
    if (!object || !prudence_ref_put(&object->references))
        return;
    check(object);
    object->value = object->copy = object->key + 1;
    prudence_free_deferred(object);
}

static void update_ref(unsigned long round)
{
    struct object *fresh = make(round), *old = counted;

    prudence_assign_pointer(counted, fresh);
    touch(fresh);
    let_go(old);
}

static void read_ref(unsigned long round)
{
    struct object *object = prudence_dereference(counted);

    (void)round;
    if (object && prudence_ref_get_unless_zero(&object->references)) {
        check(object);
        let_go(object);
    }
}

/* --------------------------------------------------------------------------------------------- lists */

static struct prudence_list list;
static struct prudence_hlist_head hlist;

static void update_list(unsigned long round)
{
    struct object *fresh = make(round), *old = NULL;

    if (!prudence_list_empty(&list))
        old = prudence_list_entry(list.next, struct object, link);
    if (!old || round % 8)
        prudence_list_add_tail_rcu(&fresh->link, &list);
    else
        prudence_list_replace_rcu(&old->link, &fresh->link);
    touch(fresh);
    if (!old || round % KEYS == 1)
        return;
    if (round % 8)
        prudence_list_del_rcu(&old->link);
    prudence_free_deferred(old);
}

static void read_list(unsigned long round)
{
    struct object *object;

    (void)round;
    prudence_list_for_each_entry_rcu(object, &list, link) check(object);
}

static void update_hlist(unsigned long round)
{
    struct object *fresh = make(round), *old = NULL;

    if (!prudence_hlist_empty(&hlist))
        old = prudence_hlist_entry(hlist.first, struct object, hlink);
    if (!old || round % 8)
        prudence_hlist_add_head_rcu(&fresh->hlink, &hlist);
    else
        prudence_hlist_replace_rcu(&old->hlink, &fresh->hlink);
    touch(fresh);
    if (!old || round % KEYS == 1)
        return;
    if (round % 8)
        prudence_hlist_del_rcu(&old->hlink);
    prudence_free_deferred(old);
}

static void read_hlist(unsigned long round)
{
    struct object *object;

    (void)round;
    prudence_hlist_for_each_entry_rcu(object, &hlist, hlink) check(object);
}

/* --------------------------------------------------------------------------------------------- names */

static struct prudence_hash *names;

static bool has_key(const struct prudence_hash_node *node, const void *key)
{
    return prudence_hash_entry(node, const struct object, name.node)->key ==
           *(const unsigned long *)key;
}

static void update_names(unsigned long round)
{
    unsigned long from = round % KEYS, to = (round + 1) % KEYS;
    struct prudence_hash_name *replaced = NULL, *found;
    struct object *fresh = make(to), *old;
    struct prudence_hash_node *before;

    prudence_read_lock();
    found = prudence_hash_lookup_name(names, from, has_key, &from);
    if (!found) {
        before = prudence_hash_add_replace(names, to, has_key, &to, &fresh->name.node);
        old = before ? prudence_hash_entry(before, struct object, name.node) : NULL;
    } else {
        old = prudence_hash_entry(found, struct object, name);
        if (prudence_hash_rename_replace(names, found, names, to, has_key, &to, &fresh->name,
                                         &replaced))
            abort();
    }
    touch(fresh);
    prudence_read_unlock();
    prudence_free_deferred(old);
    if (replaced)
        prudence_free_deferred(prudence_hash_entry(replaced, struct object, name));
}

static void read_names(unsigned long round)
{
    unsigned long key = round % KEYS;
    struct prudence_hash_name *name = prudence_hash_lookup_name(names, key, has_key, &key);

    check(name ? prudence_hash_entry(name, struct object, name) : NULL);
}

/* ------------------------------------------------------------------------------------- what is polled for */

static struct object *polled;
static struct prudence_counter *counter;

static void wait_by(unsigned long way)
{
    prudence_gp_t state = prudence_gp_start_poll();
    prudence_gp_full_t full;

    switch (way) {
    case 0:
        while (!prudence_gp_poll_state(state))
            ;
        return;
    case 1:
        prudence_gp_cond_synchronize(state);
        return;
    case 2:
        prudence_gp_start_poll_full(&full);
        while (!prudence_gp_poll_state_full(&full))
            ;
        return;
    case 3:
        prudence_gp_get_state_full(&full);
        prudence_gp_cond_synchronize_full(&full);
        return;
    default:
        prudence_synchronize();
    }
}

/* The C library's, which knows nothing of readers: only what is polled makes order. */
static void update_poll(unsigned long round)
{
    struct object *fresh = malloc(sizeof *fresh), *old = polled;

    if (!fresh)
        abort();
    fresh->key = round;
    fresh->value = fresh->copy = round + 1;
    prudence_assign_pointer(polled, fresh);
    touch(fresh);
    wait_by(round % 5);
    if (old)
        memset(old, 0, sizeof *old);
    free(old);
    prudence_counter_add(counter, 1);
}

static void read_poll(unsigned long round)
{
    (void)round;
    check(prudence_dereference(polled));
    prudence_counter_add(counter, -1);
    prudence_counter_sum(counter);
}

/* ----------------------------------------------------------------------------------------------- all */

static const struct structure {
    const char *name;
    void (*update)(unsigned long round);
    void (*read)(unsigned long round);
} structures[] = {
    {"swap", update_swap, read_swap},    {"log", update_log, read_log},
    {"stack", update_stack, read_stack}, {"ref", update_ref, read_ref},
    {"list", update_list, read_list},    {"hlist", update_hlist, read_hlist},
    {"names", update_names, read_names}, {"poll", update_poll, read_poll},
};

static const struct structure *chosen;

static bool is_log_race(void)
{
    return races && chosen->read == read_log;
}

static void *read_all(void *number)
{
    unsigned long round = (unsigned long)(uintptr_t)number;

    if (is_log_race())
        read_log_late();
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        prudence_read_lock();
        chosen->read(round++);
        prudence_read_unlock();
        __atomic_fetch_add(&rounds, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

static void wait_for_readers(unsigned long more)
{
    unsigned long until = __atomic_load_n(&rounds, __ATOMIC_RELAXED) + more;

    while (__atomic_load_n(&rounds, __ATOMIC_RELAXED) < until)
        usleep(10); /* the readers may want this CPU */
}

/* Readers see something of each step; where there is a race, of each object. */
static void update_all(void)
{
    const unsigned step = races ? 2 : 40;

    while (__atomic_load_n(&rounds, __ATOMIC_RELAXED) < READERS)
        usleep(10); /* the readers may want this CPU */
    for (unsigned long round = 0; round < (is_log_race() ? 1
                                           : races       ? ROUNDS / 4
                                                         : ROUNDS);
         round++) {
        chosen->update(round);
        if (round % step == 0 && !is_log_race())
            wait_for_readers(2 * READERS);
    }
}

int main(int argc, char **argv)
{
    pthread_t readers[READERS];

    races = argc > 2;
    for (unsigned i = 0; i < sizeof structures / sizeof structures[0]; i++)
        if (argc > 1 && !strcmp(argv[1], structures[i].name))
            chosen = &structures[i];
    log_of_all = prudence_log_create(1 << 12, NULL);
    names = prudence_hash_create("names", NULL);
    counter = prudence_counter_create();
    prudence_list_init(&list);
    prudence_hlist_init(&hlist);
    prudence_swap_init(&handle, make(0));
    if (!chosen || !log_of_all || !names || !counter)
        abort();
    for (uintptr_t i = 0; i < READERS; i++)
        if (pthread_create(&readers[i], NULL, read_all, (void *)i))
            abort();
    update_all();
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < READERS; i++)
        pthread_join(readers[i], NULL);
    puts("done");
    return 0;
}
