/* SPDX-License-Identifier: MIT */
/*
 * A wait for readers that a program asks for is refused where the thread would wait for itself: in
 * a section that the wait is for, or while a hazard pointer of the thread names what waits. It is
 * refused in a handler of pthread_atfork that runs between the library's own, too, because a reader
 * that allocates waits for the end of the fork. A function that returns nothing cannot refuse
 * there: it waits, because most readers leave without the library, and ends the process if one does
 * not.
 *
 * The table in docs/reference/rcu.md lists every public function.
 */
#include "gp/user/wait_request.h"

#include <errno.h>

#include <prudence/structure.h>

#include "gp/user/domain.h"
#include "gp/user/may_wait.h"

/* The least time that such a wait lasts, because a program that wants short implicit waits does not
 * want its process to end. */
#define FORK_WAIT_LEAST UINT64_C(500000000) /* ns */

uint64_t gp_wait_max READ_MOSTLY = FORK_WAIT_LEAST;

static void wait_request_report(const struct wait_request *request, const char *where,
                                const char *cache, const char *why)
{
    if (gp_is_first_from(request->caller))
        os_report(
            "%s %s '%s', called from %p by thread %d, %s%s%s: the thread would wait for %s; "
            "call it elsewhere",
            request->what, request->of, request->name, request->caller, os_thread_id(), where,
            cache ? cache : "", cache ? "'" : "", why);
}

int wait_request_refuse(const struct wait_request *request, const char *where, const char *cache)
{
    wait_request_report(request, where, cache, "itself");
    return EDEADLK;
}

/* A program that gets the error may call again after the fork, so nothing is reported then. */
int wait_request_refuse_in_fork(const struct wait_request *request)
{
    if (request->returns_nothing)
        wait_request_report(request, "in a handler of pthread_atfork", NULL,
                            "threads that wait for the fork");
    return EBUSY;
}

void wait_request_abort(const char *what)
{
    os_panic("aborting: the caller of %s could free memory that readers still use", what);
}

void wait_request_wait(const struct wait_request *request, struct prudence_domain *domain,
                       gp_cookie cookie)
{
    uint64_t deadline = 0;

    if (os_lock_forking)
        deadline = os_clock_after(max_size(load_relaxed(&gp_wait_max), FORK_WAIT_LEAST));
    if (gp_wait(domain, cookie, deadline))
        return;
    wait_request_refuse_in_fork(request);
    wait_request_abort(request->what);
}

int wait_request_refuse_section(const struct wait_request *request)
{
    return wait_request_refuse(
        request, "inside a read-side critical section (or online in a qsbr domain)", NULL);
}

int wait_request_refuse_names(const struct wait_request *request)
{
    return wait_request_refuse(
        request, "while a hazard pointer of this thread names what waits there", NULL);
}

int wait_request_sections(const struct wait_request *request, const struct prudence_domain *domain)
{
    if (os_lock_forking)
        return wait_request_refuse_in_fork(request);
    return gp_may_wait_for_sections(domain) ? 0 : wait_request_refuse_section(request);
}

int wait_request_readers(const struct wait_request *request, const struct prudence_domain *domain)
{
    int error = wait_request_sections(request, domain);

    return !error && gp_may_wait_names_hold_up(domain) ? wait_request_refuse_names(request) : error;
}

int prudence_domain_may_wait(struct prudence_domain *domain, const char *function, const char *of,
                             const char *name, void *caller)
{
    const struct wait_request request = {
        .what = function, .of = of, .name = name, .caller = caller};

    if (!domain)
        domain = prudence_default_domain();
    if (function || os_lock_forking)
        return wait_request_readers(&request, domain);
    return gp_may_wait_for(domain) ? 0 : EDEADLK;
}
