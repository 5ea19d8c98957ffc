/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Hides the differences between kernels 6.1 to 7.3. Timers and trace macros have their own
 * headers. */
#ifndef PRUDENCE_COMPAT_H
#define PRUDENCE_COMPAT_H

#include <linux/version.h>

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 7, 0)
/* The kernel allocates the shrinker. */
static inline struct shrinker *compat_shrinker_register(const struct shrinker *like,
                                                        const char *name)
{
    struct shrinker *shrinker = shrinker_alloc(0, "%s", name);

    if (!shrinker)
        return NULL;
    shrinker->count_objects = like->count_objects;
    shrinker->scan_objects = like->scan_objects;
    shrinker->seeks = like->seeks;
    shrinker->batch = like->batch;
    shrinker_register(shrinker);
    return shrinker;
}

static inline void compat_shrinker_unregister(struct shrinker *shrinker)
{
    shrinker_free(shrinker);
}
#else
static inline struct shrinker *compat_shrinker_register(struct shrinker *like, const char *name)
{
    return register_shrinker(like, "%s", name) ? NULL : like;
}

static inline void compat_shrinker_unregister(struct shrinker *shrinker)
{
    unregister_shrinker(shrinker);
}
#endif

#endif /* PRUDENCE_COMPAT_H */
