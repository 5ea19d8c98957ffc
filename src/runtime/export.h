/* SPDX-License-Identifier: MIT */
/* Letting the process be watched from outside (export.c); what its description says is in export_layout.c. */
#ifndef RUNTIME_EXPORT_H
#define RUNTIME_EXPORT_H

#include "base/base.h"
#include "runtime/output.h"

/* Not by a signal: what options choose. A signal, which is to switch it on, leaves on what is on. */
void export_ask(uint64_t signal, bool on);
void export_fork_child(bool whole);

/* The number of the description's meaning: of names in it and of what they stand for. What is merely added, moved or resized does
 * not change it. */
#define EXPORT_LAYOUT 1
void export_layout_print(struct output *output);

#endif /* RUNTIME_EXPORT_H */
