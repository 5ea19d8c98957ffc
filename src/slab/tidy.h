/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Tidying: what has not been wanted for long goes back. */
#ifndef SLAB_TIDY_H
#define SLAB_TIDY_H

#include "base/base.h"
#include "slab/drain.h"

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
/* A look at one CPU's caches, after tidy_is_wanted_on() has said that it is worth it. It begins as {.place.cpu = CPU}. */
struct tidy_pass {
    struct prudence_cache *cache; /* whose turn it is, held; NULL: none's */
    struct drain_place place;
};
bool tidy_is_wanted_on(unsigned cpu);
bool tidy_pass(struct tidy_pass *pass, unsigned moves);
void tidy_pass_end(struct tidy_pass *pass);

#endif /* SLAB_TIDY_H */
