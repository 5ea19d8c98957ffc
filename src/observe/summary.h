/* SPDX-License-Identifier: MIT */
/* The summary of memory in use (summary.c). */
#ifndef RUNTIME_SUMMARY_H
#define RUNTIME_SUMMARY_H

#include <stdbool.h>

#include "runtime/output.h"

/* Prints the summary as text, or as the first members of a JSON object. */
void summary_print(struct output *output, bool json);

/* Prints as text the figures that need no lock. */
void summary_print_without_locks(struct output *output);

#endif /* RUNTIME_SUMMARY_H */
