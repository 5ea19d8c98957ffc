/* SPDX-License-Identifier: MIT */
/* Accesses that the system refuses (see fault_handler.c). */
#ifndef GUARD_FAULT_HANDLER_H
#define GUARD_FAULT_HANDLER_H

struct fault {
    const void *address;
    void *code; /* address of the instruction; NULL if unknown */
    enum fault_access { ACCESS_UNKNOWN, ACCESS_READ, ACCESS_WRITE } access;
};

/* Has a signal handler call `look` for each such access, before the program's own handler runs or
 * the process ends. A second call puts it in front of a handler that was installed since. Does
 * nothing while another thread does it. Called with no lock held that an allocation takes. */
void fault_handler_watch(void (*look)(const struct fault *fault));

void fault_handler_fork_child(void);

#endif /* GUARD_FAULT_HANDLER_H */
