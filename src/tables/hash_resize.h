/* SPDX-License-Identifier: MIT */
/* Resizing (see hash_resize.c). */
#ifndef TABLES_HASH_RESIZE_H
#define TABLES_HASH_RESIZE_H

#include "tables/hash.h"

/* Take and release `stepping`, the right to take steps. */
bool hash_resize_try_stepping(struct hash_table *table);
void hash_resize_take_stepping(struct hash_table *table);
void hash_resize_end_stepping(struct hash_table *table);

/* Begins a resize, unless one is under way or the view has changed. The caller holds neither
 * `stepping` nor a bucket. Returns false if there is no memory. */
bool hash_resize_begin(struct hash_table *table, uintptr_t view, unsigned order);

/* Called after an update of a table that leaves_outside, outside of sections. A deferral may wait
 * there, so latent_limit holds strictly. */
void hash_resize_leave_array(struct hash_table *table);

/* Take a step of a resize, if one is under way; begin a resize, if the number of objects asks for
 * one. */
void hash_resize_step(struct hash_table *table);
void hash_resize_follow_count(struct hash_table *table);

#endif /* TABLES_HASH_RESIZE_H */
