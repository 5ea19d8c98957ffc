/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* A handful: latent objects on their way from the idle helper to a node, under one cookie. */
#ifndef SLAB_HANDFUL_H
#define SLAB_HANDFUL_H

#include "gp/gp.h"

#define HANDFULS    32
#define HANDFUL_MAX 15
struct handful {
    struct handful *next;
    gp_cookie cookie;
    unsigned count;
    void *objects[HANDFUL_MAX];
};
struct handful *handful_claim(void);
void handful_return(struct handful *handful);

#endif /* SLAB_HANDFUL_H */
