/* SPDX-License-Identifier: MIT */
/* Cases of misuse with nodes of tables, for program_calls.c. */
#ifndef TESTS_MISUSE_CALLS_H
#define TESTS_MISUSE_CALLS_H

#include <stdbool.h>
#include <stddef.h>

/* Stores what a case is about. Returns false if there are not so many. */
bool node_case(size_t number, const char **table, const char **how);
/* Commits the misuse, prints what it led to, and ends the process. */
void node_misuse(size_t number);

#endif /* TESTS_MISUSE_CALLS_H */
