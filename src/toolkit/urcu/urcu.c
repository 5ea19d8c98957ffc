/* SPDX-License-Identifier: MIT */
/*
 * Implements liburcu's callbacks (<prudence/urcu-compat.h>). A call_rcu_data is a queue with a
 * separate worker. The default one has the domain's queue, and each flavour has a worker that the
 * other's callbacks cannot hold up. A list has all that were made, for barriers. A barrier that
 * uses one outside the lock pins that one, which stays in the list until no barrier pins it. A
 * forked child keeps the pins of its thread only, which a list of the thread's walks names.
 *
 * Barriers while call_rcu_data_free runs. Callbacks only move from a made queue to the default one,
 * and a callback enters the default queue before leaving the other (callback_worker_move_queue).
 * The call_rcu_data stays in the list until the move is over. A barrier checks the list first,
 * and at the default queue last. So a callback queued before the barrier is in one of the queues
 * when the barrier checks there, or has returned.
 */
#define _GNU_SOURCE /* sched_getcpu */
#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include <prudence/urcu-compat.h>

#include "fork_part.h"
#include "gp/user/domain.h"
#include "gp/user/may_wait.h"
#include "gp/user/readers.h"
#include "heap/heap.h"
#include "toolkit/callbacks/call.h"
#include "toolkit/callbacks/callback_life.h"
#include "toolkit/callbacks/callback_queue.h"
#include "toolkit/callbacks/callback_wait.h"
#include "toolkit/callbacks/callback_worker.h"
#include "toolkit/callbacks/may_wait.h"

_Static_assert(sizeof(struct rcu_head) == sizeof(struct prudence_head) &&
                   offsetof(struct rcu_head, func) == offsetof(struct prudence_head, func),
               "one head, two names");

struct call_rcu_data {
    struct prudence_domain *domain;
    struct callback_queue *queue;
    struct callback_worker *worker; /* NULL: the domain's own */
    struct list link;               /* in `made`; guarded by crdp_lock, as the next two */
    uint32_t pins;                  /* barriers that use it */
    bool moved;                     /* empty from now on, so barriers skip it */
};

enum { DEFAULT, QSBR, FLAVOURS };

#define CPUS_MAX 1024

static struct os_lock crdp_lock = OS_LOCK_INIT(OS_RANK_URCU);
static struct list made = {&made, &made};
static struct call_rcu_data defaults[FLAVOURS];
static struct call_rcu_data *of_cpu[FLAVOURS][CPUS_MAX]; /* written under crdp_lock */
static uint32_t any_of_cpu[FLAVOURS];                    /* some CPU has one */
static __thread struct call_rcu_data *of_thread[FLAVOURS];

/* A walk over those that were made. `at` is pinned, and changes under crdp_lock with the pins. A
 * callback that a barrier runs may fork, and a fork handler may walk, so walks may be nested. */
struct made_walk {
    struct call_rcu_data *at;
    struct made_walk *outer;
};
static __thread struct made_walk *walks_here;
static struct prudence_domain *qsbr;

/* ------------------------------------------------------------------------------------- flavours */

static void urcu_start(void)
{
    process_start();
    qsbr = prudence_domain_create("urcu-qsbr", PRUDENCE_DOMAIN_QSBR, NULL);
    if (!qsbr)
        os_panic("no memory for the domain of urcu-qsbr");
    readers_make_lasting(qsbr);
    defaults[DEFAULT] = (struct call_rcu_data){.domain = &prudence_default,
                                               .queue = callback_queue_of(&prudence_default)};
    defaults[QSBR] = (struct call_rcu_data){.domain = qsbr, .queue = callback_queue_of(qsbr)};
    /* A thread online in qsbr may wait for callbacks of the other flavours, so those are not queued
     * after a callback that waits for quiescent states. Without memory for a worker, they are. */
    callback_worker_make(defaults[QSBR].queue, -1, false);
}

static void urcu_ready(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, urcu_start);
}

struct prudence_domain *prudence_urcu_qsbr(void)
{
    urcu_ready();
    return qsbr;
}

static unsigned flavour_of(const struct prudence_domain *domain)
{
    urcu_ready();
    return domain && domain != &prudence_default ? QSBR : DEFAULT;
}

/* ------------------------------------------------------------------------------------ which one */

struct call_rcu_data *prudence_urcu_default(struct prudence_domain *domain)
{
    return &defaults[flavour_of(domain)];
}

struct call_rcu_data *prudence_urcu_of_cpu(struct prudence_domain *domain, int cpu)
{
    return cpu >= 0 && cpu < CPUS_MAX ? load_acquire(&of_cpu[flavour_of(domain)][cpu]) : NULL;
}

struct call_rcu_data *prudence_urcu_of_thread(struct prudence_domain *domain)
{
    return of_thread[flavour_of(domain)];
}

/* Returns the worker of the thread, else that of the CPU if `per_cpu`, else the default one. */
static struct call_rcu_data *worker_to_use(struct prudence_domain *domain, bool per_cpu)
{
    unsigned flavour = flavour_of(domain);
    struct call_rcu_data *chosen = of_thread[flavour];

    if (!chosen && per_cpu)
        chosen = prudence_urcu_of_cpu(domain, sched_getcpu());
    return chosen ? chosen : &defaults[flavour];
}

struct call_rcu_data *prudence_urcu_current(struct prudence_domain *domain)
{
    return worker_to_use(domain, load_relaxed(&any_of_cpu[flavour_of(domain)]));
}

void prudence_urcu_set_thread(struct prudence_domain *domain, struct call_rcu_data *worker)
{
    of_thread[flavour_of(domain)] = worker;
}

/* As liburcu does, which says it twice. */
static int urcu_refuse(int error)
{
    errno = error;
    return -error;
}

int prudence_urcu_set_cpu(struct prudence_domain *domain, int cpu, struct call_rcu_data *worker)
{
    unsigned flavour = flavour_of(domain);
    bool taken;

    if (cpu < 0 || (unsigned)cpu >= os_cpu_count() || cpu >= CPUS_MAX)
        return urcu_refuse(EINVAL);
    os_lock_take(&crdp_lock);
    taken = worker && of_cpu[flavour][cpu];
    if (!taken)
        store_release(&of_cpu[flavour][cpu], worker);
    if (worker)
        store_relaxed(&any_of_cpu[flavour], 1u);
    os_lock_release(&crdp_lock);
    return taken ? urcu_refuse(EEXIST) : 0;
}

/* ------------------------------------------------------------------------------- made and freed */

struct call_rcu_data *prudence_urcu_create(struct prudence_domain *domain, unsigned long flags,
                                           int cpu_affinity)
{
    unsigned flavour = flavour_of(domain);
    struct call_rcu_data *data = os_meta_alloc(sizeof *data);

    if (!data)
        goto no_memory;
    data->domain = defaults[flavour].domain;
    data->queue = callback_queue_make(data->domain, 1);
    if (!data->queue)
        goto no_queue;
    data->worker = callback_worker_make(data->queue, cpu_affinity, flags & URCU_CALL_RCU_RT);
    if (!data->worker)
        goto no_worker;
    os_lock_take(&crdp_lock);
    list_append(&made, &data->link);
    os_lock_release(&crdp_lock);
    return data;
no_worker:
    callback_queue_release(data->queue);
no_queue:
    os_meta_free(data, sizeof *data);
no_memory:
    errno = ENOMEM;
    return NULL;
}

/* Hides `data` from new barriers, waits until no barrier pins it, and removes it from the list. */
static void unlist(struct call_rcu_data *data)
{
    os_lock_take(&crdp_lock);
    data->moved = true;
    while (data->pins > 0) {
        os_lock_release(&crdp_lock);
        os_sleep_ns(100000);
        os_lock_take(&crdp_lock);
    }
    list_remove(&data->link);
    os_lock_release(&crdp_lock);
}

static void urcu_release(struct call_rcu_data *data)
{
    callback_worker_move_queue(data->queue, callback_queue_of(data->domain));
    unlist(data);
    callback_queue_release(data->queue);
    callback_worker_release(data->worker);
    os_meta_free(data, sizeof *data);
}

/*
 * Returns whether the caller may wait for the program's callbacks (may_wait.c). liburcu's flavours
 * are independent of each other. A thread that is online in qsbr waits for callbacks of the others,
 * and stays online, because it may hold pointers. Inside a section of memb, waiting for callbacks
 * of qsbr is refused, because two such waits would wait for each other.
 */
static bool urcu_may_wait(struct prudence_domain *domain, const char *what, void *caller)
{
    struct wait_request request = {.what = what,
                                   .of = "for domain",
                                   .name = domain->name,
                                   .domain = domain == &prudence_default ? domain : NULL,
                                   .leaves = domain,
                                   .caller = caller,
                                   .for_callbacks = true,
                                   .returns_nothing = true};

    return !may_wait_for_code(&request);
}

/* Ends the worker. A thread that is online in qsbr stays so, because it may hold pointers, unless a
 * callback runs there: that may wait for this thread. Returns what gp_leave_to_wait() does. */
static uint64_t end_worker(const struct call_rcu_data *data)
{
    uint64_t was_online = 0;

    while (!callback_worker_ends(data->queue))
        if (!was_online && load_relaxed(&data->queue->current))
            was_online = gp_leave_to_wait(data->domain);
    return was_online;
}

/* Moves pending callbacks to the default worker, after waiting for a running one. */
void prudence_urcu_free(struct call_rcu_data *data)
{
    struct prudence_domain *domain;
    uint64_t was_online;

    if (!data || !data->worker)
        return;
    domain = data->domain;
    if (!urcu_may_wait(domain, "call_rcu_data_free", __builtin_return_address(0)))
        return;
    was_online = end_worker(data);
    urcu_release(data);
    gp_return_from_wait(domain, was_online);
}

int prudence_urcu_create_all(struct prudence_domain *domain, unsigned long flags)
{
    int cpus = (int)min_size(os_cpu_count(), CPUS_MAX); /* CPUs beyond use the default worker */

    for (int cpu = 0; cpu < cpus; cpu++) {
        struct call_rcu_data *data;

        if (prudence_urcu_of_cpu(domain, cpu))
            continue;
        data = prudence_urcu_create(domain, flags, cpu);
        if (!data)
            return -ENOMEM;
        if (prudence_urcu_set_cpu(domain, cpu, data)) /* another thread set one first; use that */
            prudence_urcu_free(data);
    }
    return 0;
}

/* A thread that found a worker for its CPU may be about to queue, inside a section, as liburcu
 * requires. So this removes the workers, waits for a grace period, and then frees them. */
static void free_all(unsigned flavour)
{
    struct call_rcu_data *data[CPUS_MAX] = {NULL};
    int cpus = (int)min_size(os_cpu_count(), CPUS_MAX);
    struct prudence_domain *domain = defaults[flavour].domain;

    for (int cpu = 0; cpu < cpus; cpu++) {
        data[cpu] = prudence_urcu_of_cpu(domain, cpu);
        if (data[cpu])
            prudence_urcu_set_cpu(domain, cpu, NULL);
    }
    gp_wait(domain, gp_snapshot(domain), 0);
    for (int cpu = 0; cpu < cpus; cpu++)
        if (data[cpu] && data[cpu]->worker)
            urcu_release(data[cpu]);
}

void prudence_urcu_free_all(struct prudence_domain *domain)
{
    unsigned flavour = flavour_of(domain);
    uint64_t was_online;

    if (!urcu_may_wait(defaults[flavour].domain, "free_all_cpu_call_rcu_data",
                       __builtin_return_address(0)))
        return;
    was_online = gp_leave_to_wait(defaults[flavour].domain);
    free_all(flavour);
    gp_return_from_wait(defaults[flavour].domain, was_online);
}

unsigned long prudence_urcu_thread(struct call_rcu_data *data)
{
    const struct callback_worker *worker = data->queue->worker;

    while (!load_acquire(&worker->thread)) {
        callback_worker_look_at(data->queue);
        os_sleep_ns(100000);
    }
    return worker->thread;
}

/* --------------------------------------------------------------------------- calls and barriers */

/* Queues inside a section, because liburcu promises that a worker found for this CPU exists until
 * the section ends. (A thread that is online in qsbr is inside one.) Asks once whether CPUs have
 * workers: a thread that found none, and so is in no section, must not find one after all. */
void prudence_urcu_call(struct prudence_domain *domain, struct rcu_head *head,
                        void (*func)(struct rcu_head *head))
{
    unsigned flavour = flavour_of(domain);
    bool per_cpu = load_relaxed(&any_of_cpu[flavour]), enters = per_cpu && flavour == DEFAULT;

    if (enters)
        prudence_domain_read_lock(&prudence_default);
    call_push(worker_to_use(domain, per_cpu)->queue, (struct prudence_head *)head,
              (void (*)(struct prudence_head *))(void (*)(void))func, "call_rcu");
    if (enters)
        prudence_domain_read_unlock(&prudence_default);
}

/* A signal handler that forks may come anywhere, so the walk is whole before it is linked. */
static void walk_begin(struct made_walk *walk)
{
    *walk = (struct made_walk){.outer = walks_here};
    compiler_barrier();
    walks_here = walk;
}

/* Returns and pins the next one made for the domain. Unpins the last one, which a pin kept listed.
 * After the last one, the walk is over. */
static struct call_rcu_data *next_made(const struct prudence_domain *domain, struct made_walk *walk)
{
    struct call_rcu_data *next = NULL;
    struct list *item;

    os_lock_take(&crdp_lock);
    for (item = walk->at ? walk->at->link.next : made.next; item != &made && !next;
         item = item->next) {
        struct call_rcu_data *data = list_entry(item, struct call_rcu_data, link);

        if (data->domain == domain && !data->moved)
            next = data;
    }
    if (next)
        next->pins++;
    if (walk->at)
        walk->at->pins--;
    walk->at = next;
    if (!next)
        walks_here = walk->outer;
    os_lock_release(&crdp_lock);
    return next;
}

/* Waits for the default queue last, because callbacks of freed workers are there. */
void prudence_urcu_barrier(struct prudence_domain *domain)
{
    struct call_rcu_data *standard = prudence_urcu_default(domain), *data;
    struct made_walk walk;
    uint64_t was_online;

    if (!urcu_may_wait(standard->domain, "rcu_barrier", __builtin_return_address(0)))
        return;
    was_online = gp_leave_to_wait(standard->domain);
    walk_begin(&walk);
    while ((data = next_made(standard->domain, &walk)))
        callback_barrier(data->queue);
    callback_barrier(standard->queue);
    gp_return_from_wait(standard->domain, was_online);
}

void prudence_urcu_after_fork_child(struct prudence_domain *domain)
{
    struct call_rcu_data *standard = prudence_urcu_default(domain), *data;
    struct made_walk walk;

    walk_begin(&walk);
    while ((data = next_made(standard->domain, &walk)))
        if (callback_queue_is_pending(data->queue))
            callback_worker_look_at(data->queue);
    if (callback_queue_is_pending(standard->queue))
        callback_worker_look_at(standard->queue);
}

/* Waits, or does not return. */
static void synchronize(struct prudence_domain *domain, const char *what, void *caller)
{
    const struct wait_request request = {.what = what,
                                         .of = "for domain",
                                         .name = domain->name,
                                         .caller = caller,
                                         .returns_nothing = true};
    bool inside = domain == &prudence_default ? prudence_read_lock_held()
                                              : !gp_may_leave_and_wait(domain, NULL);
    uint64_t was_online;

    if (inside)
        os_panic(
            "%s for domain '%s', called from %p, inside a read-side critical section: the thread "
            "would wait for itself",
            what, domain->name, caller);
    was_online = gp_leave_to_wait(domain);
    wait_request_wait(&request, domain, gp_snapshot(domain));
    gp_return_from_wait(domain, was_online);
}

void prudence_urcu_synchronize(struct prudence_domain *domain)
{
    synchronize(defaults[flavour_of(domain)].domain, "synchronize_rcu",
                __builtin_return_address(0));
}

static void urcu_fork_prepare(void)
{
    os_lock_take_for_fork(&crdp_lock);
}

/* Only the forking thread is in the child, so only that thread's pins remain. */
static void urcu_fork_child(bool whole)
{
    struct list *item;

    if (!whole)
        return;
    list_for_each(item, &made)
    {
        list_entry(item, struct call_rcu_data, link)->pins = 0;
    }
    for (const struct made_walk *walk = walks_here; walk; walk = walk->outer)
        if (walk->at)
            walk->at->pins++;
}

static void urcu_fork_done(void)
{
    os_lock_release_from_fork(&crdp_lock);
}

/* Runs without locks held (callback_fork.c). */
static void urcu_fork_over(void)
{
    if (!qsbr || !callback_queue_asked_in_fork())
        return;
    prudence_urcu_after_fork_child(NULL);
    prudence_urcu_after_fork_child(qsbr);
}

const struct fork_part urcu_fork_part = {.order = FORK_URCU_WORKERS,
                                         .name = "liburcu's workers",
                                         .prepare = urcu_fork_prepare,
                                         .child = urcu_fork_child,
                                         .done = urcu_fork_done,
                                         .resume = urcu_fork_over,
                                         .revive = urcu_fork_over};
ENTER(fork_parts, urcu_fork_part);

/* ------------------------------------------------------------------------------- deferred calls */

struct deferred {
    struct prudence_head head;
    void (*function)(void *p);
    void *p;
};

static void run_deferred(struct prudence_head *head)
{
    struct deferred deferred = *(struct deferred *)head;

    prudence_free(head);
    os_foreign_call("a function of defer_rcu");
    deferred.function(deferred.p);
}

/* Turns a deferred call of prudence_free into a deferral, which the allocator plans with. */
void prudence_urcu_defer(struct prudence_domain *domain, void (*function)(void *p), void *p)
{
    struct call_rcu_data *standard = prudence_urcu_default(domain);
    struct deferred *deferred;

    if (function == prudence_free && standard->domain == &prudence_default) {
        prudence_free_deferred(p);
        return;
    }
    deferred = prudence_malloc(sizeof *deferred);
    if (!deferred) {
        synchronize(standard->domain, "defer_rcu (which waits because it has no memory to defer)",
                    __builtin_return_address(0));
        os_foreign_call("a function of defer_rcu");
        function(p);
        return;
    }
    deferred->function = function;
    deferred->p = p;
    call_push(standard->queue, &deferred->head, run_deferred, "defer_rcu");
}

/* Waits for the default queue, which has all deferred calls. */
void prudence_urcu_defer_barrier(struct prudence_domain *domain)
{
    struct call_rcu_data *standard = prudence_urcu_default(domain);
    uint64_t was_online;

    if (!urcu_may_wait(standard->domain, "rcu_defer_barrier", __builtin_return_address(0)))
        return;
    was_online = gp_leave_to_wait(standard->domain);
    callback_barrier(standard->queue);
    gp_return_from_wait(standard->domain, was_online);
}
