/* SPDX-License-Identifier: MIT */
/* The table of extensions (see extensions.c). */
#ifndef RUNTIME_EXTENSIONS_H
#define RUNTIME_EXTENSIONS_H

/* Fills the places of extensions that entered themselves. Called before the slab layer starts. */
void extensions_enter(void);

/* Gives up freed objects of all caches that are kept to find mistakes. Blocks that are closed
 * stay. */
void extensions_flush_all(void);

#endif /* RUNTIME_EXTENSIONS_H */
