/* SPDX-License-Identifier: MIT */
/* Lets other processes watch this one (export.c); export_layout.c describes the figures. */
#ifndef RUNTIME_EXPORT_H
#define RUNTIME_EXPORT_H

#include "base/base.h"
#include "runtime/output.h"

/* Applies the option. `signal` (0 if none) is to switch the export on; naming one leaves an export
 * on that is already on. With neither, the export ends. */
void export_ask(uint64_t signal, bool on);
void export_fork_child(bool whole);

/* Version of the description. Changes when a name disappears or means something else, not when a
 * member is added, moved or resized. */
#define EXPORT_LAYOUT 2
void export_layout_print(struct output *output);

#endif /* RUNTIME_EXPORT_H */
