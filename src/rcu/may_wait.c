/* SPDX-License-Identifier: MIT */
/*
 * Waiting for callbacks or destructors means waiting for the program's own code. That code may wait
 * for grace periods, and the section, callback or destructor of the caller lasts until the wait
 * returns. So such a wait is refused
 *
 *   in a destructor   whatever the wait is for, because another destructor may wait for this one;
 *   in a callback     if the wait is for callbacks, because this one's worker runs them;
 *   in a section      because the section's grace period cannot end. Refused in sections of any
 *                     domain, because the code may wait for any; or of one domain alone, for
 *                     liburcu's barriers, because liburcu's flavours are independent of each other
 *                     (urcu.c);
 *   in a fork         in a handler of pthread_atfork that runs between the library's own, because
 *                     the thread that runs the code may wait for the end of the fork. The same
 *                     applies to waits for readers, because a reader that allocates waits for it.
 *
 * The table in docs/reference/rcu.md lists every public function.
 */

#include <errno.h>

#include <prudence/structure.h>

#include "gp/user/domain.h"
#include "rcu/callback_worker.h"
#include "rcu/destruct.h"
#include "rcu/may_wait.h"

static bool is_inside(struct prudence_domain *domain)
{
    if (!domain)
        return !gp_may_wait();
    if (domain->kind == PRUDENCE_DOMAIN_EXTERNAL || domain->kind == PRUDENCE_DOMAIN_SET)
        return !gp_may_wait_for(domain);
    return prudence_domain_read_lock_held(domain);
}

static void may_wait_report(const struct wait_request *request, const char *where,
                            const char *cache, const char *why)
{
    if (gp_is_first_from(request->caller))
        os_report(
            "%s %s '%s', called from %p by thread %d, %s%s%s: the thread would wait for %s; "
            "call it elsewhere",
            request->what, request->of, request->name, request->caller, os_thread_id(), where,
            cache ? cache : "", cache ? "'" : "", why);
}

static int may_wait_refuse(const struct wait_request *request, const char *where, const char *cache)
{
    may_wait_report(request, where, cache, "itself");
    return EDEADLK;
}

/* A program that gets the error may call again after the fork, so nothing is reported then. */
static int refuse_in_fork(const struct wait_request *request)
{
    if (request->returns_nothing)
        may_wait_report(request, "in a handler of pthread_atfork", NULL,
                        "threads that wait for the fork");
    return EBUSY;
}

static const char *const in_section =
    "inside a read-side critical section (or online in a qsbr domain)";

int prudence_domain_may_wait(struct prudence_domain *domain, const char *function, const char *of,
                             const char *name, void *caller)
{
    const struct wait_request request = {
        .what = function, .of = of, .name = name, .caller = caller};

    if (!domain)
        domain = prudence_default_domain();
    if (function || os_lock_forking)
        return may_wait_for_readers(&request, domain);
    return gp_may_wait_for(domain) ? 0 : EDEADLK;
}

int may_wait_refuse_names(const struct wait_request *request)
{
    return may_wait_refuse(request, "while a hazard pointer of this thread names what waits there",
                           NULL);
}

int may_wait_for_sections(const struct wait_request *request, const struct prudence_domain *domain)
{
    if (os_lock_forking)
        return refuse_in_fork(request);
    return gp_may_wait_for_sections(domain) ? 0 : may_wait_refuse(request, in_section, NULL);
}

int may_wait_for_readers(const struct wait_request *request, const struct prudence_domain *domain)
{
    int error = may_wait_for_sections(request, domain);

    return !error && gp_names_hold_up(domain) ? may_wait_refuse_names(request) : error;
}

int may_wait_for_code(const struct wait_request *request)
{
    const struct prudence_cache *destructs = destruct_here();

    if (os_lock_forking)
        return refuse_in_fork(request);
    if (destructs)
        return may_wait_refuse(request, "in a destructor of cache '", destructs->name);
    if (request->for_callbacks && callback_here())
        return may_wait_refuse(request, "in a callback", NULL);
    if (is_inside(request->domain))
        return may_wait_refuse(request, in_section, NULL);
    return gp_names_hold_up(request->waits_for) ? may_wait_refuse_names(request) : 0;
}
