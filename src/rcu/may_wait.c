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
 *                     (urcu.c).
 *
 * The table in docs/reference/rcu.md lists every public function.
 */

#include "gp/user/domain.h"
#include "rcu/callbacks.h"
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

static void refuse(const struct wait_request *request, const char *where, const char *cache)
{
    if (gp_is_first_from(request->caller))
        os_report(
            "%s %s '%s', called from %p by thread %d, %s%s%s: the thread would wait for itself; "
            "call it elsewhere",
            request->what, request->of, request->name, request->caller, os_thread_id(), where,
            cache ? cache : "", cache ? "'" : "");
}

static const char *const in_section =
    "inside a read-side critical section (or online in a qsbr domain)";

bool may_wait_for_readers(const struct wait_request *request, const struct prudence_domain *domain)
{
    if (gp_may_wait_for(domain))
        return true;
    refuse(request, in_section, NULL);
    return false;
}

bool may_wait_for_code(const struct wait_request *request)
{
    const struct prudence_cache *destructs = destruct_here();

    if (destructs)
        refuse(request, "in a destructor of cache '", destructs->name);
    else if (request->for_callbacks && callback_here())
        refuse(request, "in a callback", NULL);
    else if (is_inside(request->domain))
        refuse(request, in_section, NULL);
    else
        return true;
    return false;
}
