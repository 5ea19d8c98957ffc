/* SPDX-License-Identifier: MIT */
/* The summary of memory in use (summary.c). */
#ifndef OBSERVE_SUMMARY_H
#define OBSERVE_SUMMARY_H

#include <stdbool.h>

#include "observe/output.h"

/* Prints the summary as text, or as the first members of a JSON object. */
void summary_print(struct output *output, bool json);

/* Prints as text the figures that need no lock. */
void summary_print_without_locks(struct output *output);

#endif /* OBSERVE_SUMMARY_H */
