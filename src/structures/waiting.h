/* SPDX-License-Identifier: MIT */
/* Where functions of tables may wait for readers: to destroy caches is such a wait. */
#ifndef STRUCTURES_WAITING_H
#define STRUCTURES_WAITING_H

#include <errno.h>

#include "os/os.h"
#include "rcu/may_wait.h"

/*
 * 0: this thread may. Or the error for the program: EBUSY in a handler of pthread_atfork; EDEADLK, with a report, where a wait for
 * readers of the domain would wait for itself. `what`: the public function, which `caller` called; `of`, `name`: "of table", and its name.
 */
static inline int waiting_error(const char *what, const char *of, const char *name,
                                const struct prudence_domain *domain, void *caller)
{
    const struct wait_request request = {.what = what, .of = of, .name = name, .caller = caller};

    if (os_lock_forking)
        return EBUSY;
    return may_wait_for_readers(&request, domain) ? 0 : EDEADLK;
}

#endif /* STRUCTURES_WAITING_H */
