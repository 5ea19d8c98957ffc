// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * /sys/kernel/debug/prudence has a file for each cache with all statistics, `slabinfo` with a line
 * for each cache in the format of /proc/slabinfo, and `totals`.
 */

#include "module.h"
#include "slab/all_caches.h"

static struct dentry *folder;
static DEFINE_XARRAY(files); /* debugfs files, indexed by the cache's address */

static void number(struct seq_file *file, const char *name, u64 value)
{
    seq_printf(file, "%-24s %llu\n", name, value);
}

#define SHOW(name)                  number(file, #name, stats.name);
#define SHOW_COUNTER(name, meaning) SHOW(name)

static int cache_show(struct seq_file *file, void *unused)
{
    struct prudence_cache_stats stats;

    (void)unused;
    prudence_cache_stats(file->private, &stats);
    ALL_FIGURES(SHOW_COUNTER, SHOW)
    SHOW(fragmentation_permille)
    return 0;
}
DEFINE_SHOW_ATTRIBUTE(cache);

static int totals_show(struct seq_file *file, void *unused)
{
    struct prudence_stats stats;

    (void)unused;
    prudence_stats(&stats);
    PRUDENCE_TOTALS(SHOW)
    return 0;
}
DEFINE_SHOW_ATTRIBUTE(totals);

/* Follows the format of /proc/slabinfo up to the last colon. */
static void slabinfo_line(struct seq_file *file, struct prudence_cache *cache)
{
    struct prudence_cache_stats stats;
    u64 per_slab;

    prudence_cache_stats(cache, &stats);
    per_slab = div64_u64(stats.slab_size, stats.object_stride);
    seq_printf(file, "%-17s %6llu %6llu %6llu %4llu %4llu : tunables %4u %4u %4u", stats.name,
               stats.objects_live, stats.slabs_now * per_slab, stats.object_stride, per_slab,
               stats.slab_size >> PAGE_SHIFT, 0, 0, 0);
    seq_printf(file, " : slabdata %6llu %6llu %6u", stats.slabs_now, stats.slabs_now, 0);
    seq_printf(file, " : prudence %8llu %8llu %6llu %10llu %3llu %8llu %8llu %6llu\n",
               stats.objects_latent, stats.objects_cached, stats.slabs_peak, stats.allocations,
               stats.allocations ? div64_u64(stats.hits * 100, stats.allocations) : 0,
               stats.object_cache_churns, stats.slab_churns, stats.fragmentation_permille);
}

/*
 * A line at a time, so the buffer stays a page. The lock is not held between two reads, so caches
 * are counted from the start of the list, as in /proc/slabinfo; position 0 is the head.
 */
static void *slabinfo_start(struct seq_file *file, loff_t *position)
{
    struct list *item = &slab_caches;

    (void)file;
    os_lock_take(&slab_caches_lock);
    for (loff_t left = *position; left; left--) {
        item = item->next;
        if (item == &slab_caches)
            return NULL;
    }
    return item;
}

static void *slabinfo_next(struct seq_file *file, void *item, loff_t *position)
{
    struct list *next = ((struct list *)item)->next;

    (void)file;
    ++*position;
    return next == &slab_caches ? NULL : next;
}

static void slabinfo_stop(struct seq_file *file, void *item)
{
    (void)file;
    (void)item;
    os_lock_release(&slab_caches_lock);
}

static int slabinfo_show(struct seq_file *file, void *item)
{
    if (item != &slab_caches)
        slabinfo_line(file, list_entry((struct list *)item, struct prudence_cache, link));
    else
        seq_puts(file, "slabinfo - version: 2.1\n"
                       "# name            <active_objs> <num_objs> <objsize> <objperslab> "
                       "<pagesperslab> : tunables <limit> <batchcount> <sharedfactor>"
                       " : slabdata <active_slabs> <num_slabs> <sharedavail>"
                       " : prudence <latent> <cached> <peak_slabs> <allocs> <hits%> <churns>"
                       " <slab_churns> <f_t_permille>\n");
    return 0;
}

static const struct seq_operations slabinfo_sops = {
    .start = slabinfo_start,
    .next = slabinfo_next,
    .stop = slabinfo_stop,
    .show = slabinfo_show,
};
DEFINE_SEQ_ATTRIBUTE(slabinfo);

void debugfs_add(struct prudence_cache *cache)
{
    struct dentry *file = debugfs_lookup(cache->name, folder);

    /* A second cache of the same name gets no file, but slabinfo lists both. In a kernel without
     * debugfs, each of these functions returns an error. */
    if (!IS_ERR_OR_NULL(file)) {
        dput(file);
        return;
    }
    file = debugfs_create_file(cache->name, 0444, folder, cache, &cache_fops);
    if (!IS_ERR(file) && xa_is_err(xa_store(&files, (unsigned long)cache, file, GFP_KERNEL)))
        debugfs_remove(file);
}

/* Removes the cache's file and waits for the readers. */
void debugfs_forget(struct prudence_cache *cache)
{
    debugfs_remove(xa_erase(&files, (unsigned long)cache));
}

void debugfs_start(void)
{
    folder = debugfs_create_dir("prudence", NULL);
    debugfs_create_file("slabinfo", 0444, folder, NULL, &slabinfo_fops);
    debugfs_create_file("totals", 0444, folder, NULL, &totals_fops);
}

void debugfs_stop(void)
{
    debugfs_remove_recursive(folder);
    xa_destroy(&files);
}
