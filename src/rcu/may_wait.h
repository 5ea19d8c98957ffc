/* SPDX-License-Identifier: MIT */
/* Places where a thread may not wait for callbacks or destructors (see may_wait.c). */
#ifndef RCU_MAY_WAIT_H
#define RCU_MAY_WAIT_H

#include "base/base.h"

struct prudence_domain;

/* The wait that a caller asks for, and on whose behalf. */
struct wait_request {
    const char *what;      /* the public function */
    const char *of, *name; /* "for domain" or "of cache", and the name */
    /* the only domain whose sections forbid the wait; NULL: any domain */
    struct prudence_domain *domain;
    const struct prudence_domain *waits_for; /* whose grace periods must end; or NULL */
    void *caller;                            /* the address that called the public function */
    bool for_callbacks;   /* for callbacks, so not in a callback; otherwise for destructors */
    bool returns_nothing; /* the public function cannot return an error */
};

/*
 * Returns 0 if this thread may wait, or else the error for the program: EDEADLK if the thread would
 * wait for itself, which is reported once for each calling place; EBUSY in a handler of
 * pthread_atfork that runs between the library's own, reported if `returns_nothing`.
 */
int may_wait_for_code(const struct wait_request *request);

/* Same for grace periods of one domain, without any code of the program. The second does not care
 * about names of this thread. */
int may_wait_for_readers(const struct wait_request *request, const struct prudence_domain *domain);
int may_wait_for_sections(const struct wait_request *request, const struct prudence_domain *domain);

/* Reports that a name of this thread is in the way, and returns EDEADLK. */
int may_wait_refuse_names(const struct wait_request *request);

#endif /* RCU_MAY_WAIT_H */
