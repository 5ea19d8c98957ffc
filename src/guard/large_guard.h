/* SPDX-License-Identifier: MIT */
/* The extension large guard puts guard pages around large blocks, and lets addresses rest when
 * freed (see large_guard.c). Guards all large blocks, or the first ones of a process. */
#ifndef GUARD_LARGE_GUARD_H
#define GUARD_LARGE_GUARD_H

#include "fork_part.h"
#include "guard/fault_handler.h"
#include "guard/settings.h"
#include "slab/extension.h"
#include "slab/slab.h"

enum { LARGE_GUARD_EXTENSION = 7 };   /* number of the extension */
enum { LARGE_GUARD_FIRST_MOST = 16 }; /* limit of the option guard_first */
extern const struct slab_extension large_guard_extension;

struct leaver;

/* A freed large block, whose pages are closed for a while. */
struct rest {
    struct leaver *leaver; /* lies in the memory that was the slab's */
    char *pages;
    size_t bytes, front, size; /* of all pages; before the block; of the block */
    size_t kept;               /* bytes that have memory */
    bool first;                /* one of the first blocks */
    bool aside;                /* all pages are set aside, as for each first block at rest */
};

/* The queue of these blocks; watchers read it. */
extern struct rest *large_guard_rests;
extern unsigned large_guard_room;

void large_guard_start(void);
void large_guard_look_at_fault(const struct fault *fault);

static inline bool has_large_guard(const struct slab *slab)
{
    return load_relaxed(&slab->extensions) & EXTENSION_BIT(LARGE_GUARD_EXTENSION);
}

extern const struct fork_part large_guard_fork_part;

#endif /* GUARD_LARGE_GUARD_H */
