/* SPDX-License-Identifier: MIT */
/*
 * External domains: grace periods of another scheme (for example liburcu), through a few functions.
 *
 * Grace period g of the domain is one foreign grace period that began after g was found in the
 * domain's sequence and a full fence was made. So g waits for every foreign section that could have
 * found an object unlinked before (drive.c). Foreign cookies are opaque, so one grace period is
 * under way at a time. When it is over the next begins, and covers everything requested in between.
 *
 * With polling, the driving thread begins and polls, one thread at a time (`driving`); others go
 * on. Without polling there is only a synchronize, which blocks for as long as the foreign readers
 * stay, and takes no deadline. So no thread that allocates, defers or polls ever calls synchronize.
 * A thread of the library does, which sleeps while no grace period is requested. That thread is
 * started with the domain, and in a forked child by the fork handler, never inside an allocation or
 * a deferral (ADR 7 says why). In a child without that thread, deferred objects become safe when a
 * thread waits without a deadline (gp_wait), because such a thread may block forever anyway.
 *
 * Sleeping. A requesting thread stores the goal (a compare-and-swap of the sequence), then reads
 * `asked`, and exchanges it if it is 0. All are sequentially consistent. The library's thread
 * clears `asked`, makes a full fence, and reads the goal once more. So it sees the goal, or is
 * woken.
 *
 * Fork waits a little for a running synchronize to return, because synchronize may hold foreign
 * locks, and keeps the next one from beginning. The child starts a thread of its own, for each
 * domain that is published, so a thread is started and its domain published with signals blocked.
 * If synchronize takes longer, the child's foreign scheme may hang; then only that thread hangs.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "fork_part.h"
#include "gp/user/domain.h"
#include "gp/user/drive.h"
#include "gp/user/stall.h"
#include "toolkit/domains/schemes.h"
#include "valid_attr.h"
#include "valid_name.h"

#define FORK_PATIENCE_NS 200000000

struct external {
    struct prudence_domain_ops ops;
    void *context;

    uint32_t driving; /* polling: taken by compare-and-swap; guards the next three */
    bool under_way;
    uint64_t goal;   /* the domain's goal for the foreign grace period under way */
    uint64_t cookie; /* the foreign cookie */

    uint32_t started;  /* the thread exists */
    uint32_t stopping; /* the thread shall end, and answers by started = 0 */
    uint32_t asked;    /* 0: the thread sleeps, or is about to check once more */
    uint32_t inside;   /* number of running synchronizes, the thread's and waiters'; atomic */
    uint32_t paused;   /* by fork: no synchronize may begin */

    struct reader_slot stall; /* stands for all foreign readers */
};

/* Number of external domains that know whether a thread is inside; atomic. */
static uint32_t externals;

/* Returns whether this thread is inside a foreign section; false if the scheme does not know. */
static bool reader_is_here(const struct prudence_domain *domain)
{
    const struct external *external = domain->external;
    int saved_errno = errno;
    bool here = domain->kind == PRUDENCE_DOMAIN_EXTERNAL && external->ops.read_lock_held &&
                external->ops.read_lock_held(external->context);

    errno = saved_errno;
    return here;
}

static bool is_inside_any(void)
{
    struct prudence_domain *domain;
    uint64_t after = 0;
    bool inside = false;

    while (!inside && gp_domains_visit(&domain, 1, &after)) {
        inside = reader_is_here(domain);
        gp_domain_leave(domain);
    }
    return inside;
}

/* Called without any lock held, because the foreign function may allocate. */
static bool external_is_inside(const struct prudence_domain *only)
{
    if (likely(!load_relaxed(&externals)))
        return false;
    os_foreign_call("read_lock_held of an external domain");
    return only ? domain_any(only, reader_is_here) : is_inside_any();
}

/* ------------------------------------------------------------------------------------- polling */

static void external_begin(struct prudence_domain *domain)
{
    struct external *external = domain->external;

    external->goal = load_acquire(&domain->shared.sequence);
    os_full_fence();
    os_foreign_call("start_poll of an external domain");
    external->cookie = external->ops.start_poll(external->context);
    external->under_way = true;
}

static void poll(struct prudence_domain *domain)
{
    struct external *external = domain->external;

    if (!external->under_way)
        external_begin(domain);
    os_foreign_call("poll_state of an external domain");
    if (!external->ops.poll_state(external->context, external->cookie))
        return;
    external->under_way = false;
    gp_drive_complete(domain, external->goal);
    if (sequence_before(external->goal, load_acquire(&domain->shared.sequence)))
        external_begin(domain);
}

static void drive_by_polling(struct prudence_domain *domain)
{
    struct external *external = domain->external;
    uint32_t nobody = 0;

    if (!compare_exchange(&external->driving, &nobody, 1u))
        return;
    add_relaxed(&domain->scans, 1);
    poll(domain);
    store_release(&external->driving, 0u);
}

/* -------------------------------------------------------------------------------- synchronizing */

static bool something_is_asked_for(struct prudence_domain *domain)
{
    return sequence_before(load_acquire(&domain->progress.completed),
                           load_acquire(&domain->shared.sequence));
}

/* Runs one foreign grace period in a thread that may block. Returns false during a fork, when none
 * may begin. */
static bool external_synchronize(struct prudence_domain *domain)
{
    struct external *external = domain->external;
    uint64_t goal;

    add_relaxed(&external->inside, 1);
    os_full_fence(); /* pairs with fork_prepare */
    if (load_acquire(&external->paused)) {
        sub_relaxed(&external->inside, 1);
        return false;
    }
    add_relaxed(&domain->scans, 1);
    goal = load_acquire(&domain->shared.sequence);
    os_full_fence();
    os_foreign_call("synchronize of an external domain");
    external->ops.synchronize(external->context);
    gp_drive_complete(domain, goal);
    __atomic_fetch_sub(&external->inside, 1, __ATOMIC_RELEASE);
    return true;
}

static void external_serve(void *argument)
{
    struct prudence_domain *domain = argument;
    struct external *external = domain->external;

    if (external->ops.thread_starts)
        external->ops.thread_starts(external->context);
    while (!load_acquire(&external->stopping)) {
        if (something_is_asked_for(domain)) {
            if (!external_synchronize(domain))
                os_sleep_ns(1000000);
            continue;
        }
        store_release(&external->asked, 0u);
        os_full_fence();
        if (!something_is_asked_for(domain) && !load_acquire(&external->stopping))
            os_word_wait(&external->asked, 0, 0);
    }
    if (external->ops.thread_ends)
        external->ops.thread_ends(external->context);
    store_release(&external->started, 0u); /* the last access, because the domain is freed next */
}

/* Blocks signals: a handler that forks must not come between a thread's start and the moment from
 * which a child knows of the domain or of the thread. Otherwise a child has no thread, or two. */
static sigset_t block_signals(void)
{
    sigset_t all, saved;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &saved);
    return saved;
}

/* Called with signals blocked. */
static bool start_thread(struct prudence_domain *domain)
{
    struct external *external = domain->external;

    if (external->ops.start_poll)
        return true;
    store_release(&external->started, 1u);
    if (os_thread_start("prudence-gp", -1, 0, external_serve, domain))
        return true;
    store_release(&external->started, 0u);
    return false;
}

static void start_missing_thread(struct prudence_domain *domain)
{
    sigset_t saved = block_signals();

    if (!load_acquire(&domain->external->started))
        start_thread(domain);
    pthread_sigmask(SIG_SETMASK, &saved, NULL);
}

/* Called without any lock held, because starting a thread allocates. */
static void external_start_in_child(void)
{
    struct prudence_domain *domain;
    uint64_t after = 0;
    int saved_errno = errno;

    while (domains_visit(&domain, 1, &after, false)) {
        if (domain->kind == PRUDENCE_DOMAIN_EXTERNAL)
            start_missing_thread(domain);
        gp_domain_leave(domain);
    }
    errno = saved_errno;
}

static void external_ask(struct external *external)
{
    if (!__atomic_exchange_n(&external->asked, 1u, __ATOMIC_SEQ_CST))
        os_word_wake(&external->asked);
}

/* ------------------------------------------------------------------------------------- drivers */

static void external_drive(struct prudence_domain *domain, uint64_t goal)
{
    struct external *external = domain->external;
    int saved_errno = errno;

    if (external->ops.start_poll)
        drive_by_polling(domain);
    else if (!load_ordered(&external->asked)) /* not before the goal is stored (AArch64) */
        external_ask(external);
    if (sequence_before(load_acquire(&domain->progress.completed), goal))
        stall_note(domain, &external->stall, load_relaxed(&domain->progress.completed));
    errno = saved_errno;
}

/* Synchronizes here if the library's thread is missing. */
static void external_block(struct prudence_domain *domain)
{
    if (!domain->external->ops.start_poll && !load_acquire(&domain->external->started))
        external_synchronize(domain);
}

static bool external_is_cheap(const struct prudence_domain *domain)
{
    (void)domain;
    return false;
}

static bool external_is_busy(const struct prudence_domain *domain)
{
    (void)domain; /* the caller asked before, without a lock */
    return false;
}

/* ---------------------------------------------------------------------------------------- life */

/* Takes the program's functions over to `ops`. Reports the first thing wrong with them. */
static bool ops_are_valid(const char *name, const struct prudence_domain_ops *given,
                          struct prudence_domain_ops *ops)
{
    static const char what[] = "prudence_domain_create_external";
    const struct attr_names names = {what, "domain", name, "ops", "prudence_domain_ops"};

    if (!given) {
        os_report("%s: domain '%s': ops is NULL", what, name);
        return false;
    }
    if (!attr_take(&names, given, ops, sizeof *ops, sizeof *ops))
        return false;
    if (!ops->start_poll != !ops->poll_state)
        os_report(
            "%s: domain '%s': ops has one of start_poll and poll_state, and needs both or none",
            what, name);
    else if (!ops->start_poll && !ops->synchronize)
        os_report("%s: domain '%s': ops has neither synchronize nor start_poll and poll_state",
                  what, name);
    else
        return true;
    return false;
}

struct prudence_domain *prudence_domain_create_external(const char *name,
                                                        const struct prudence_domain_ops *ops,
                                                        void *context)
{
    struct prudence_domain_ops known;
    struct prudence_domain *domain;
    struct external *external;
    sigset_t saved;
    bool started;

    if (!name_is_valid("prudence_domain_create_external", name) ||
        !ops_are_valid(name, ops, &known)) {
        errno = EINVAL;
        return NULL;
    }
    external = os_meta_alloc(sizeof *external);
    domain = external ? domain_make(name, PRUDENCE_DOMAIN_EXTERNAL, &gp_external) : NULL;
    if (!domain) {
        if (external)
            os_meta_free(external, sizeof *external);
        errno = ENOMEM;
        return NULL;
    }
    external->ops = known;
    external->context = context;
    domain_queue.keep(domain->callbacks, context);
    domain->external = external;
    saved = block_signals();
    started = start_thread(domain);
    if (started) {
        add_relaxed(&externals, known.read_lock_held != NULL);
        domain_publish(domain);
    }
    pthread_sigmask(SIG_SETMASK, &saved, NULL);
    if (started)
        return domain;
    domain_unmake(domain);
    os_meta_free(external, sizeof *external);
    errno = EAGAIN;
    return NULL;
}

static void external_close(struct prudence_domain *domain)
{
    struct external *external = domain->external;

    sub_relaxed(&externals, external->ops.read_lock_held != NULL);
    store_release(&external->stopping, 1u);
    while (load_acquire(&external->started)) {
        __atomic_store_n(&external->asked, 1u, __ATOMIC_SEQ_CST);
        os_word_wake(&external->asked);
        os_sleep_ns(50000);
    }
    os_meta_free(external, sizeof *external);
}

static void fork_prepare(struct prudence_domain *domain)
{
    struct external *external = domain->external;
    uint64_t deadline = os_clock_ns() + FORK_PATIENCE_NS;

    store_release(&external->paused, 1u);
    os_full_fence(); /* pairs with synchronize */
    while (load_acquire(&external->inside) && os_clock_ns() < deadline)
        os_sleep_ns(50000);
}

static void fork_parent(struct prudence_domain *domain)
{
    store_release(&domain->external->paused, 0u);
}

static void external_fork_child(struct prudence_domain *domain)
{
    struct external *external = domain->external;

    external->driving = external->started = external->asked = external->inside = 0;
    external->under_way = false;
    external->paused = 0;
}

const struct gp_scheme gp_external = {
    .name = "external",
    .drive = external_drive,
    .block = external_block,
    .is_cheap = external_is_cheap,
    .is_busy = external_is_busy,
    .close = external_close,
    .fork_prepare = fork_prepare,
    .fork_parent = fork_parent,
    .is_inside = reader_is_here,
    .fork_child = external_fork_child,
};

const struct gp_part gp_external_part = {.is_inside = external_is_inside};

const struct fork_part external_fork_part = {
    .order = FORK_EXTERNAL, .name = "external domains", .revive = external_start_in_child};
