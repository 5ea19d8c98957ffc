/* SPDX-License-Identifier: MIT */
/*
 * Every structure holds values that nothing else in the process points to, and the process ends. No
 * value is lost, because it can be reached from the structure. Run by test_leaks.py with
 * LeakSanitizer and with Valgrind, which search for pointers.
 *
 *   program_values WHOSE NAME...           WHOSE: libc (values of malloc), ours (values of
 *                                          prudence_malloc, each with a block of malloc that only
 *                                          the value points to). NAME: from `structures` below;
 *                                          none: all
 *   program_values WHOSE lost NAME...      and each structure's function loses some values, which
 *                                          must be reported
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <prudence/call.h>
#include <prudence/hash_rename.h>
#include <prudence/hash_values.h>
#include <prudence/id_table.h>
#include <prudence/lockfree_hash.h>
#include <prudence/log.h>
#include <prudence/map_values.h>
#include <prudence/prudence.h>
#include <prudence/rcu.h>
#include <prudence/rcuhlist.h>
#include <prudence/rculist.h>
#include <prudence/routes.h>
#include <prudence/scm.h>
#include <prudence/stack.h>
#include <prudence/swap.h>

#define KEYS 600 /* enough for resizes, for nodes of all sizes, and for more than one slab */

/* No node is at the beginning, so every pointer to one points into the middle of the block. */
struct value {
    char *text; /* from malloc, if the value is ours */
    unsigned long key;
    struct prudence_hash_node node;
    struct prudence_hash_name name;
    struct prudence_map_node map_node;
    struct prudence_map_bytes map_bytes;
    struct prudence_list link;
    struct prudence_hlist_node hlink;
    struct prudence_stack_node stack_node;
    struct prudence_head head;
};

static bool ours, loses;

static void must(bool right)
{
    if (!right)
        abort();
}

static struct value *make(unsigned long key)
{
    struct value *value = ours ? prudence_malloc(sizeof *value) : malloc(sizeof *value);

    must(value);
    memset(value, 0, sizeof *value);
    value->key = key;
    value->text = ours ? malloc(24) : NULL;
    prudence_hash_name_init(&value->name);
    return value;
}

static void drop(struct value *value)
{
    if (!value)
        return;
    free(value->text);
    if (ours)
        prudence_free(value);
    else
        free(value);
}

/* Each structure holds the values of KEYS keys; some of them were replaced, and some removed. */
static bool is_replaced(unsigned long key)
{
    return key % 5 == 1;
}

static bool is_removed(unsigned long key)
{
    return key % 5 == 2;
}

static size_t text_of(char *text, unsigned long key)
{
    return (size_t)sprintf(text, "%s%lu", key % 3 ? "a longer key with the number " : "", key);
}

/* ---------------------------------------------------------------------------------- hash tables */

static bool node_has(const struct prudence_hash_node *node, const void *key)
{
    return prudence_hash_entry(node, const struct value, node)->key == *(const unsigned long *)key;
}

static bool name_has(const struct prudence_hash_node *node, const void *key)
{
    return prudence_hash_entry(node, const struct value, name.node)->key ==
           *(const unsigned long *)key;
}

static struct value *of_node(struct prudence_hash_node *node)
{
    return node ? prudence_hash_entry(node, struct value, node) : NULL;
}

static struct prudence_hash *hash;

static void fill_hash(void)
{
    hash = prudence_hash_create("hash", NULL);
    for (unsigned long key = 0; key < KEYS; key++)
        prudence_hash_add_duplicate(hash, prudence_hash_mix(key), &make(key)->node);
}

static void change_hash(unsigned long key)
{
    struct prudence_hash_node *node;

    prudence_read_lock();
    node = prudence_hash_lookup(hash, prudence_hash_mix(key), node_has, &key);
    must(is_replaced(key) ? !prudence_hash_replace(hash, node, &make(key)->node)
                          : !prudence_hash_remove(hash, node));
    prudence_read_unlock();
    prudence_synchronize();
    drop(of_node(node));
}

static struct prudence_lockfree_hash *lockfree;

static void fill_lockfree(void)
{
    lockfree = prudence_lockfree_hash_create("lockfree", NULL);
    prudence_read_lock();
    for (unsigned long key = 0; key < KEYS; key++)
        prudence_lockfree_hash_add_duplicate(lockfree, prudence_hash_mix(key), &make(key)->node);
    prudence_read_unlock();
}

static void change_lockfree(unsigned long key)
{
    struct prudence_hash_node *node;

    prudence_read_lock();
    node = prudence_lockfree_hash_lookup(lockfree, prudence_hash_mix(key), node_has, &key);
    must(is_replaced(key) ? !prudence_lockfree_hash_replace(lockfree, node, &make(key)->node)
                          : !prudence_lockfree_hash_remove(lockfree, node));
    prudence_read_unlock();
    prudence_synchronize();
    drop(of_node(node));
}

static struct prudence_hash *names;

static void fill_names(void)
{
    names = prudence_hash_create("names", NULL);
    for (unsigned long key = 0; key < KEYS; key++)
        prudence_hash_add_duplicate(names, prudence_hash_mix(key), &make(key)->name.node);
}

/* Renames to a key that others do not have, or removes. */
static void change_names(unsigned long key)
{
    struct value *fresh = is_replaced(key) ? make(key + KEYS) : NULL;
    struct prudence_hash_name *name;

    prudence_read_lock();
    name = prudence_hash_lookup_name(names, prudence_hash_mix(key), name_has, &key);
    if (fresh)
        must(!prudence_hash_rename(names, name, names, prudence_hash_mix(fresh->key), name_has,
                                   &fresh->key, &fresh->name));
    else
        must(!prudence_hash_remove(names, &name->node));
    prudence_read_unlock();
    prudence_synchronize();
    drop(prudence_hash_entry(name, struct value, name));
}

static struct prudence_hash_values *numbers, *strings;

static void fill_numbers(void)
{
    numbers = prudence_hash_values_create("numbers", NULL);
    for (unsigned long key = 0; key < KEYS; key++)
        must(!prudence_hash_values_put(numbers, key, make(key), NULL));
}

static void change_numbers(unsigned long key)
{
    void *old;

    if (is_replaced(key))
        must(!prudence_hash_values_put(numbers, key, make(key), &old));
    else
        must(!prudence_hash_values_erase(numbers, key, &old));
    prudence_synchronize();
    drop(old);
}

static void fill_strings(void)
{
    const struct prudence_hash_values_attr attr = {.size = sizeof attr,
                                                   .flags = PRUDENCE_HASH_VALUES_BYTES};
    char text[64];

    strings = prudence_hash_values_create("strings", &attr);
    for (unsigned long key = 0; key < KEYS; key++)
        must(!prudence_hash_values_put_bytes(strings, text, text_of(text, key), make(key), NULL));
}

static void change_strings(unsigned long key)
{
    char text[64];
    size_t length = text_of(text, key);
    void *old;

    if (is_replaced(key))
        must(!prudence_hash_values_put_bytes(strings, text, length, make(key), &old));
    else
        must(!prudence_hash_values_erase_bytes(strings, text, length, &old));
    prudence_synchronize();
    drop(old);
}

/* --------------------------------------------------------------------------------- ordered maps */

static struct prudence_map *map, *map_of_bytes;
static struct prudence_map_values *map_of_numbers, *map_of_strings;

static void fill_map(void)
{
    map = prudence_map_create("map", NULL);
    for (unsigned long key = 0; key < KEYS; key++) {
        struct value *value = make(key);

        value->map_node.key = key * key;
        must(!prudence_map_add(map, &value->map_node, NULL));
    }
}

static void change_map(unsigned long key)
{
    struct prudence_map_node *old = prudence_map_lookup(map, key * key);

    if (is_replaced(key)) {
        struct value *fresh = make(key);

        fresh->map_node.key = key * key;
        must(!prudence_map_replace(map, old, &fresh->map_node));
    } else {
        must(!prudence_map_remove(map, old));
    }
    prudence_synchronize();
    drop(prudence_map_entry(old, struct value, map_node));
}

/* The key is in the object, whose node has its address. */
static void fill_map_of_bytes(void)
{
    const struct prudence_map_attr attr = {.size = sizeof attr, .flags = PRUDENCE_MAP_BYTES};

    map_of_bytes = prudence_map_create("map of bytes", &attr);
    for (unsigned long key = 0; key < KEYS; key++) {
        struct value *value = make(key);

        prudence_map_set_bytes(&value->map_bytes, &value->key, sizeof value->key);
        must(!prudence_map_add(map_of_bytes, &value->map_bytes.node, NULL));
    }
}

static void change_map_of_bytes(unsigned long key)
{
    struct prudence_map_node *old = prudence_map_lookup_bytes(map_of_bytes, &key, sizeof key);

    if (is_replaced(key)) {
        struct value *fresh = make(key);

        prudence_map_set_bytes(&fresh->map_bytes, &fresh->key, sizeof fresh->key);
        must(!prudence_map_replace(map_of_bytes, old, &fresh->map_bytes.node));
    } else {
        must(!prudence_map_remove(map_of_bytes, old));
    }
    prudence_synchronize();
    drop(prudence_map_entry(old, struct value, map_bytes.node));
}

static void fill_map_of_numbers(void)
{
    map_of_numbers = prudence_map_values_create("map of numbers", NULL);
    for (unsigned long key = 0; key < KEYS; key++)
        must(!prudence_map_values_put(map_of_numbers, key, make(key), NULL));
}

static void change_map_of_numbers(unsigned long key)
{
    void *old;

    if (is_replaced(key))
        must(!prudence_map_values_put(map_of_numbers, key, make(key), &old));
    else
        must(!prudence_map_values_erase(map_of_numbers, key, &old));
    prudence_synchronize();
    drop(old);
}

static void fill_map_of_strings(void)
{
    const struct prudence_map_values_attr attr = {.size = sizeof attr,
                                                  .flags = PRUDENCE_MAP_VALUES_BYTES};
    char text[64];

    map_of_strings = prudence_map_values_create("map of strings", &attr);
    for (unsigned long key = 0; key < KEYS; key++)
        must(!prudence_map_values_put_bytes(map_of_strings, text, text_of(text, key), make(key),
                                            NULL));
}

static void change_map_of_strings(unsigned long key)
{
    char text[64];
    size_t length = text_of(text, key);
    void *old;

    if (is_replaced(key))
        must(!prudence_map_values_put_bytes(map_of_strings, text, length, make(key), &old));
    else
        must(!prudence_map_values_erase_bytes(map_of_strings, text, length, &old));
    prudence_synchronize();
    drop(old);
}

/* --------------------------------------------------------------------------- routes and numbers */

static struct prudence_routes *routes4, *routes6;

/* Returns prefixes of any length, from the default route on; enough for a wider index, and for
 * paths that skip levels. */
static struct prudence_routes_prefix prefix_of(unsigned long key, unsigned bytes)
{
    struct prudence_routes_prefix prefix = {.length = (unsigned)(key * 8 * bytes / KEYS)};

    for (unsigned bit = 0; bit < prefix.length; bit++)
        if (key * 0x9e3779b97f4a7c15u >> bit % 61 & 1)
            prefix.address[bit / 8] |= (unsigned char)(0x80 >> bit % 8);
    return prefix;
}

static bool adds_route(struct prudence_routes *routes, unsigned long key, unsigned bytes)
{
    const struct prudence_routes_prefix prefix = prefix_of(key, bytes);
    struct value *value = make(key);

    if (!prudence_routes_add(routes, &prefix, (uintptr_t)value, NULL))
        return true;
    drop(value);
    return false;
}

static void change_route(struct prudence_routes *routes, unsigned long key, unsigned bytes)
{
    const struct prudence_routes_prefix prefix = prefix_of(key, bytes);
    struct value *fresh = NULL;
    uintptr_t old = 0;

    if (is_replaced(key)) {
        fresh = make(key);
        if (prudence_routes_replace(routes, &prefix, (uintptr_t)fresh, &old))
            drop(fresh);
    } else {
        prudence_routes_erase(routes, &prefix, &old);
    }
    prudence_synchronize();
    drop((struct value *)old);
}

static void fill_routes4(void)
{
    unsigned added = 0;

    routes4 = prudence_routes_create("routes4", NULL);
    for (unsigned long key = 0; key < KEYS; key++)
        added += adds_route(routes4, key, 4);
    must(added > KEYS / 2);
}

static void change_routes4(unsigned long key)
{
    change_route(routes4, key, 4);
}

static void fill_routes6(void)
{
    const struct prudence_routes_attr attr = {.size = sizeof attr, .family = PRUDENCE_ROUTES_IPV6};
    unsigned added = 0;

    routes6 = prudence_routes_create("routes6", &attr);
    for (unsigned long key = 0; key < KEYS; key++)
        added += adds_route(routes6, key, 16);
    must(added > KEYS / 2);
}

static void change_routes6(unsigned long key)
{
    change_route(routes6, key, 16);
}

static struct prudence_id_table *ids;

static void fill_ids(void)
{
    uint32_t id;

    ids = prudence_id_table_create("ids", NULL);
    for (unsigned long key = 0; key < KEYS; key++)
        must(!prudence_id_table_add(ids, make(key), &id));
}

static void change_ids(unsigned long key)
{
    void *old;

    must(!(is_replaced(key) ? prudence_id_table_replace(ids, (uint32_t)key, make(key), &old)
                            : prudence_id_table_erase(ids, (uint32_t)key, &old)));
    prudence_synchronize();
    drop(old);
}

/* ----------------------------------------------------------------------------- small structures */

static struct prudence_log *entries;

static void fill_log(void)
{
    entries = prudence_log_create(KEYS * sizeof(void *), NULL);
    prudence_read_lock();
    for (unsigned long key = 0; key < KEYS; key++) {
        struct value **entry = prudence_log_reserve(entries, sizeof *entry);

        must(entry);
        *entry = make(key);
    }
    prudence_read_unlock();
}

static struct prudence_stack stack;

static void fill_stack(void)
{
    for (unsigned long key = 0; key < KEYS; key++)
        prudence_stack_push(&stack, &make(key)->stack_node);
}

static int transfer(void *old, void *fresh, void *context)
{
    (void)old, (void)fresh, (void)context;
    return 0;
}

/* Handles in memory of ours. */
static struct prudence_swap *handles;

static void fill_swap(void)
{
    handles = prudence_calloc(KEYS, sizeof *handles);
    for (unsigned long key = 0; key < KEYS; key++)
        prudence_swap_init(&handles[key], make(key));
}

static void change_swap(unsigned long key)
{
    void *old;

    if (is_replaced(key)) {
        must(!prudence_swap_transfer(&handles[key], make(key), &old, transfer, NULL, NULL));
    } else {
        old = prudence_swap_exchange(&handles[key], NULL);
        prudence_synchronize();
    }
    drop(old);
}

static struct prudence_list *list;

static void fill_list(void)
{
    list = prudence_malloc(sizeof *list);
    prudence_list_init(list);
    for (unsigned long key = 0; key < KEYS; key++)
        prudence_list_add_tail_rcu(&make(key)->link, list);
}

static struct prudence_hlist_head *buckets;

static void fill_hlist(void)
{
    buckets = prudence_calloc(16, sizeof *buckets);
    for (unsigned long key = 0; key < KEYS; key++)
        prudence_hlist_add_head_rcu(&make(key)->hlink, &buckets[key % 16]);
}

/* ------------------------------------------------------------------------------------ deferrals */

static void let_go(struct prudence_head *head)
{
    drop((struct value *)((char *)head - offsetof(struct value, head)));
}

/* Stays inside a section until the process ends, so none of the callbacks runs. */
static void fill_calls(void)
{
    prudence_read_lock();
    for (unsigned long key = 0; key < KEYS; key++)
        prudence_call(&make(key)->head, let_go);
}

/* Does the same in a domain of the program's own, which keeps the context of its functions. */
static uint64_t start_poll(void *context)
{
    return ((const struct value *)context)->key;
}

static bool poll_state(void *context, uint64_t cookie)
{
    return ((const struct value *)context)->key > cookie; /* never over */
}

static void fill_external(void)
{
    static const struct prudence_domain_ops ops = {
        .size = sizeof ops, .start_poll = start_poll, .poll_state = poll_state};
    struct prudence_domain *domain = prudence_domain_create_external("external", &ops, make(0));

    must(domain);
    for (unsigned long key = 0; key < KEYS; key++)
        prudence_domain_call(domain, &make(key)->head, let_go);
}

static void end_of(void *object, void *context)
{
    (void)context;
    drop(*(struct value **)object);
}

static void beginning_of(void *object, void *context)
{
    (void)context;
    *(struct value **)object = NULL;
}

/* Defers objects whose destructors wait for the grace period; each holds a value. */
static void fill_destructors(void)
{
    const struct prudence_cache_attr attr = {
        .size = sizeof attr, .constructor = beginning_of, .destructor = end_of};
    struct prudence_cache *cache = prudence_cache_create("with destructor", 64, &attr);

    prudence_read_lock();
    for (unsigned long key = 0; key < KEYS; key++) {
        struct value **object = prudence_cache_alloc(cache);

        *object = make(key);
        prudence_cache_free_deferred(cache, object);
    }
}

/* Makes values that only deferred objects point to, because readers may still follow them. */
static void fill_deferred(void)
{
    prudence_read_lock();
    for (unsigned long key = 0; key < KEYS; key++) {
        struct value **object = prudence_malloc(64);

        *object = make(key);
        prudence_free_deferred(object);
    }
}

/* Only the cache points to the context of its constructor. */
static void fill_contexts(void)
{
    for (unsigned long key = 0; key < 10; key++) {
        const struct prudence_cache_attr attr = {
            .size = sizeof attr, .constructor = beginning_of, .context = make(key)};

        must(prudence_cache_create("with context", 64, &attr));
    }
}

/* ---------------------------------------------------------------------------- short-term memory */

static void fill_short_term(void)
{
    must(!scm_register_thread());
    for (unsigned long key = 0; key < KEYS; key++) {
        struct value **object = scm_malloc(64);

        must(object);
        *object = make(key);
        must(!scm_refresh(object, 10));
    }
}

static void fill_region(void)
{
    struct scm_region *region = scm_region_create();

    must(region);
    must(!scm_region_refresh(region, 10));
    for (unsigned long key = 0; key < KEYS; key++) {
        struct value **object = scm_region_alloc(region, 64);

        must(object);
        *object = make(key);
    }
}

/* ------------------------------------------------------------------------------------------ all */

static const struct structure {
    const char *name;
    void (*fill)(void);
    void (*change)(unsigned long key);
} structures[] = {
    {"hash", fill_hash, change_hash},
    {"lockfree", fill_lockfree, change_lockfree},
    {"names", fill_names, change_names},
    {"numbers", fill_numbers, change_numbers},
    {"strings", fill_strings, change_strings},
    {"map", fill_map, change_map},
    {"map_of_bytes", fill_map_of_bytes, change_map_of_bytes},
    {"map_of_numbers", fill_map_of_numbers, change_map_of_numbers},
    {"map_of_strings", fill_map_of_strings, change_map_of_strings},
    {"routes4", fill_routes4, change_routes4},
    {"routes6", fill_routes6, change_routes6},
    {"ids", fill_ids, change_ids},
    {"log", fill_log, NULL},
    {"stack", fill_stack, NULL},
    {"swap", fill_swap, change_swap},
    {"list", fill_list, NULL},
    {"hlist", fill_hlist, NULL},
    {"short_term", fill_short_term, NULL},
    {"region", fill_region, NULL},
    {"contexts", fill_contexts, NULL},
    {"calls", fill_calls, NULL}, /* from here on inside a section */
    {"external", fill_external, NULL},
    {"destructors", fill_destructors, NULL},
    {"deferred", fill_deferred, NULL},
};

static bool is_chosen(int argc, char **argv, const char *name)
{
    for (int i = 2 + loses; i < argc; i++)
        if (!strcmp(argv[i], name))
            return true;
    return argc == 2 + loses;
}

/* LeakSanitizer ends a process that withdraws a root twice, or without having registered it. */
static void make_and_destroy(void)
{
    for (int i = 0; i < 3; i++) {
        struct prudence_domain *domain =
            prudence_domain_create("short-lived", PRUDENCE_DOMAIN_MEMB, NULL);
        const struct prudence_cache_attr attr = {.size = sizeof attr, .domain = domain};
        struct prudence_cache *cache = prudence_cache_create("short-lived", 64, &attr);

        must(domain && cache);
        for (unsigned long key = 0; key < KEYS; key++)
            prudence_cache_free_deferred(cache, prudence_cache_alloc(cache));
        must(!prudence_cache_destroy(cache));
        must(!prudence_domain_destroy(domain));
    }
}

static void lose_some(void)
{
    for (unsigned long key = 0; key < 20; key++)
        make(key);
}

/* Overwrites the unused stack, which still has addresses of values. */
static __attribute__((noinline)) void forget(void)
{
    volatile char stack_below[1 << 16];

    for (size_t i = 0; i < sizeof stack_below; i++)
        stack_below[i] = 0;
}

int main(int argc, char **argv)
{
    must(argc > 1);
    ours = !strcmp(argv[1], "ours");
    loses = argc > 2 && !strcmp(argv[2], "lost");
    make_and_destroy();
    for (size_t i = 0; i < sizeof structures / sizeof structures[0]; i++) {
        if (!is_chosen(argc, argv, structures[i].name))
            continue;
        structures[i].fill();
        for (unsigned long key = 0; structures[i].change && key < KEYS; key++)
            if (is_replaced(key) || is_removed(key))
                structures[i].change(key);
    }
    if (loses)
        lose_some();
    forget();
    puts("done");
    return 0;
}
