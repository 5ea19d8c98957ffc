/* SPDX-License-Identifier: MIT */
/*
 * Objects with deleters that wait until no slot names them (prudence_hazard_retire), whatever
 * memory they are in.
 *
 * They wait on one stack of the process, which threads push to, and which a thread that calls
 * deleters takes as a whole; so no element is popped while another thread looks at it. What is
 * named goes back. A look is due when enough wait that a membarrier and a look cost little for
 * each.
 *
 * Locks: none. Nothing is held while a deleter runs. A thread in a deleter pushes only, so deleters
 * do not nest.
 */
#include "gp/user/domain.h"
#include "gp/user/hazard.h"
#include "gp/user/hazard_names.h"

#define DUE_OBJECTS 1024
#define DUE_BYTES   ((size_t)1 << 20)

static struct prudence_hazard_head *retired;    /* pushed by compare-and-swap */
static uint64_t retired_objects, retired_bytes; /* in `retired`, or about to be; atomic */
/* The next look; hints, atomic. */
static uint64_t due_objects = DUE_OBJECTS, due_retired_bytes = DUE_BYTES;
static __thread bool deleting __attribute__((tls_model("initial-exec")));

/* Pushes a list. Release, by the compare-and-swap, of what the caller wrote to the heads. */
static void push(struct prudence_hazard_head *first, struct prudence_hazard_head *last)
{
    struct prudence_hazard_head *below = load_relaxed(&retired);

    do
        last->next = below;
    while (!compare_exchange(&retired, &below, first));
}

/* Lists of heads, by whether they have a name. */
struct heads {
    struct prudence_hazard_head *safe, *named, *last_named;
};

static void keep(struct heads *heads, struct prudence_hazard_head *head)
{
    if (!heads->named)
        heads->last_named = head;
    head->next = heads->named;
    heads->named = head;
}

static void sift_heads(struct heads *heads, const struct hazard_names *names)
{
    struct prudence_hazard_head *head = heads->safe, *next;

    for (heads->safe = NULL; head; head = next) {
        next = head->next;
        if (hazard_names_have(names, head->object, head->size)) {
            keep(heads, head);
        } else {
            head->next = heads->safe;
            heads->safe = head;
        }
    }
}

/* Counts the objects of a list as gone, and makes the next look due when as much has come again as
 * this one was due for. */
static void count_gone(const struct prudence_hazard_head *head)
{
    uint64_t objects = 0, bytes = 0;

    for (; head; head = head->next) {
        objects++;
        bytes += head->size;
    }
    store_relaxed(&due_objects, sub_relaxed(&retired_objects, objects) - objects + DUE_OBJECTS);
    store_relaxed(&due_retired_bytes, sub_relaxed(&retired_bytes, bytes) - bytes + DUE_BYTES);
}

static void delete_all(struct prudence_hazard_head *head)
{
    struct prudence_hazard_head *next;

    os_foreign_call("a deleter of prudence_hazard_retire");
    deleting = true;
    for (; head; head = next) {
        next = head->next;
        head->func(head);
    }
    deleting = false;
}

static void reclaim(void)
{
    struct heads heads = {.safe = exchange_acquire(&retired, NULL)};
    struct hazard_names names;
    struct hazard_walk walk;

    if (!heads.safe)
        return;
    tell_acquire(&retired);
    hazard_barrier();
    hazard_names_begin(&walk);
    while (hazard_names_take(&names, &walk))
        sift_heads(&heads, &names);
    hazard_slots_tell_over();
    if (heads.named) {
        push(heads.named, heads.last_named);
        hazard_slots_reap();
    }
    count_gone(heads.safe);
    delete_all(heads.safe);
}

void prudence_hazard_retire(struct prudence_hazard_head *head, const void *object, size_t size,
                            void (*func)(struct prudence_hazard_head *head))
{
    uint64_t objects, bytes;

    *head =
        (struct prudence_hazard_head){.object = object, .size = max_size(size, 1), .func = func};
    objects = add_relaxed(&retired_objects, 1) + 1;
    bytes = add_relaxed(&retired_bytes, head->size) + head->size;
    tell_release(&retired);
    push(head, head);
    if (unlikely(objects >= load_relaxed(&due_objects) ||
                 bytes >= load_relaxed(&due_retired_bytes)) &&
        !deleting)
        reclaim();
}

size_t prudence_hazard_reclaim(void)
{
    if (!deleting)
        reclaim();
    return load_relaxed(&retired_objects);
}
