/* SPDX-License-Identifier: MIT */
/* Where a thread may not wait for callbacks or destructors (see may_wait.c). */
#ifndef RCU_MAY_WAIT_H
#define RCU_MAY_WAIT_H

#include "base/base.h"

struct prudence_domain;

/* What a caller asks to wait for, on behalf of whom. */
struct wait_request {
    const char *what;               /* the public function */
    const char *of, *name;          /* "for domain" or "of cache", and its name */
    struct prudence_domain *domain; /* whose sections are in the way; NULL: those of any domain */
    void *caller;                   /* the address that called `what` */
    bool for_callbacks;             /* then not in a callback; else for destructors */
};

/* False: this thread would wait for itself. Reported, once for each calling place. */
bool may_wait_for_code(const struct wait_request *request);

/* The same for grace periods of a domain alone, and for no code of the program. */
bool may_wait_for_readers(const struct wait_request *request, const struct prudence_domain *domain);

#endif /* RCU_MAY_WAIT_H */
