/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Chooses the slab to refill from, so that total fragmentation ends lowest (rule 7; paper, sections
 * 4 and 5.4). The caller holds the node's lock.
 */
#include "slab/node_choose.h"

#include "os/os.h"
#include "slab/node_lists.h"
#include "slab/slab.h"

/* Policy: from which slab does a refill take? */
#define SLABS_WEIGHED 10 /* slabs; partial ones that a refill compares (paper, section 5.4) */

/* Returns the number of objects neither free nor about to be. The hint may be late; it is no
 * invariant. */
static unsigned lasting(const struct slab *slab)
{
    unsigned live = slab->capacity - slab->free - slab->latent;
    unsigned leaving = load_relaxed(&slab->leaving);

    return live > leaving ? live - leaving : 0;
}

/*
 * Returns the number of lasting objects with an expiration date. Threads that set and end dates in
 * a slab at the same time may lose each other's changes; a locked addition would double the cost of
 * a refresh. The drift only lets node_choose() take another of equally good slabs. Nor does it
 * last, because impossible values are cut off here, and a slab that becomes free resets the count.
 */
static unsigned may_leave(const struct slab *slab, unsigned lasts)
{
    int32_t count = load_relaxed(&slab->may_leave);

    return count < 0 ? 0 : (unsigned)min_size((unsigned)count, lasts);
}

bool slab_spares_latent READ_MOSTLY = false;

/* Returns whether to leave the slab alone while there is a free one. The switch adds mostly latent
 * slabs, as in the paper, because their few other objects may soon be freed, too (rule 7). */
static bool is_left_alone(const struct slab *slab, unsigned lasts)
{
    return load_relaxed(&slab_spares_latent) ? 2 * lasts < slab->capacity - slab->free : !lasts;
}

struct choice {
    struct slab *slab; /* NULL before the first */
    unsigned lasts;
};

/* Prefers the slab with more lasting objects, and among equals the one with fewer expiration
 * dates. */
static void weigh_choice(struct slab *slab, unsigned lasts, struct choice *best)
{
    const struct slab *other = best->slab;

    if (!other || lasts > best->lasts ||
        (lasts == best->lasts && may_leave(slab, lasts) < may_leave(other, lasts)))
        *best = (struct choice){.slab = slab, .lasts = lasts};
}

/*
 * Chooses the slab to refill from. The first choice is, among the first partial slabs with free
 * objects, the one with most lasting objects. This slab is the least likely to become free, so the
 * others drain, and total fragmentation ends lowest (paper, Figure 5). Among equals the fewest
 * objects with an expiration date win, because they may stay as long as the others, whose end is
 * unknown. The second choice is a free slab. Rather than grow, the node then takes a slab that was
 * not touched, a draining one, one that will drain when callbacks have run, or one whose hollow
 * pages were purged.
 */
struct slab *node_choose(const struct slab_node *node)
{
    const struct list *partial = &node->lists[SLAB_PARTIAL];
    struct choice stays = {.slab = NULL}, leaves = {.slab = NULL};
    struct slab *slab;
    struct list *item;
    unsigned weighed = 0;

    list_for_each(item, partial)
    {
        unsigned lasts;

        slab = list_entry(item, struct slab, link);
        if (!slab->free || weighed++ == SLABS_WEIGHED)
            break;
        lasts = lasting(slab);
        weigh_choice(slab, lasts, is_left_alone(slab, lasts) ? &leaves : &stays);
    }
    if (stays.slab)
        return stays.slab;
    slab = list_first(&node->lists[SLAB_FREE], struct slab, link);
    if (slab || leaves.lasts)
        return slab ? slab : leaves.slab;
    slab = list_first(&node->lists[SLAB_DRAINING], struct slab, link);
    if (!slab || !slab->free)
        slab = leaves.slab;
    return slab ? slab : list_first(&node->lists[SLAB_HOLLOW], struct slab, link);
}
