// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* prudence.ko: beginning and end. */
#include "gp_kernel.h"
#include "module.h"
#include "os_kernel.h"

static bool preflush = true;
module_param(preflush, bool, 0444);
MODULE_PARM_DESC(preflush, "move latent objects to their slabs in idle time");

/* init_on_free: deferred memory is zeroed when its grace period is over, never before. */
static void zero_safe_object(struct slab *slab, void *object)
{
    if (!slab->cache->constructor)
        memset(object, 0, slab_object_bytes(slab));
}

static void stop(void)
{
    relief_stop();
    caches_stop();
    hotplug_stop();
    debugfs_stop();
    gp_kernel_stop();
    os_kernel_stop();
    slab_stop();
}

static int __init prudence_start(void)
{
    int error = -ENOMEM;

    os_lock_init(&slab_caches_lock, OS_RANK_CACHES);
    gp_kernel_start();
    debugfs_start();
    if (!os_kernel_start() || !slab_start())
        goto failed;
    latent_limit_set(0); /* a deferral never waits in a kernel: relief.c has a budget instead */
    preflush_enabled = preflush;
    preflush_start_helper();
    if (want_init_on_free()) {
        slab_watch.wanted = true;
        slab_watch.safe = zero_safe_object;
    }
    error = hotplug_start();
    if (!error)
        error = caches_start();
    if (!error)
        error = relief_start();
    if (!error)
        return 0;
failed:
    stop();
    return error;
}

static void __exit prudence_stop(void)
{
    stop();
}

module_init(prudence_start);
module_exit(prudence_stop);
MODULE_DESCRIPTION("A slab memory allocator that knows about deferred frees");
MODULE_AUTHOR("The Prudence authors");
MODULE_LICENSE("Dual MIT/GPL");
