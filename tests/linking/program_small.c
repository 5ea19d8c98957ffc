/* SPDX-License-Identifier: MIT */
/*
 * Objects reach readers by the small structures and by all that headers inline: a handle that is
 * swapped in both ways, a log, a stack, reference counts, a split counter, lists of both kinds,
 * names that are renamed, objects of one key, ordered maps, and polled grace periods in domains of
 * each kind; while other threads read statistics and the heap. Only one runs at a time,
 * because the order that one makes would hide races of the others. Built with ThreadSanitizer by
 * test_thread_sanitizer.py; the library is not.
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
#include <prudence/hash_values.h>
#include <prudence/heap_walk.h>
#include <prudence/id_table.h>
#include <prudence/inline.h>
#include <prudence/lockfree_hash.h>
#include <prudence/log.h>
#include <prudence/map_values.h>
#include <prudence/poll.h>
#include <prudence/prudence.h>
#include <prudence/rcu.h>
#include <prudence/rcuhlist.h>
#include <prudence/rculist.h>
#include <prudence/ref.h>
#include <prudence/routes.h>
#include <prudence/stack.h>
#include <prudence/stats.h>
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
    struct prudence_map_bytes map_node;
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

/* ----------------------------------------------------------------------------------------- swap */

static struct prudence_swap handle;

static int transfer(void *old, void *fresh, void *context)
{
    struct object *from = old, *to = fresh;

    (void)context;
    check(from);
    from->value = from->copy = 0; /* no thread uses it */
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

/* ------------------------------------------------------------------------------------------ log */

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

/* A reader fills its entry after its section is over, and has no other section that could make
 * order. */
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
        usleep(10); /* lets the readers have this CPU */
}

/* ------------------------------------------------------------------------- stack and references */

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
    struct prudence_stack_node *node =
        prudence_stack_is_empty(&stack) ? NULL : prudence_stack_pop(&stack);
    struct object *object = node ? prudence_stack_entry(node, struct object, stack_node) : NULL;

    (void)round;
    check(object);
    if (object)
        object->value = 0; /* the thread that popped it owns it */
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

    prudence_ref_get(&fresh->references);
    prudence_assign_pointer(counted, fresh);
    touch(fresh);
    if (!prudence_ref_count(&fresh->references))
        abort();
    let_go(fresh);
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

/* ---------------------------------------------------------------------------------------- lists */

static struct prudence_list list, others;
static struct prudence_hlist_head hlist, other_hlist;

/* Moves the element into the list by way of another one, after that list's readers have ended. */
static void splice(struct object *fresh, unsigned long round)
{
    prudence_list_add_rcu(&fresh->link, &others);
    if (round % 2)
        prudence_list_splice_init_rcu(&others, &list, prudence_synchronize);
    else
        prudence_list_splice_tail_init_rcu(&others, &list, prudence_synchronize);
}

static void update_list(unsigned long round)
{
    struct object *fresh = make(round), *old = NULL;

    if (!prudence_list_empty(&list))
        old = prudence_list_entry(list.next, struct object, link);
    if (old && round % 8 == 0)
        prudence_list_replace_rcu(&old->link, &fresh->link);
    else if (round % 8 < 3)
        splice(fresh, round);
    else
        prudence_list_add_tail_rcu(&fresh->link, &list);
    touch(fresh);
    if (!old || round % KEYS == 1)
        return;
    if (round % 8)
        prudence_list_del_rcu(&old->link);
    prudence_free_deferred(old);
}

/* Reads in every possible way. */
static void read_list(unsigned long round)
{
    struct prudence_list *link = prudence_list_first_link_rcu(&list), *each;
    struct object *object;

    prudence_list_for_each_entry_rcu(object, &list, link) check(object);
    prudence_list_for_each_entry_rcu(object, &others, link) check(object);
    prudence_list_for_each_rcu(each, &list) check(prudence_list_entry(each, struct object, link));
    if (link) {
        each = link;
        prudence_list_for_each_continue_rcu(each, &list)
            check(prudence_list_entry(each, struct object, link));
    }
    if (link) {
        check(prudence_list_entry(link, struct object, link));
        link = prudence_list_next_rcu(link);
        if (link != &list && link != &others)
            check(prudence_list_entry(link, struct object, link));
    }
    object = prudence_list_first_or_null_rcu(&list, struct object, link);
    if (!object)
        return;
    if (round % 2)
        prudence_list_for_each_entry_from_rcu(object, &list, link) check(object);
    else
        check(prudence_list_next_or_null_rcu(&list, &object->link, struct object, link));
    object = prudence_list_first_or_null_rcu(&list, struct object, link);
    if (object && round % 2 == 0)
        prudence_list_for_each_entry_continue_rcu(object, &list, link) check(object);
}

/* Takes apart a list that readers cannot find, at the end. */
static void end_list(void)
{
    struct object *object, *following;

    prudence_synchronize();
    prudence_list_for_each_entry_safe(object, following, &list, link)
    {
        check(object);
        prudence_free(object);
    }
    prudence_list_init_rcu(&list);
}

static void add_to_hlist(struct object *fresh, struct object *first, unsigned long round)
{
    prudence_hlist_node_init(&fresh->hlink);
    if (!first)
        prudence_hlist_add_head_rcu(&fresh->hlink, &hlist);
    else if (round % 4 == 1)
        prudence_hlist_add_before_rcu(&fresh->hlink, &first->hlink);
    else if (round % 4 == 2)
        prudence_hlist_add_behind_rcu(&fresh->hlink, &first->hlink);
    else
        prudence_hlist_add_tail_rcu(&fresh->hlink, &hlist);
    if (prudence_hlist_unhashed(&fresh->hlink))
        abort();
}

static void update_hlist(unsigned long round)
{
    struct object *fresh = make(round), *old = NULL;

    if (!prudence_hlist_empty(&hlist))
        old = prudence_hlist_entry(hlist.first, struct object, hlink);
    if (old && round % 8 == 0)
        prudence_hlist_replace_rcu(&old->hlink, &fresh->hlink);
    else
        add_to_hlist(fresh, old, round);
    touch(fresh);
    if (round % 32 == 7)
        prudence_hlists_swap_heads_rcu(&hlist, &other_hlist);
    if (!old || round % KEYS == 1)
        return;
    if (round % 8 == 5)
        prudence_hlist_del_init_rcu(&old->hlink);
    else if (round % 8)
        prudence_hlist_del_rcu(&old->hlink);
    prudence_free_deferred(old);
}

static void read_hlist(unsigned long round)
{
    struct prudence_hlist_node *node = prudence_hlist_first_rcu(&hlist);
    struct object *object;

    prudence_hlist_for_each_entry_rcu(object, &hlist, hlink) check(object);
    prudence_hlist_for_each_entry_rcu(object, &other_hlist, hlink) check(object);
    if (!node)
        return;
    object = prudence_hlist_entry(node, struct object, hlink);
    node = prudence_hlist_next_rcu(node);
    check(node ? prudence_hlist_entry(node, struct object, hlink) : NULL);
    if (round % 2)
        prudence_hlist_for_each_entry_from_rcu(object, hlink) check(object);
    else
        prudence_hlist_for_each_entry_continue_rcu(object, hlink) check(object);
}

/* ---------------------------------------------------------------------------------------- names */

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
        prudence_hash_put(names, to, has_key, &to, &fresh->name.node, &before);
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

    if (!name)
        return;
    /* both answers are right, because it may be renamed at this moment */
    prudence_hash_name_is_there(name);
    check(prudence_hash_entry(name, struct object, name));
}

/* ---------------------------------------------------------------------- many objects of one key */

static struct prudence_lockfree_hash *lockfree;

static uint64_t hash_of(unsigned long round)
{
    return prudence_hash_mix(round % 2);
}

static bool is_in_table(const struct prudence_hash_node *node, const void *key)
{
    return prudence_hash_entry(node, const struct object, name.node)->key % 2 ==
           *(const unsigned long *)key % 2;
}

static void update_twins(unsigned long round)
{
    struct object *fresh = make(round);
    struct prudence_hash_node *old;

    prudence_read_lock();
    old = prudence_hash_lookup(names, hash_of(round), is_in_table, &round);
    prudence_hash_add_duplicate(names, hash_of(round), &fresh->name.node);
    touch(fresh);
    if (round % 8 < 2 || !old || prudence_hash_remove(names, old))
        old = NULL;
    prudence_read_unlock();
    if (old)
        prudence_free_deferred(prudence_hash_entry(old, struct object, name.node));
}

static void read_twins(unsigned long round)
{
    struct prudence_hash_node *node =
        prudence_hash_lookup(names, hash_of(round), is_in_table, &round);

    for (; node; node = prudence_hash_next_duplicate(node, is_in_table, &round))
        check(prudence_hash_entry(node, struct object, name.node));
}

static void update_lockfree_twins(unsigned long round)
{
    struct object *fresh = make(round);
    struct prudence_hash_node *old;

    prudence_read_lock();
    old = prudence_lockfree_hash_lookup(lockfree, hash_of(round), is_in_table, &round);
    prudence_lockfree_hash_add_duplicate(lockfree, hash_of(round), &fresh->name.node);
    touch(fresh);
    if (round % 8 < 2 || !old || prudence_lockfree_hash_remove(lockfree, old))
        old = NULL;
    prudence_read_unlock();
    if (old)
        prudence_free_deferred(prudence_hash_entry(old, struct object, name.node));
}

static void read_lockfree_twins(unsigned long round)
{
    struct prudence_hash_node *node =
        prudence_lockfree_hash_lookup(lockfree, hash_of(round), is_in_table, &round);

    for (; node; node = prudence_lockfree_hash_next_duplicate(node, is_in_table, &round))
        check(prudence_hash_entry(node, struct object, name.node));
}

/* --------------------------------------------------------------------------------- ordered maps */

static struct prudence_map *bytes;
static struct prudence_map_values *numbers;

static struct object *of_bytes(struct prudence_map_node *node)
{
    return node ? prudence_map_entry(node, struct object, map_node.node) : NULL;
}

/* Each object contains its key. */
static void update_bytes(unsigned long round)
{
    struct object *fresh = make(round % KEYS);
    struct prudence_map_node *old;

    prudence_map_set_bytes(&fresh->map_node, &fresh->key, sizeof fresh->key);
    if (prudence_map_put(bytes, &fresh->map_node.node, &old))
        abort();
    touch(fresh);
    prudence_free_deferred(of_bytes(old));
}

static void read_bytes(unsigned long round)
{
    unsigned long key = round % KEYS;
    struct prudence_map_walk walk;
    struct prudence_map_node *node;

    check(of_bytes(prudence_map_lookup_bytes(bytes, &key, sizeof key)));
    prudence_map_for_each_from_bytes(&walk, bytes, &key, sizeof key, node) check(of_bytes(node));
}

static void update_numbers(unsigned long round)
{
    struct object *fresh = make(round % KEYS);
    void *old;

    if (prudence_map_values_put(numbers, fresh->key, fresh, &old))
        abort();
    touch(fresh);
    prudence_free_deferred(old);
}

static void read_numbers(unsigned long round)
{
    struct prudence_map_walk walk;
    struct prudence_map_node *node;

    check(prudence_map_values_get(numbers, round % KEYS));
    prudence_map_for_each_from(&walk, prudence_map_values_nodes(numbers), round % KEYS, node)
        check(prudence_map_values_value(node));
    node = prudence_map_first_from(&walk, prudence_map_values_nodes(numbers), round % KEYS);
    for (; node; node = prudence_map_next(&walk))
        check(prudence_map_values_value(node));
}

/* --------------------------------------------------------------------------- what is polled for */

static struct object *polled;
static struct prudence_counter *counter;

/* Waits until the grace period of `full` is over, and requests it in each possible way. */
static void wait_for_full(unsigned long way)
{
    prudence_gp_full_t full, before;

    prudence_gp_get_completed_full(&before);
    switch (way) {
    case 0:
        prudence_gp_start_poll_full(&full);
        break;
    case 1:
        prudence_gp_start_poll_expedited_full(&full);
        break;
    default:
        prudence_gp_get_state_full(&full);
    }
    if (!prudence_gp_poll_state_full(&before) || prudence_gp_same_state_full(&before, &full))
        abort();
    if (way == 2)
        prudence_gp_cond_synchronize_full(&full);
    else if (way == 3)
        prudence_gp_cond_synchronize_expedited_full(&full);
    while (!prudence_gp_poll_state_full(&full))
        ;
}

static void wait_by(unsigned long way)
{
    prudence_gp_t state = prudence_gp_start_poll();

    switch (way) {
    case 0:
        while (!prudence_gp_poll_state(state))
            ;
        return;
    case 1:
        prudence_gp_cond_synchronize(state);
        return;
    case 2:
        prudence_gp_cond_synchronize_expedited(prudence_gp_start_poll_expedited());
        return;
    case 3:
        if (!prudence_gp_same_state(state, state))
            abort();
        prudence_synchronize();
        return;
    default:
        wait_for_full(way % 4);
    }
}

/* Uses the C library's malloc, which knows nothing of readers: only the polling makes order. */
static void update_poll(unsigned long round)
{
    struct object *fresh = malloc(sizeof *fresh), *old = polled;

    if (!fresh)
        abort();
    fresh->key = round;
    fresh->value = fresh->copy = round + 1;
    prudence_assign_pointer(polled, fresh);
    touch(fresh);
    wait_by(round % 8);
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

/* ----------------------------------------------------------------------- domains of the program */

static struct prudence_domain *domain, *quiescent;
static struct object *in_domain, *in_quiescent;

static void wait_in(struct prudence_domain *waited, unsigned long way)
{
    prudence_gp_full_t full;

    switch (way) {
    case 0:
        prudence_domain_start_poll_full(waited, &full);
        break;
    case 1:
        prudence_domain_start_poll_expedited_full(waited, &full);
        break;
    case 2:
        prudence_domain_get_completed_full(waited, &full);
        if (!prudence_domain_poll_state_full(waited, &full))
            abort();
        prudence_domain_get_state_full(waited, &full);
        if (prudence_domain_cond_synchronize_full(waited, &full))
            abort();
        return;
    default:
        prudence_domain_get_state_full(waited, &full);
        if (prudence_domain_cond_synchronize_expedited_full(waited, &full))
            abort();
        return;
    }
    while (!prudence_domain_poll_state_full(waited, &full))
        usleep(10); /* lets a reader have this CPU */
}

static void update_in(struct object **place, struct prudence_domain *waited, unsigned long round)
{
    struct object *fresh = malloc(sizeof *fresh), *old = *place;

    if (!fresh)
        abort();
    fresh->key = round;
    fresh->value = fresh->copy = round + 1;
    prudence_assign_pointer(*place, fresh);
    touch(fresh);
    wait_in(waited, round % 4);
    if (old)
        memset(old, 0, sizeof *old);
    free(old);
}

static void update_domain(unsigned long round)
{
    update_in(&in_domain, domain, round);
}

/* Reads outside of the default domain, whose sections would make order of their own. */
static void read_domain(unsigned long round)
{
    (void)round;
    prudence_domain_read_lock(domain);
    check(prudence_dereference(in_domain));
    prudence_domain_read_unlock(domain);
}

static void update_quiescent(unsigned long round)
{
    update_in(&in_quiescent, quiescent, round);
}

static void read_quiescent(unsigned long round)
{
    prudence_qsbr_online(quiescent);
    check(prudence_dereference(in_quiescent));
    prudence_qsbr_quiescent(quiescent);
    check(prudence_dereference(in_quiescent));
    if (round % 2) {
        bool online = prudence_qsbr_blocking_begin(quiescent);

        prudence_qsbr_blocking_end(quiescent, online);
    } else {
        PRUDENCE_QSBR_BLOCKING(quiescent);
    }
    if (!prudence_qsbr_is_online(quiescent))
        abort();
    check(prudence_dereference(in_quiescent));
    prudence_qsbr_offline(quiescent);
}

/* ----------------------------------------------------------------------------------- statistics */

static struct prudence_cache *cache;
static struct prudence_hash_values *values;
static struct prudence_id_table *ids;
static struct prudence_routes *routes;

static int count_live(const struct prudence_heap_slab *slab,
                      const struct prudence_heap_object *object, void *context)
{
    if (object && object->state == PRUDENCE_OBJECT_LIVE && slab->live)
        ++*(unsigned *)context;
    return 0;
}

static void look_at_all(void)
{
    struct prudence_walk caches = PRUDENCE_WALK_INIT, domains = caches, readers = caches;
    struct prudence_stats all;
    struct prudence_cache_stats of_cache;
    struct prudence_domain_stats of_domain;
    struct prudence_reader_stats of_reader;
    unsigned live = 0;

    if (prudence_stats(&all) || prudence_cache_stats(cache, &of_cache) ||
        prudence_domain_stats(domain, &of_domain) || prudence_heap_walk(cache, count_live, &live) ||
        !live)
        abort();
    while (prudence_next_cache(&caches, &of_cache) == 0)
        ;
    while (prudence_next_domain(&domains, &of_domain) == 0)
        ;
    while (prudence_next_reader(&readers, &of_reader) == 0)
        ;
}

static void look_at_tables(void)
{
    struct prudence_hash_stats of_hash;
    struct prudence_lockfree_hash_stats of_lockfree;
    struct prudence_map_stats of_map;
    struct prudence_id_table_stats of_ids;
    struct prudence_routes_stats of_routes;

    if (prudence_hash_stats(names, &of_hash) || prudence_hash_values_stats(values, &of_hash) ||
        prudence_lockfree_hash_stats(lockfree, &of_lockfree) ||
        prudence_map_stats(bytes, &of_map) || prudence_map_values_stats(numbers, &of_map) ||
        prudence_id_table_stats(ids, &of_ids) || prudence_routes_stats(routes, &of_routes))
        abort();
}

/* Objects of a cache, whose fast paths are inlined unless there is a sanitizer. */
static struct object *in_cache, *in_hand;

/* Unlinks the old object before it is deferred at once, so readers cannot find it. */
static void update_statistics(unsigned long round)
{
    struct object *old = in_cache, *fresh = in_hand ? in_hand : prudence_cache_alloc(cache);

    if (!fresh)
        abort();
    fresh->key = round;
    fresh->value = fresh->copy = round + 1;
    prudence_assign_pointer(in_cache, fresh);
    touch(fresh);
    in_hand = prudence_cache_replace(cache, old);
    if (round % 16 == 0)
        look_at_all();
    if (round % 4 == 0)
        look_at_tables();
}

static void read_statistics(unsigned long round)
{
    check(prudence_dereference(in_cache));
    if (!prudence_is_reading())
        abort();
    if (round % 64 == 0)
        look_at_tables();
}

/* ------------------------------------------------------------------------------------------ all */

static const struct structure {
    const char *name;
    void (*update)(unsigned long round);
    void (*read)(unsigned long round);
} structures[] = {
    {"swap", update_swap, read_swap},
    {"log", update_log, read_log},
    {"stack", update_stack, read_stack},
    {"ref", update_ref, read_ref},
    {"list", update_list, read_list},
    {"hlist", update_hlist, read_hlist},
    {"names", update_names, read_names},
    {"twins", update_twins, read_twins},
    {"lockfree", update_lockfree_twins, read_lockfree_twins},
    {"bytes", update_bytes, read_bytes},
    {"numbers", update_numbers, read_numbers},
    {"poll", update_poll, read_poll},
    {"domain", update_domain, read_domain},
    {"quiescent", update_quiescent, read_quiescent},
    {"statistics", update_statistics, read_statistics},
};

static const struct structure *chosen;

static bool has_own_sections(void)
{
    return chosen->read == read_domain || chosen->read == read_quiescent;
}

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
        if (!has_own_sections())
            prudence_read_lock();
        chosen->read(round++);
        if (!has_own_sections())
            prudence_read_unlock();
        __atomic_fetch_add(&rounds, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

static void wait_for_readers(unsigned long more)
{
    unsigned long until = __atomic_load_n(&rounds, __ATOMIC_RELAXED) + more;

    while (__atomic_load_n(&rounds, __ATOMIC_RELAXED) < until)
        usleep(10); /* lets the readers have this CPU */
}

/* Lets readers see something of each step; with a race, of each object. */
static void update_all(void)
{
    const unsigned step = races ? 2 : 40;

    while (__atomic_load_n(&rounds, __ATOMIC_RELAXED) < READERS)
        usleep(10); /* lets the readers have this CPU */
    for (unsigned long round = 0; round < (is_log_race() ? 1
                                           : races       ? ROUNDS / 4
                                                         : ROUNDS);
         round++) {
        chosen->update(round);
        if (round % step == 0 && !is_log_race())
            wait_for_readers(2 * READERS);
    }
}

/* Makes the structures. */
static bool made(void)
{
    const struct prudence_map_attr of_bytes = {.size = sizeof of_bytes,
                                               .flags = PRUDENCE_MAP_BYTES};
    const struct prudence_lockfree_hash_attr of_keys = {.size = sizeof of_keys, .buckets = KEYS};

    log_of_all = prudence_log_create(1 << 12, NULL);
    names = prudence_hash_create("names", NULL);
    lockfree = prudence_lockfree_hash_create("lockfree", &of_keys);
    bytes = prudence_map_create("bytes", &of_bytes);
    numbers = prudence_map_values_create("numbers", NULL);
    counter = prudence_counter_create();
    domain = prudence_domain_create("domain", PRUDENCE_DOMAIN_MEMB, NULL);
    quiescent = prudence_domain_create("quiescent", PRUDENCE_DOMAIN_QSBR, NULL);
    cache = prudence_cache_create("objects", sizeof(struct object), NULL);
    values = prudence_hash_values_create("values", NULL);
    ids = prudence_id_table_create("ids", NULL);
    routes = prudence_routes_create("routes", NULL);
    prudence_list_init(&list);
    prudence_list_init(&others);
    prudence_hlist_init(&hlist);
    prudence_hlist_init(&other_hlist);
    prudence_swap_init(&handle, make(0));
    return log_of_all && names && lockfree && bytes && numbers && counter && domain && quiescent &&
           cache && values && ids && routes;
}

int main(int argc, char **argv)
{
    pthread_t readers[READERS];

    races = argc > 2;
    for (unsigned i = 0; i < sizeof structures / sizeof structures[0]; i++)
        if (argc > 1 && !strcmp(argv[1], structures[i].name))
            chosen = &structures[i];
    if (!chosen || !made())
        abort();
    for (uintptr_t i = 0; i < READERS; i++)
        if (pthread_create(&readers[i], NULL, read_all, (void *)i))
            abort();
    update_all();
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < READERS; i++)
        pthread_join(readers[i], NULL);
    end_list();
    puts("done");
    return 0;
}
