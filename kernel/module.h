/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Private to kernel/: what the parts of prudence.ko offer each other. */
#ifndef PRUDENCE_MODULE_H
#define PRUDENCE_MODULE_H

#include <linux/prudence.h>

#include "base/base.h"

/* A cache's flags, beside those of src/slab: it has a constructor. Where there are flags at all, contents are not to
 * be zeroed just so (init_on_alloc, init_on_free). */
#define CACHE_CONSTRUCTED (1u << 16)

/* caches.c */
int caches_start(void);
void caches_stop(void);

/* limits.c: adapts the limits of latent memory, and expedites a grace period past its budget; any context */
void limits_look(void);

/* shrinker.c: shrinker, OOM, memory hotplug, quiet caches */
int prudence_shrinker_start(void);
void prudence_shrinker_stop(void);
void prudence_shrinker_note_deferral(void);

/* hotplug.c */
int hotplug_start(void);
void hotplug_stop(void);

/* debugfs.c */
void debugfs_start(void);
void debugfs_stop(void);
void debugfs_add(struct prudence_cache *cache);
void debugfs_forget(struct prudence_cache *cache);

#endif /* PRUDENCE_MODULE_H */
