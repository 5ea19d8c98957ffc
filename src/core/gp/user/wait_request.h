/* SPDX-License-Identifier: MIT */
/* Waits that a program asks for, where its thread may not wait (see wait_request.c). */
#ifndef GP_USER_WAIT_REQUEST_H
#define GP_USER_WAIT_REQUEST_H

#include "gp/gp.h"

extern uint64_t gp_wait_max; /* ns; the option wait_max */

/* The wait that a caller asks for, and on whose behalf. */
struct wait_request {
    const char *what;      /* the public function */
    const char *of, *name; /* "for domain" or "of cache", and the name */
    /* the only domain whose sections forbid the wait; NULL: any domain */
    struct prudence_domain *domain;
    const struct prudence_domain *waits_for; /* whose grace periods must end; or NULL */
    /* the caller calls gp_leave_to_wait(leaves) if it may wait; NULL: it does not */
    const struct prudence_domain *leaves;
    void *caller;         /* the address that called the public function */
    bool for_callbacks;   /* for callbacks, so not in a callback; otherwise for destructors */
    bool returns_nothing; /* the public function cannot return an error */
};

/*
 * Return 0 if this thread may wait for grace periods of the domain, or else the error for the
 * program: EDEADLK if the thread would wait for itself, which is reported once for each calling
 * place; EBUSY in a handler of pthread_atfork that runs between the library's own, reported if
 * `returns_nothing`. The first does not care about names of this thread.
 */
int wait_request_sections(const struct wait_request *request, const struct prudence_domain *domain);
int wait_request_readers(const struct wait_request *request, const struct prudence_domain *domain);

/* Reports that the caller is at a place where the thread would wait for itself, and returns
 * EDEADLK. `cache` is a name that belongs to the place, or NULL. */
int wait_request_refuse(const struct wait_request *request, const char *where, const char *cache);
int wait_request_refuse_section(const struct wait_request *request);

/* Reports that a name of this thread is blocking, and returns EDEADLK. */
int wait_request_refuse_names(const struct wait_request *request);

/* Returns EBUSY. */
int wait_request_refuse_in_fork(const struct wait_request *request);

/* Ends the process, after a report, for a function that returns nothing and cannot wait. */
void wait_request_abort(const char *what) __attribute__((noreturn));

/* Waits for a function that returns nothing. In a handler of pthread_atfork that runs between the
 * library's own, reports the caller and ends the process if the wait is not over after wait_max (at
 * least 500 ms), because a reader may wait for the end of the fork. Holds no lock. */
void wait_request_wait(const struct wait_request *request, struct prudence_domain *domain,
                       gp_cookie cookie);

#endif /* GP_USER_WAIT_REQUEST_H */
