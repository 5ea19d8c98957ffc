/* SPDX-License-Identifier: MIT */
/*
 * A list that threads read while another changes it, in docs/how-to/rcu.md.
 *
 * ctest: not-with thread (one thread)
 */
#include <prudence/prudence.h>
#include <prudence/rcu.h>
#include <prudence/rculist.h>

struct route {
    struct prudence_list link;
    int hop;
};

static struct prudence_list routes = PRUDENCE_LIST_INIT(routes);

static void replace(struct route *old, struct route *fresh)
{
    prudence_list_replace_rcu(&old->link, &fresh->link);
    prudence_free_deferred(old);
}

static int sum(void)
{
    struct route *route;
    int hops = 0;

    prudence_read_lock();
    prudence_list_for_each_entry_rcu(route, &routes, link) hops += route->hop;
    prudence_read_unlock();
    return hops;
}

int main(void)
{
    struct route *first = prudence_malloc(sizeof *first), *second = prudence_malloc(sizeof *second);

    first->hop = 1;
    second->hop = 2;
    prudence_list_add_rcu(&first->link, &routes);
    if (sum() != 1)
        return 1;
    replace(first, second);
    return sum() != 2;
}
