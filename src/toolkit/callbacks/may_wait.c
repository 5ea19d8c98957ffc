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
 *                     the thread that runs the code may wait for the end of the fork.
 *
 * The table in docs/reference/rcu.md lists every public function.
 */

#include <errno.h>

#include "gp/user/domain.h"
#include "gp/user/may_wait.h"
#include "toolkit/callbacks/callback_worker.h"
#include "toolkit/callbacks/destruct.h"
#include "toolkit/callbacks/may_wait.h"

static bool is_inside(const struct wait_request *request)
{
    struct prudence_domain *domain = request->domain;

    if (!domain)
        return !gp_may_leave_and_wait(request->leaves, NULL);
    if (domain->kind == PRUDENCE_DOMAIN_EXTERNAL || domain->kind == PRUDENCE_DOMAIN_SET)
        return !gp_may_wait_for(domain);
    return prudence_domain_read_lock_held(domain);
}

int may_wait_for_code(const struct wait_request *request)
{
    const struct prudence_cache *destructs = destruct_here();

    if (os_lock_forking)
        return wait_request_refuse_in_fork(request);
    if (destructs)
        return wait_request_refuse(request, "in a destructor of cache '", destructs->name);
    if (request->for_callbacks && callback_here())
        return wait_request_refuse(request, "in a callback", NULL);
    if (is_inside(request))
        return wait_request_refuse_section(request);
    return gp_may_wait_names_hold_up(request->waits_for) ? wait_request_refuse_names(request) : 0;
}
