/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Functions that the parts of prudence.ko call in each other. */
#ifndef PRUDENCE_MODULE_H
#define PRUDENCE_MODULE_H

#include <linux/prudence.h>

#include "base/base.h"

/* caches.c */
int caches_start(void);
void caches_stop(void);

/* limits.c. Adapts the limits of latent memory; expedites a grace period past the budget. Any
 * context. */
void limits_look(void);

/* shrinker.c, for the shrinker, the OOM notifier, memory hotplug and quiet caches */
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
