/* SPDX-License-Identifier: MIT */
/* Names of functions, from the tables of the module that has them (see symbol.c). */
#ifndef OS_POSIX_SYMBOL_H
#define OS_POSIX_SYMBOL_H

#include <link.h>

#include "base/base.h"

struct symbol {
    uintptr_t start;
    char name[192]; /* cut if longer; mangled, as the module has it */
};

/* Only where modules are found without a lock (LOADED_KNOWN).
 *
 * Finds the function of the module that has the code at `pc`, among those that the module exports.
 * Returns false if there is none. Async-signal-safe; takes no lock and allocates nothing. The
 * module may be unloaded at the same time. */
bool symbol_at(const struct link_map *module, uintptr_t pc, struct symbol *found);

#endif /* OS_POSIX_SYMBOL_H */
