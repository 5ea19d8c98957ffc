/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Tidying: what has not been wanted for long goes back. */
#ifndef SLAB_TIDY_H
#define SLAB_TIDY_H

#include "base/base.h"

struct prudence_cache;

extern bool slab_tidies;
uint64_t tidy_kept(void);
bool tidy_is_worth_it(void);
uint64_t tidy_rounds(void);
void tidy_forget(struct prudence_cache *cache);
void tidy_fork_child(void);
bool tidy_some(unsigned caches, unsigned moves);
void tidy_come_by(void);
void tidy_drive(void);

#endif /* SLAB_TIDY_H */
