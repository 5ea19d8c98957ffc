/* SPDX-License-Identifier: MIT */
/*
 * Grace periods for programs: waits, which may be expedited, and the polled interface
 * (<prudence/rcu.h>, <prudence/poll.h>). Callers hold no lock of the library.
 */
#include <errno.h>

#include <prudence/poll.h>

#include "gp/user/domain.h"
#include "gp/user/drive.h"
#include "gp/user/may_wait.h"
#include "gp/user/wait_request.h"

#define PATIENCE_NS 100000

static prudence_gp_t given(gp_cookie cookie)
{
    return (prudence_gp_t){.private_value = cookie.value};
}

static gp_cookie taken(prudence_gp_t cookie)
{
    return (gp_cookie){cookie.private_value};
}

static bool poll_is_over(struct prudence_domain *domain, prudence_gp_t cookie)
{
    if (!gp_poll(domain, taken(cookie)))
        return false;
    gp_drive_tell_over(domain);
    return true;
}

/* Requests and drives for a short time without sleeping. The caller may wait. */
static void hurry(struct prudence_domain *domain, gp_cookie cookie)
{
    uint64_t end = os_clock_ns() + PATIENCE_NS;

    while (!gp_poll(domain, cookie) && os_clock_ns() < end) {
        gp_request(domain, cookie);
        gp_drive(domain);
        os_relax();
    }
}

/* Reports a wait that would never end, with the place of the call. */
static void report_self_wait(const char *what, const struct prudence_domain *domain, void *caller)
{
    os_report(
        "%s for domain '%s', called from %p, inside a read-side critical section of this "
        "thread (or online in a qsbr domain): the thread would wait for itself; leave the section, "
        "or go offline, first",
        what, domain->name, caller);
}

static int poll_synchronize(struct prudence_domain *domain, gp_cookie cookie, bool expedited,
                            const char *what, void *caller)
{
    uint64_t was_online;

    if (os_lock_forking)
        return EBUSY; /* see wait_request.c */
    if (!gp_may_leave_and_wait(domain, domain)) {
        if (gp_is_first_from(caller))
            report_self_wait(what, domain, caller);
        return EDEADLK;
    }
    was_online = gp_leave_to_wait(domain);
    if (expedited)
        hurry(domain, cookie);
    gp_wait(domain, cookie, 0);
    gp_return_from_wait(domain, was_online);
    return 0;
}

/* Waits in the default domain; aborts where the wait would never end. */
static void wait_or_abort(const char *what, gp_cookie cookie, void *caller)
{
    const struct wait_request request = {.what = what,
                                         .of = "for domain",
                                         .name = prudence_default.name,
                                         .caller = caller,
                                         .returns_nothing = true};

    if (!gp_may_wait_for(&prudence_default)) {
        report_self_wait(what, &prudence_default, caller);
        wait_request_abort(what);
    }
    wait_request_wait(&request, &prudence_default, cookie);
}

void prudence_synchronize(void)
{
    wait_or_abort("prudence_synchronize", gp_snapshot(&prudence_default),
                  __builtin_return_address(0));
}

prudence_gp_t prudence_gp_get_state(void)
{
    return prudence_domain_get_state(&prudence_default);
}

prudence_gp_t prudence_gp_start_poll(void)
{
    return prudence_domain_start_poll(&prudence_default);
}

bool prudence_gp_poll_state(prudence_gp_t cookie)
{
    return prudence_domain_poll_state(&prudence_default, cookie);
}

void prudence_gp_cond_synchronize(prudence_gp_t cookie)
{
    if (!poll_is_over(&prudence_default, cookie))
        wait_or_abort("prudence_gp_cond_synchronize", taken(cookie), __builtin_return_address(0));
}

prudence_gp_t prudence_domain_get_state(struct prudence_domain *domain)
{
    DOMAIN_CHECK(domain);
    return given(gp_snapshot(domain));
}

prudence_gp_t prudence_domain_start_poll(struct prudence_domain *domain)
{
    gp_cookie cookie;

    DOMAIN_CHECK(domain);
    cookie = gp_snapshot(domain);
    gp_request(domain, cookie);
    return given(cookie);
}

bool prudence_domain_poll_state(struct prudence_domain *domain, prudence_gp_t cookie)
{
    DOMAIN_CHECK(domain);
    if (poll_is_over(domain, cookie))
        return true;
    gp_drive(domain); /* ends a grace period that was started; starts none */
    return poll_is_over(domain, cookie);
}

int prudence_domain_synchronize(struct prudence_domain *domain)
{
    DOMAIN_CHECK(domain);
    return poll_synchronize(domain, gp_snapshot(domain), false, "prudence_domain_synchronize",
                            __builtin_return_address(0));
}

prudence_gp_t prudence_domain_get_completed(struct prudence_domain *domain)
{
    DOMAIN_CHECK(domain);
    return (prudence_gp_t){load_relaxed(&domain->progress.completed)};
}

prudence_gp_t prudence_domain_start_poll_expedited(struct prudence_domain *domain)
{
    gp_cookie cookie;

    DOMAIN_CHECK(domain);
    cookie = gp_snapshot(domain);
    gp_request(domain, cookie);
    gp_drive(domain);
    return given(cookie);
}

int prudence_domain_cond_synchronize(struct prudence_domain *domain, prudence_gp_t cookie)
{
    DOMAIN_CHECK(domain);
    if (poll_is_over(domain, cookie))
        return 0;
    return poll_synchronize(domain, taken(cookie), false, "prudence_domain_cond_synchronize",
                            __builtin_return_address(0));
}

int prudence_domain_cond_synchronize_expedited(struct prudence_domain *domain, prudence_gp_t cookie)
{
    DOMAIN_CHECK(domain);
    if (poll_is_over(domain, cookie))
        return 0;
    return poll_synchronize(domain, taken(cookie), true,
                            "prudence_domain_cond_synchronize_expedited",
                            __builtin_return_address(0));
}

int prudence_domain_synchronize_expedited(struct prudence_domain *domain)
{
    DOMAIN_CHECK(domain);
    return poll_synchronize(domain, gp_snapshot(domain), true,
                            "prudence_domain_synchronize_expedited", __builtin_return_address(0));
}

prudence_gp_t prudence_gp_get_completed(void)
{
    return prudence_domain_get_completed(&prudence_default);
}

prudence_gp_t prudence_gp_start_poll_expedited(void)
{
    return prudence_domain_start_poll_expedited(&prudence_default);
}

void prudence_gp_cond_synchronize_expedited(prudence_gp_t cookie)
{
    if (poll_is_over(&prudence_default, cookie))
        return;
    if (gp_may_wait_for(&prudence_default))
        hurry(&prudence_default, taken(cookie));
    wait_or_abort("prudence_gp_cond_synchronize_expedited", taken(cookie),
                  __builtin_return_address(0));
}

void prudence_synchronize_expedited(void)
{
    gp_cookie cookie = gp_snapshot(&prudence_default);

    if (gp_may_wait_for(&prudence_default))
        hurry(&prudence_default, cookie);
    wait_or_abort("prudence_synchronize_expedited", cookie, __builtin_return_address(0));
}
