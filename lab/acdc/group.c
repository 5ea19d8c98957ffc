/* SPDX-License-Identifier: MIT */
#include "group.h"

struct group *group_create(struct arena *arena, size_t count)
{
    struct group *group = arena_take(arena, group_size(count));

    if (group)
        *group = (struct group){.count = 0};
    return group;
}

void group_destroy(struct arena *arena, struct group *group, size_t room)
{
    arena_give(arena, group, group_size(room));
}

/* Returns the first leaf of a walk that goes left wherever it can. */
static size_t leftmost(size_t count, size_t at)
{
    while (2 * at + 1 < count)
        at = 2 * at + 1;
    return at;
}

static bool is_left(size_t at)
{
    return at & 1;
}

static size_t parent(size_t at)
{
    return (at - 1) / 2;
}

/* Returns parents first: down to the left, otherwise to the nearest right sibling above. */
static size_t next_in_preorder(size_t count, size_t at)
{
    if (at == count)
        return 0;
    if (2 * at + 1 < count)
        return 2 * at + 1;
    while (at && !(is_left(at) && at + 1 < count))
        at = parent(at);
    return at ? at + 1 : count;
}

/* Returns children first: after a left child the right one's subtree, after a right one the
 * parent. */
static size_t next_in_postorder(size_t count, size_t at)
{
    if (at == count)
        return leftmost(count, 0);
    if (!at)
        return count;
    return is_left(at) && at + 1 < count ? leftmost(count, at + 1) : parent(at);
}

static size_t next_in_order(size_t count, size_t at)
{
    return at == count ? 0 : at + 1;
}

size_t group_next_to_read(const struct group *group, size_t at)
{
    return group->tree ? next_in_preorder(group->count, at) : next_in_order(group->count, at);
}

size_t group_next_to_free(const struct group *group, size_t at)
{
    return group->tree ? next_in_postorder(group->count, at) : next_in_order(group->count, at);
}
