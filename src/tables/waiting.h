/* SPDX-License-Identifier: MIT */
/* Says to functions of tables whether they may wait for readers, as destroying a cache does. */
#ifndef TABLES_WAITING_H
#define TABLES_WAITING_H

#include <prudence/structure.h>

/*
 * Returns 0 if this thread may wait, or else the error for the program: EBUSY in a handler of
 * pthread_atfork; EDEADLK, with a report, if the thread would wait for itself as a reader of the
 * domain. The report names the public function, the caller, and `of` and `name`, such as "of table"
 * and the table's name.
 */
static inline int waiting_error(const char *what, const char *of, const char *name,
                                struct prudence_domain *domain, void *caller)
{
    return prudence_domain_may_wait(domain, what, of, name, caller);
}

#endif /* TABLES_WAITING_H */
