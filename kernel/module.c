// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* prudence.ko: module parameters, start and stop, and the extension that cleans free objects. */
#include "annotate.h"
#include "gp_kernel.h"
#include "module.h"
#include "os_kernel.h"
#include "slab/all_caches.h"
#include "slab/extension.h"
#include "slab/node.h"
#include "slab/node_choose.h"
#include "slab/preflush.h"
#include "slab/reclaim/decay.h"
#include "slab/reclaim/limit.h"
#include "slab/reuse.h"
#include "slab/slab.h"
#include "slab/start.h"

/* The helper thread always exists, so this may change at any time. */
static bool preflush = true;

static int set_preflush(const char *text, const struct kernel_param *param)
{
    int error = param_set_bool(text, param);

    store_relaxed(&preflush_enabled, preflush);
    return error;
}

static const struct kernel_param_ops preflush_ops = {
    .flags = KERNEL_PARAM_OPS_FL_NOARG, .set = set_preflush, .get = param_get_bool};
module_param_cb(preflush, &preflush_ops, &preflush, 0644);
MODULE_PARM_DESC(preflush, "move latent objects to their slabs in idle time");

module_param_named(spare_latent, slab_spares_latent, bool, 0644);
MODULE_PARM_DESC(spare_latent, "take from a free slab before one that is mostly latent");

static bool kasan = IS_ENABLED(CONFIG_KASAN_GENERIC);
module_param(kasan, bool, 0444);
MODULE_PARM_DESC(kasan, "inform KASAN when deferred objects become free; closes the fast paths");

/* Zeroes deferred memory for init_on_free once the grace period is over, never before. */
static bool object_is_free_now(struct slab *slab, void *object)
{
    if (zeroed_when_free(slab->cache))
        memset(object, 0, slab_object_bytes(slab));
    annotate_free(slab->cache, object, slab_object_bytes(slab));
    return true;
}

static bool all_are_free(struct slab *slab)
{
    for (unsigned i = 0; i < slab->capacity && slab->cache->percpu; i++)
        annotate_free(slab->cache, slab_object(slab, i, slab->cache->body->stride), slab->cache->body->stride);
    return true;
}

static void pages_go(struct slab *slab)
{
    annotate_live(slab->cache, slab->pages, slab->bytes);
}

static enum extension_wish is_wanted(const struct cache_layout *layout)
{
    (void)layout;
    return extension_wanted_if(want_init_on_free() || kasan);
}

static const struct slab_extension clean_extension = {
    .wants = is_wanted, .made = all_are_free, .going = pages_go, .safe = object_is_free_now};

const struct slab_extension *const slab_extensions[OS_EXTENSIONS] = {&clean_extension};
const struct reuse_upcalls reuse_upcalls = {.may_reuse = NULL}; /* no cache has a destructor */

static void stop(void)
{
    prudence_shrinker_stop();
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
    limit_change(
        0); /* deferrals never wait in a kernel; limits.c holds allocations back instead */
    preflush_enabled = preflush;
    decay_helper = true;
    preflush_start_helper();
    error = hotplug_start();
    if (!error)
        error = caches_start();
    if (!error)
        error = prudence_shrinker_start();
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

postcore_initcall(prudence_start); /* as soon as debugfs is there; of a module, when it is loaded */
module_exit(prudence_stop);
MODULE_DESCRIPTION("A slab memory allocator that knows about deferred frees");
MODULE_AUTHOR("The Prudence authors");
MODULE_LICENSE("Dual MIT/GPL");
