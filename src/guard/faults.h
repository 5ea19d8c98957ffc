/* SPDX-License-Identifier: MIT */
/* Faults of the program that an extension can explain (see faults.c). */
#ifndef GUARD_FAULTS_H
#define GUARD_FAULTS_H

/* Installs the handler; if called again, before any handler installed since. One thread at a
 * time. */
void faults_watch(void);

#endif /* GUARD_FAULTS_H */
