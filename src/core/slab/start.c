/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Creates and frees the per-CPU data of the slab layer. Called before the first cache and after the
 * last. */
#include "slab/start.h"

#include "os/os.h"
#include "slab/extension.h"
#include "slab/preflush.h"
#include "slab/reclaim/budget.h"
#include "slab/reclaim/budget_share.h"
#include "slab/reclaim/limit.h"

/* Returns false if there is no memory. */
COLD bool slab_start(void)
{
    extensions_start();
    if (!limit_start() || !budget_start() || !preflush_start())
        return false;
    if (OS_BUDGET_IS_SHARED)
        budget_share_start();
    return true;
}

/* Called when no cache remains, and no thread calls any more. */
void slab_stop(void)
{
    preflush_stop();
    budget_stop();
    limit_stop();
}
