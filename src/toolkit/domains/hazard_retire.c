/* SPDX-License-Identifier: MIT */
/*
 * Objects with deleters that wait until no slot names them (prudence_hazard_retire), whatever
 * memory they are in.
 *
 * An object waits in `retired` until a thread searches for names. The check puts it into
 * `safe_heads`, or back if it is named. A check is due when so much waits that a membarrier and a
 * check cost little for each object. Then threads that retire delete what is safe, a handful at a
 * time, and check if nothing is. So what waits has a bound, also if a thread loses its CPU between
 * two deleters, or during a check: the others wait for that check, which waits for no thread.
 *
 * Locks: `look_lock` for a check; within it, and alone, `retired_lock` for the lists. None is held
 * while a deleter runs. A deleter that retires only adds to the list, so deleters do not nest.
 */
#include "bug_search.h"
#include "gp/user/domain.h"
#include "toolkit/domains/hazard.h"
#include "toolkit/domains/hazard_names.h"
#include "toolkit/domains/hazard_retire.h"
#include "toolkit/domains/head_set.h"

#define DUE_OBJECTS  1024
#define DUE_BYTES    ((size_t)1 << 20)
#define HAND_OBJECTS 8 /* that a thread takes from `safe_heads` at a time */
#define HAND_BYTES   ((size_t)8 << 10)
#define GROUP        512 /* objects that a check of all slots is for */

/* First in, first out. */
struct heads {
    struct prudence_hazard_head *first, *last;
    uint64_t objects, bytes;
};

static struct os_lock look_lock = OS_LOCK_INIT(OS_RANK_LOOK);
static struct os_lock retired_lock = OS_LOCK_INIT(OS_RANK_RETIRED);

/* Under retired_lock, but the objects in `looked_for` belong to the holder of look_lock. */
static struct heads retired, looked_for, safe_heads;
static uint64_t named_objects, named_bytes; /* found by the last check */
static struct head_set retired_set;         /* with check=1 */

static __thread bool deleting __attribute__((tls_model("initial-exec")));

static void append_head(struct heads *heads, struct prudence_hazard_head *head)
{
    head->next = NULL;
    if (heads->last)
        heads->last->next = head;
    else
        heads->first = head;
    heads->last = head;
    heads->objects++;
    heads->bytes += head->size;
}

static void append_heads(struct heads *heads, const struct heads *more)
{
    if (!more->first)
        return;
    if (heads->last)
        heads->last->next = more->first;
    else
        heads->first = more->first;
    heads->last = more->last;
    heads->objects += more->objects;
    heads->bytes += more->bytes;
}

/* Named objects do not count, and as many as were named may wait, so that a check that finds many
 * names is rare. */
static bool is_due(void)
{
    uint64_t objects = retired.objects + looked_for.objects + safe_heads.objects - named_objects;
    uint64_t bytes = retired.bytes + looked_for.bytes + safe_heads.bytes - named_bytes;

    return objects >= max_size(DUE_OBJECTS, named_objects) ||
           bytes >= max_size(DUE_BYTES, named_bytes);
}

/* --------------------------------------------------------------------------------------- misuse */

static void retired_twice(const struct prudence_hazard_head *head)
{
    os_panic(
        "prudence_hazard_retire: the head %p, of the object %p, was retired before, and waits "
        "still; retire each object once",
        (const void *)head, head->object);
}

static void lists_differ(uint64_t objects, uint64_t linked)
{
    os_panic(
        "prudence_hazard_retire: of %llu objects that wait, %llu are linked: a head was retired "
        "twice, or written to while it waited (check=1 finds the former)",
        (unsigned long long)objects, (unsigned long long)linked);
}

/* ----------------------------------------------------------------------------------------
 * checks */

/* Searches for the names of a group of heads. */
static void poll_group(void **group, unsigned count, struct heads *unnamed, struct heads *named)
{
    unsigned kept = hazard_names_poll_objects(group, count, 0);

    for (unsigned i = 0; i < count; i++)
        append_head(i < kept ? unnamed : named, group[i]);
}

/* Polls objects that were retired before. A head that was added twice in a row links to itself; one
 * that was added twice has cut the list. */
static void poll_heads(const struct heads *heads, struct heads *unnamed, struct heads *named)
{
    struct prudence_hazard_head *head = heads->first;
    uint64_t linked = 0;
    void *group[GROUP];

    hazard_barrier();
    while (head) {
        unsigned count = 0;

        for (; head && count < GROUP; head = head->next) {
            if (unlikely(head->next == head))
                retired_twice(head);
            group[count++] = head;
        }
        linked += count;
        poll_group(group, count, unnamed, named);
    }
    if (unlikely(linked != heads->objects))
        lists_differ(heads->objects, linked);
    hazard_slots_tell_over();
}

/* Searches for names, if that is due or `anyway`. Returns how many objects are safe_heads. */
static uint64_t look_for_names(bool anyway)
{
    struct heads unnamed = {0}, named = {0};
    uint64_t found;

    os_lock_take(&look_lock);
    os_lock_take(&retired_lock);
    if (anyway || is_due()) {
        looked_for = retired;
        retired = (struct heads){0};
    }
    os_lock_release(&retired_lock);
    if (looked_for.first)
        poll_heads(&looked_for, &unnamed, &named);
    os_lock_take(&retired_lock);
    if (looked_for.first) {
        looked_for = (struct heads){0};
        named_objects = named.objects;
        named_bytes = named.bytes;
        append_heads(&retired, &named);
        append_heads(&safe_heads, &unnamed);
    }
    found = safe_heads.objects;
    os_lock_release(&retired_lock);
    os_lock_release(&look_lock);
    if (named.first)
        hazard_slots_reap();
    return found;
}

/* ------------------------------------------------------------------------------------- deleters */

/* Takes some safe objects; none if `while_due` and nothing is due. */
static struct heads take_hand(uint64_t most, bool while_due)
{
    struct heads hand = {0};

    os_lock_take(&retired_lock);
    while (safe_heads.first && hand.objects < most && hand.objects < HAND_OBJECTS &&
           hand.bytes < HAND_BYTES && !(while_due && !is_due())) {
        struct prudence_hazard_head *head = safe_heads.first;

        safe_heads.first = head->next;
        if (!safe_heads.first)
            safe_heads.last = NULL;
        safe_heads.objects--;
        safe_heads.bytes -= head->size;
        append_head(&hand, head);
        head_set_remove(&retired_set, head);
    }
    os_lock_release(&retired_lock);
    return hand;
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

static void delete_safe(uint64_t most, bool while_due)
{
    struct heads hand;

    do {
        hand = take_hand(most, while_due);
        delete_all(hand.first);
        most -= hand.objects;
    } while (hand.objects);
}

void prudence_hazard_retire(struct prudence_hazard_head *head, const void *object, size_t size,
                            void (*func)(struct prudence_hazard_head *head))
{
    bool due;

    os_lock_take(&retired_lock);
    if (unlikely(load_relaxed(&check_wanted)) && !head_set_add(&retired_set, head)) {
        os_lock_release(&retired_lock);
        retired_twice(head);
    }
    *head =
        (struct prudence_hazard_head){.object = object, .size = max_size(size, 1), .func = func};
    append_head(&retired, head);
    due = is_due();
    os_lock_release(&retired_lock);
    if (likely(!due) || deleting)
        return;
    delete_safe(UINT64_MAX, true);
    delete_safe(look_for_names(false), false);
}

size_t prudence_hazard_reclaim(void)
{
    uint64_t left;

    if (!deleting)
        delete_safe(look_for_names(true), false);
    os_lock_take(&retired_lock);
    left = retired.objects + looked_for.objects + safe_heads.objects;
    os_lock_release(&retired_lock);
    return left;
}

/* A child finds the lists whole. What another thread had taken is lost, and does not count. */
void hazard_retire_fork_prepare(void)
{
    os_lock_take_for_fork(&look_lock);
    os_lock_take_for_fork(&retired_lock);
}

void hazard_retire_fork_done(void)
{
    os_lock_release_from_fork(&retired_lock);
    os_lock_release_from_fork(&look_lock);
}

const struct gp_part gp_retired_part = {.fork_prepare = hazard_retire_fork_prepare,
                                        .fork_done = hazard_retire_fork_done};
