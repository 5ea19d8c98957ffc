/* SPDX-License-Identifier: MIT */
/* What holds memory: summary.c. */
#ifndef RUNTIME_SUMMARY_H
#define RUNTIME_SUMMARY_H

#include <stdbool.h>

#include "runtime/output.h"

/* As text, or as the first members of a JSON object. */
void summary_print(struct output *output, bool json);

/* What is known without a lock, as text. */
void summary_print_without_locks(struct output *output);

#endif /* RUNTIME_SUMMARY_H */
