/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Holds back deferrals and growth to keep deferred bytes under the limit. */
#ifndef SLAB_RECLAIM_THROTTLE_H
#define SLAB_RECLAIM_THROTTLE_H

#include "gp/gp.h"
#include "os/os.h"

struct prudence_cache;

void throttle_take_back_here(void);
bool throttle_growth(struct prudence_cache *cache, os_alloc_flags flags);
struct throttle {   /* state of a thread that is held back */
    uint64_t began; /* ns; 0 before the first wait */
    uint64_t pause; /* ns; length of the last nap */
    bool has_turn;  /* this thread searches for safe objects while the others sleep */
    bool slept;     /* slept while another thread checked */
    bool looked;    /* closed batches of all CPUs, safe by `cookie` */
    gp_cookie cookie;
};
bool throttle_make_room(struct prudence_cache *cache, size_t bytes, struct throttle *throttle);
bool throttle_until_safe(struct prudence_cache *cache, gp_cookie *cookie);
void throttle_fork_child(void);

#endif /* SLAB_RECLAIM_THROTTLE_H */
