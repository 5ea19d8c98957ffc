/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Garbage under its limit: deferrals and growth are held back. */
#ifndef SLAB_THROTTLE_H
#define SLAB_THROTTLE_H

#include "gp/gp.h"
#include "os/os.h"

struct prudence_cache;

void latent_take_back_here(void);
bool latent_throttle(struct prudence_cache *cache, os_alloc_flags flags);
struct throttle {   /* of a thread that is held back */
    uint64_t began; /* ns; 0: not yet */
    uint64_t pause; /* ns: its last nap */
    bool has_turn;  /* to look; the others sleep */
    bool slept;     /* while another looked */
    bool looked;    /* at all CPUs; what it closed there is safe by `cookie` */
    gp_cookie cookie;
};
bool latent_make_room(struct prudence_cache *cache, size_t bytes, struct throttle *throttle);
bool latent_wait(struct prudence_cache *cache);
void throttle_fork_child(void);

#endif /* SLAB_THROTTLE_H */
