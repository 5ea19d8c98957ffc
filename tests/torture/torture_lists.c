/* SPDX-License-Identifier: MIT */
/*
 * RCU lists with readers: a reader always finds every element that stays, in order; elements that
 * come and go are whole wherever they are found; a list that is spliced away or swapped has an end.
 */
#define _GNU_SOURCE
#include <prudence/rcuhlist.h>
#include <prudence/rculist.h>

#include "support/gp_torture.h"

#define READERS 4
#define LASTING 16
#define WHOLE   0x600df00dull

struct element {
    uint64_t whole;
    unsigned place; /* lasting elements have a multiple of 100 */
    struct prudence_list link;
    struct prudence_hlist_node node;
};

static struct prudence_list head = PRUDENCE_LIST_INIT(head);
static struct prudence_hlist_head hhead;
static struct element lasting[LASTING];
static uint64_t walks, updates;

static void look(const struct element *at, unsigned *place, unsigned *found)
{
    unsigned here = __atomic_load_n(&at->place, __ATOMIC_RELAXED);

    if (__atomic_load_n(&at->whole, __ATOMIC_RELAXED) != WHOLE)
        torture_violation("element %p was freed under a reader", (const void *)at);
    if (here < *place)
        torture_violation("place %u after %u", here, *place);
    *place = here;
    *found += here % 100 == 0;
}

static void *reader(void *number)
{
    while (!torture_stopped()) {
        unsigned place = 0, found = 0;
        struct element *at;

        prudence_read_lock();
        prudence_list_for_each_entry_rcu(at, &head, link) look(at, &place, &found);
        prudence_read_unlock();
        if (found != LASTING)
            torture_violation("a walk of the list found %u of %u", found, LASTING);
        place = found = 0;
        prudence_read_lock();
        prudence_hlist_for_each_entry_rcu(at, &hhead, node) look(at, &place, &found);
        prudence_read_unlock();
        if (found != LASTING)
            torture_violation("a walk of the hlist found %u of %u", found, LASTING);
        __atomic_fetch_add(&walks, 1, __ATOMIC_RELAXED);
    }
    return number;
}

static struct element *make(unsigned place)
{
    struct element *element = prudence_malloc(sizeof *element);

    __atomic_store_n(&element->place, place, __ATOMIC_RELAXED);
    __atomic_store_n(&element->whole, WHOLE, __ATOMIC_RELAXED);
    return element;
}

static void retire(struct element *element)
{
    if (torture_below(&(uint64_t){(uintptr_t)element + updates}, 4)) {
        prudence_free_deferred(element);
    } else {
        prudence_synchronize();
        __atomic_store_n(&element->whole, 0, __ATOMIC_RELAXED);
        prudence_free(element);
    }
}

/* After each lasting element there is at most one that comes and goes. */
static struct element *passing[LASTING];

static void update(uint64_t *random)
{
    unsigned i = torture_below(random, LASTING);
    struct element *old = passing[i], *fresh = NULL;

    if (!old || torture_below(random, 2))
        fresh = make(i * 100 + 1);
    if (old && fresh) {
        prudence_list_replace_rcu(&old->link, &fresh->link);
        prudence_hlist_replace_rcu(&old->node, &fresh->node);
    } else if (old) {
        prudence_list_del_rcu(&old->link);
        prudence_hlist_del_rcu(&old->node);
    } else {
        prudence_list_add_rcu(&fresh->link, &lasting[i].link);
        prudence_hlist_add_behind_rcu(&fresh->node, &lasting[i].node);
    }
    passing[i] = fresh;
    updates++;
    if (old)
        retire(old);
}

static int torture(const char *variant, double seconds)
{
    uint64_t random = 4711, end = torture_now() + (uint64_t)(seconds * 1e9);

    for (unsigned i = 0; i < LASTING; i++) {
        lasting[i].whole = WHOLE;
        lasting[i].place = i * 100;
        prudence_list_add_tail_rcu(&lasting[i].link, &head);
        prudence_hlist_add_tail_rcu(&lasting[i].node, &hhead);
    }
    torture_start(reader, READERS, 0);
    while (torture_now() < end)
        update(&random);
    torture_join();
    for (unsigned i = 0; i < LASTING; i++)
        prudence_free(passing[i]);
    TORTURE_SAY({"updates", updates}, {"walks", walks});
    return torture_end(variant);
}

TORTURE(torture, {"default", ""}, {"fenced", "reader_mode=fenced"})
