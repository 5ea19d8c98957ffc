/* SPDX-License-Identifier: MIT */
/*
 * Reference counts, a counter, a stack, a log and a swapped handle, all in one process, under more
 * threads than CPUs.
 *  - Slots lead to objects with references. Readers take a reference to an object that they
 *    find, keep the object beyond the section, and put it; writers put others into the slots. An
 *    object that a thread has a reference to is alive; each dies once.
 *  - Messages are pushed, popped inside sections and deferred: each is popped once, with the
 *    content that was pushed.
 *  - Entries of the log come out whole, and those of one thread in its order.
 *  - The object of the handle is changed by readers and moved by transfers: no change is lost.
 *  - The counter equals the number of all operations.
 */
#define _GNU_SOURCE
#include <prudence/counter.h>
#include <prudence/log.h>
#include <prudence/ref.h>
#include <prudence/stack.h>
#include <prudence/swap.h>

#include "support/gp_torture.h"

#define THREADS   8
#define SLOTS     16
#define LOG_BYTES 65536
#define ALIVE     UINT64_C(0xa11feba5e)
#define DEAD      UINT64_C(0xdeadbea7)

struct object {
    uint64_t state; /* atomic */
    struct prudence_ref references;
};

struct message {
    struct prudence_stack_node node;
    uint64_t number, check;
};

struct entry {
    uint64_t thread, number, check;
};

struct account {
    uint64_t changes; /* atomic */
};

static struct object *slots[SLOTS];
static struct prudence_cache *objects, *messages;
static struct prudence_stack stack;
static struct prudence_log *log_buffer;
static struct prudence_swap handle;
static struct prudence_counter *counter;
static uint64_t last_written[THREADS];
static uint64_t pushed, popped, entered, written, made, died, changed, swaps, counted;

static void count(uint64_t *what)
{
    __atomic_fetch_add(what, 1, __ATOMIC_RELAXED);
}

/* ----------------------------------------------------------------------------------- references */

static void put(struct object *object)
{
    if (!prudence_ref_put(&object->references))
        return;
    if (__atomic_exchange_n(&object->state, DEAD, __ATOMIC_RELAXED) != ALIVE)
        torture_violation("an object dies twice");
    count(&died);
    prudence_cache_free_deferred(objects, object);
}

static void replace_slot(unsigned slot)
{
    struct object *object = prudence_cache_alloc(objects), *old;

    __atomic_store_n(&object->state, ALIVE, __ATOMIC_RELAXED);
    prudence_ref_init(&object->references, 1);
    count(&made);
    old = __atomic_exchange_n(&slots[slot], object, __ATOMIC_ACQ_REL);
    if (old)
        put(old);
}

static void keep_one(unsigned slot, bool yields)
{
    struct object *object;

    prudence_read_lock();
    object = __atomic_load_n(&slots[slot], __ATOMIC_CONSUME);
    if (object && !prudence_ref_get_unless_zero(&object->references))
        object = NULL;
    prudence_read_unlock();
    if (!object)
        return;
    prudence_ref_get(&object->references);
    if (yields)
        sched_yield();
    if (__atomic_load_n(&object->state, __ATOMIC_RELAXED) != ALIVE)
        torture_violation("an object is dead while it has references");
    put(object);
    put(object);
}

/* ---------------------------------------------------------------------------------------- stack */

static void push(void)
{
    struct message *message = prudence_cache_alloc(messages);

    message->number = __atomic_add_fetch(&pushed, 1, __ATOMIC_RELAXED);
    message->check = ~message->number;
    prudence_stack_push(&stack, &message->node);
}

static void pop(void)
{
    struct prudence_stack_node *node;
    struct message *message;

    prudence_read_lock();
    node = prudence_stack_pop(&stack);
    prudence_read_unlock();
    if (!node)
        return;
    message = prudence_stack_entry(node, struct message, node);
    if (message->check != ~message->number)
        torture_violation("message %llu is popped twice, or was not pushed",
                          (unsigned long long)message->number);
    message->check = 0;
    count(&popped);
    prudence_cache_free_deferred(messages, message);
}

/* -------------------------------------------------------------------------------- log, and swap */

static void enter(uint64_t thread, uint64_t *number)
{
    struct entry *entry;

    prudence_read_lock();
    entry = prudence_log_reserve(log_buffer, sizeof *entry);
    if (entry) {
        *entry = (struct entry){thread, ++*number, thread ^ ~*number};
        count(&entered);
    }
    prudence_read_unlock();
}

static void check_entries(void *context, const void *entries, size_t bytes)
{
    const struct entry *entry = entries;
    uint64_t *last = context;

    for (size_t i = 0; i < bytes / sizeof *entry; i++, entry++) {
        if (entry->thread >= THREADS || entry->check != (entry->thread ^ ~entry->number))
            torture_violation("an entry comes out that was not filled");
        else if (entry->number != ++last[entry->thread])
            torture_violation("an entry of thread %llu is missing",
                              (unsigned long long)entry->thread);
        count(&written);
    }
}

static void change(void)
{
    struct account *account;

    prudence_read_lock();
    account = prudence_swap_get(&handle);
    if (account) {
        __atomic_fetch_add(&account->changes, 1, __ATOMIC_RELAXED);
        count(&changed);
    }
    prudence_read_unlock();
}

static int move_account(void *old, void *fresh, void *unused)
{
    *(struct account *)fresh = *(struct account *)old; /* no thread changes it */
    return 0;
}

static void *flush_and_swap(void *unused)
{
    void *old;

    do {
        TORTURE_CHECK(prudence_log_flush(log_buffer, check_entries, last_written) == 0);
        TORTURE_CHECK(prudence_swap_transfer(&handle, prudence_malloc(sizeof(struct account)), &old,
                                             move_account, NULL, NULL) == 0);
        memset(old, 0xff, sizeof(struct account));
        prudence_free(old);
        count(&swaps);
        torture_sleep_us(200);
    } while (!torture_stopped());
    return unused;
}

static void *work(void *number)
{
    uint64_t random = (uintptr_t)number + 11, entries = 0;

    while (!torture_stopped()) {
        for (unsigned i = 0; i < 50; i++) {
            keep_one(torture_below(&random, SLOTS), i == 0);
            if (torture_below(&random, 3) == 0)
                replace_slot(torture_below(&random, SLOTS));
            if (torture_below(&random, 2))
                push();
            else
                pop();
            enter((uintptr_t)number, &entries);
            change();
            prudence_counter_add(counter, 1);
        }
        __atomic_fetch_add(&counted, 50, __ATOMIC_RELAXED);
    }
    return NULL;
}

static void set_up(void)
{
    objects = prudence_cache_create("objects", sizeof(struct object), NULL);
    messages = prudence_cache_create("messages", sizeof(struct message), NULL);
    log_buffer = prudence_log_create(LOG_BYTES, NULL);
    counter = prudence_counter_create();
    prudence_swap_init(&handle, prudence_calloc(1, sizeof(struct account)));
}

static void tear_down(void)
{
    struct account *account = prudence_swap_exchange(&handle, NULL);

    TORTURE_CHECK(prudence_log_flush(log_buffer, check_entries, last_written) == 0);
    for (unsigned i = 0; i < SLOTS; i++)
        if (slots[i])
            put(slots[i]);
    while (!prudence_stack_is_empty(&stack))
        pop();
    TORTURE_CHECK(made == died);
    TORTURE_CHECK(pushed == popped);
    TORTURE_CHECK(entered == written);
    TORTURE_CHECK(account->changes == changed);
    TORTURE_CHECK((uint64_t)prudence_counter_sum(counter) == counted);
    prudence_free(account);
    prudence_counter_destroy(counter);
    prudence_log_destroy(log_buffer);
    TORTURE_CHECK(prudence_cache_destroy(objects) == 0);
    TORTURE_CHECK(prudence_cache_destroy(messages) == 0);
}

static int torture(const char *variant, double seconds)
{
    set_up();
    torture_start(work, THREADS, 0);
    torture_start(flush_and_swap, 1, 0);
    torture_sleep_us((unsigned)(seconds * 1e6));
    torture_wait_for(&swaps);
    torture_wait_for(&written);
    torture_join();
    tear_down();
    TORTURE_SAY({"made", made}, {"messages", pushed}, {"entries", written},
                {"dropped", counted - entered}, {"changes", changed}, {"swaps", swaps});
    return torture_end(variant);
}

TORTURE(torture, {"mixed", ""}, {"fenced", "reader_mode=fenced"}, {"lock", "rseq=0"})
