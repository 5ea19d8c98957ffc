/* SPDX-License-Identifier: MIT */
/* Faults of the program that an extension can explain (see faults.c). */
#ifndef DEBUG_FAULTS_H
#define DEBUG_FAULTS_H

/* Installs the handler; if called again, before any handler installed since. One thread at a
 * time. */
void faults_watch(void);

#endif /* DEBUG_FAULTS_H */
