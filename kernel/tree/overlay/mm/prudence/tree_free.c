// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Frees of objects that may be SLUB's: the page map knows whose a page is, without a look at the page. An object is live, so its
 * page cannot change hands meanwhile.
 */
#include <linux/prudence_tree.h>

#include "slab/slab.h"

bool prudence_tree_try_free(void *object)
{
    if (!slab_of(object))
        return false;
    prudence_kfree(object);
    return true;
}
EXPORT_SYMBOL_GPL(prudence_tree_try_free);

bool prudence_tree_try_defer(void *object)
{
    if (!slab_of(object))
        return false;
    prudence_kfree_deferred(object);
    return true;
}
EXPORT_SYMBOL_GPL(prudence_tree_try_defer);
