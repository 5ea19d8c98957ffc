/* SPDX-License-Identifier: MIT */
/*
 * Everything at once and at random, to find faults between two features. Threads that come and go
 * read, replace, defer, queue callbacks (also liburcu's, whose workers come and go), wait for
 * barriers, use sizes at their boundaries, short-term memory and its clocks, shrink, trim, print
 * statistics, change options, and fork during all of that, also in callbacks and destructors.
 * Signal handlers read, dump, write profiles and let the process be watched. *Kinds* of objects
 * come and go: a domain of some kind, a cache in it with or without a destructor of either sort,
 * and objects in places that readers check at.
 *
 * Every object knows its state, age and content (support/torture_oracle.h). PRUDENCE_TORTURE_SEED
 * repeats the choices of every thread; the variant "stepped" has one thread, so only the library's
 * own threads depend on chance. The variants of "forks" fork far more often.
 *
 * ctest: timeout 3000 (takes twelve times as long as the others)
 * ctest: cost 10
 */
#define _GNU_SOURCE
#define TORTURE_TIMES 12 /* a minute for all builds of make test */
#include <limits.h>

#include <prudence/scm.h>
#include <prudence/urcu-compat.h>

#include "support/torture_oracle.h"

#define KINDS    6
#define PLACES   8
#define ACTORS   6
#define OWN      16
#define PATIENCE 60 /* seconds that a child may take */

#define SIZE_LEAST (sizeof(struct oracle_object) + 8)

/* Kind 0 stays the same, in the default domain, because signal handlers read it. */
struct kind {
    pthread_rwlock_t lock;          /* held for writing by a thread that replaces the kind */
    struct prudence_domain *domain; /* the cache's domain */
    struct prudence_domain *read_in;
    struct prudence_domain *made[3]; /* in this order; destroyed in reverse */
    unsigned domains;
    struct prudence_cache *cache; /* NULL: objects of any size, in the default domain */
    size_t size;
    bool destructor;
    uint64_t generation; /* the kind is this modulo KINDS */
    struct oracle_object *places[PLACES];
};

static struct kind kinds[KINDS];
static uint64_t generations, seed = 1, operations, remakes, forks, handled, callbacks, destroyed;
static struct call_rcu_data *worker; /* liburcu's worker, of the default domain */
static pthread_mutex_t worker_lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *nowhere;
static unsigned forks_in = 1;      /* of 2,000 steps of a thread */
static unsigned ends_apart = 4096; /* ends of objects between two that fork */
/* of a fork: no thread that has its parent's locks is here */
static __thread bool in_child;

/* ---------------------------------------------------------------------------------- the objects */

static size_t any_size(uint64_t *random)
{
    static const size_t edges[] = {128, 256, 1024, 2048, 4096, 8192, 32768, 65536, (size_t)1 << 20};
    size_t edge = edges[torture_below(random, torture_below(random, 20) ? 6 : 9)];

    return torture_below(random, 2) ? SIZE_LEAST + torture_below(random, 400)
                                    : edge - 1 + torture_below(random, 3);
}

static struct oracle_object *make(struct kind *kind, uint64_t *random)
{
    size_t size = kind->cache ? kind->size : any_size(random);
    struct oracle_object *object =
        kind->cache ? prudence_cache_alloc(kind->cache) : prudence_malloc(size);

    if (!object) {
        torture_violation("no memory for %zu bytes", size);
        abort();
    }
    oracle_adopt(object, size, kind->domain, kind->cache ? kind->generation : 0, kind->destructor);
    return object;
}

/* Uses objects of any size that only this thread knows, and tries impossible sizes. */
static void use_own(uint64_t *random)
{
    static const size_t hopeless[] = {SIZE_MAX,     SIZE_MAX - 4095,  SIZE_MAX / 9 * 8 + 4095,
                                      SIZE_MAX / 2, PTRDIFF_MAX - 15, (size_t)1 << 48};
    struct oracle_object *own[OWN];

    for (unsigned i = 0; i < OWN; i++) {
        size_t size = any_size(random);

        own[i] = prudence_malloc(size);
        oracle_adopt(own[i], size, prudence_default_domain(), 0, false);
    }
    for (unsigned i = 0; i < OWN; i++) {
        size_t size = any_size(random);
        void *moved;

        oracle_check(own[i], "own");
        TORTURE_CHECK(!prudence_realloc(own[i], hopeless[torture_below(random, 6)]));
        if (torture_below(random, 2)) {
            oracle_free(own[i]);
            moved = prudence_realloc(own[i], size);
            own[i] = moved;
            own[i]->seal = 0; /* realloc in place keeps the block, so its seal must go */
            oracle_adopt(own[i], size, prudence_default_domain(), 0, false);
        }
        oracle_free(own[i]);
        prudence_free(own[i]);
    }
}

/* Called in callbacks and destructors, of which few fork. The child uses what needs no lock. */
static void rarely_fork(void)
{
    static uint64_t ends;
    uint64_t random = __atomic_add_fetch(&ends, 1, __ATOMIC_RELAXED);
    pid_t child;

    if (!TORTURE_CHILD_THREADS || in_child || random % ends_apart)
        return;
    child = fork();
    if (child == 0) {
        torture_violations = 0;
        use_own(&random);
        _exit(torture_violations ? 4 : 0);
    }
    if (torture_wait(child, PATIENCE / 2.0))
        torture_violation("the child of a callback or destructor failed");
}

static void destructor(void *object, void *context)
{
    struct kind *kind = context;

    rarely_fork();
    oracle_end(object, kind->domain);
    __atomic_fetch_add(&destroyed, 1, __ATOMIC_RELAXED);
}

static void give_back(struct kind *kind, struct oracle_object *object)
{
    if (kind->cache)
        prudence_cache_free(kind->cache, object);
    else
        prudence_free(object);
}

static void ended(struct oracle_object *object)
{
    struct kind *kind = &kinds[object->generation % KINDS];

    rarely_fork();
    __atomic_fetch_add(&callbacks, 1, __ATOMIC_RELAXED);
    oracle_end(object, object->generation ? kind->domain : prudence_default_domain());
    if (object->generation && kind->destructor)
        oracle_set(object, ORACLE_FREE); /* the destructor has not run yet */
    if (object->generation)
        give_back(kind, object);
    else
        prudence_free(object);
}

static void callback(struct prudence_head *head)
{
    ended((struct oracle_object *)(void *)((char *)head - offsetof(struct oracle_object, head)));
}

static void urcu_callback(struct rcu_head *head)
{
    callback((struct prudence_head *)(void *)head);
}

static void retire(struct kind *kind, struct oracle_object *object, uint64_t *random)
{
    unsigned dice = torture_below(random, 8);
    void *one = object;

    oracle_retire(object, kind->domain);
    if (dice == 0)
        prudence_domain_call(kind->domain, &object->head, callback);
    else if (dice == 1 && kind->domain == prudence_default_domain())
        prudence_urcu_call(kind->domain, (struct rcu_head *)(void *)&object->head, urcu_callback);
    else if (!kind->cache || dice == 2)
        prudence_free_deferred(object);
    else if (dice == 3)
        prudence_cache_free_deferred_bulk(kind->cache, 1, &one);
    else
        prudence_cache_free_deferred(kind->cache, object);
}

static void replace(struct kind *kind, uint64_t *random)
{
    struct oracle_object *old = __atomic_exchange_n(&kind->places[torture_below(random, PLACES)],
                                                    make(kind, random), __ATOMIC_ACQ_REL);

    if (old)
        retire(kind, old, random);
}

static void storm(struct kind *kind, uint64_t *random)
{
    for (unsigned i = torture_below(random, 200); i > 0; i--)
        replace(kind, random);
}

static void never_published(struct kind *kind, uint64_t *random)
{
    struct oracle_object *object = make(kind, random);

    oracle_free(object);
    give_back(kind, object);
}

/* ------------------------------------------------------------------------------------- readers */

static bool enter(struct prudence_domain *domain)
{
    if (domain->kind == PRUDENCE_DOMAIN_QSBR && prudence_domain_read_lock_held(domain))
        return false;
    if (domain->kind == PRUDENCE_DOMAIN_QSBR)
        prudence_qsbr_online(domain);
    else
        prudence_domain_read_lock(domain);
    return true;
}

static void leave(struct prudence_domain *domain)
{
    if (domain->kind == PRUDENCE_DOMAIN_QSBR)
        prudence_qsbr_offline(domain);
    else
        prudence_domain_read_unlock(domain);
}

static void linger(uint64_t *random)
{
    unsigned dice = torture_below(random, 200);

    if (dice == 0)
        torture_sleep_us(torture_below(random, 300));
    else if (dice < 4)
        sched_yield();
    else if (dice == 4)
        torture_migrate(random);
    else if (dice == 5)
        torture_roam();
}

static void look(struct kind *kind, uint64_t *random)
{
    struct oracle_object *object =
        __atomic_load_n(&kind->places[torture_below(random, PLACES)], __ATOMIC_CONSUME);

    if (!object)
        return;
    oracle_check(object, "reader");
    linger(random);
    oracle_check(object, "reader that stayed");
}

static void read_kind(struct kind *kind, uint64_t *random)
{
    bool entered = enter(kind->read_in);

    look(kind, random);
    if (torture_below(random, 8) == 0)
        replace(kind, random); /* a section must not wait */
    if (entered)
        leave(kind->read_in);
}

static void handler(int signal)
{
    uint64_t random =
        1 + (uint64_t)(unsigned)signal + __atomic_add_fetch(&handled, 1, __ATOMIC_RELAXED);
    int saved_errno = errno;
    struct oracle_object *object;

    prudence_read_lock();
    object = prudence_dereference(kinds[0].places[torture_below(&random, PLACES)]);
    if (object)
        oracle_check(object, "signal handler");
    prudence_read_unlock();
    errno = saved_errno;
}

/* --------------------------------------------------------------------------- kinds come and go */

static uint64_t foreign_start(void *backend)
{
    return prudence_domain_start_poll(backend).private_value;
}

static bool foreign_poll(void *backend, uint64_t cookie)
{
    return prudence_domain_poll_state(backend, (prudence_gp_t){cookie});
}

static void foreign_synchronize(void *backend)
{
    TORTURE_CHECK(prudence_domain_synchronize(backend) == 0);
}

static bool foreign_inside(void *backend)
{
    return prudence_domain_read_lock_held(backend);
}

static struct prudence_domain *add_domain(struct kind *kind, struct prudence_domain *domain)
{
    if (!domain)
        torture_violation("no domain");
    return kind->made[kind->domains++] = domain;
}

static struct prudence_domain *make_domain(struct kind *kind, enum prudence_domain_kind which)
{
    return kind->read_in = add_domain(kind, prudence_domain_create("torture", which, NULL));
}

static void make_external(struct kind *kind, bool polled)
{
    struct prudence_domain_ops ops = {.size = sizeof ops, .read_lock_held = foreign_inside};
    struct prudence_domain *backend = make_domain(kind, PRUDENCE_DOMAIN_MEMB);

    if (polled) {
        ops.start_poll = foreign_start;
        ops.poll_state = foreign_poll;
    } else {
        ops.synchronize = foreign_synchronize;
    }
    kind->domain = add_domain(kind, prudence_domain_create_external("external", &ops, backend));
}

static void make_set(struct kind *kind)
{
    struct prudence_domain *members[2] = {make_domain(kind, PRUDENCE_DOMAIN_SRCU),
                                          make_domain(kind, PRUDENCE_DOMAIN_MEMB)};

    kind->domain = add_domain(kind, prudence_domain_create_set("set", members, 2));
}

static void make_domains(struct kind *kind, unsigned dice)
{
    static const enum prudence_domain_kind plain[] = {PRUDENCE_DOMAIN_MEMB, PRUDENCE_DOMAIN_QSBR,
                                                      PRUDENCE_DOMAIN_SRCU};

    kind->domains = 0;
    kind->domain = kind->read_in = prudence_default_domain();
    if (dice < 3)
        kind->domain = make_domain(kind, plain[dice]);
    else if (dice == 3)
        make_set(kind);
    else if (dice < 6)
        make_external(kind, dice == 4);
}

static void make_cache(struct kind *kind, uint64_t *random)
{
    struct prudence_cache_attr attr = {
        .size = sizeof attr, .domain = kind->domain, .context = kind};
    unsigned dice = torture_below(random, 6);

    kind->destructor = dice < 3;
    attr.destructor = kind->destructor ? destructor : NULL;
    if (dice == 2)
        attr.flags = PRUDENCE_CACHE_DESTRUCT_SOON;
    else if (dice == 3)
        attr.flags = PRUDENCE_CACHE_TYPESAFE;
    do
        kind->size = any_size(random);
    while (kind->size > 32768);
    kind->cache = prudence_cache_create("torture", kind->size, &attr);
    if (!kind->cache)
        torture_violation("no cache of objects of %zu bytes", kind->size);
}

/* Makes a fresh kind; about one in four has objects of any size, and no cache. */
static void kind_make(struct kind *kind, uint64_t *random)
{
    bool sized = torture_below(random, 4) == 0 || kind == kinds;

    kind->generation =
        __atomic_add_fetch(&generations, 1, __ATOMIC_RELAXED) * KINDS + (uint64_t)(kind - kinds);
    make_domains(kind, sized ? UINT_MAX : torture_below(random, 7));
    kind->cache = NULL;
    kind->destructor = false;
    if (!sized)
        make_cache(kind, random);
}

/* Ends the kind while everything that its objects wait for may still be running. */
static void kind_end(struct kind *kind, uint64_t *random)
{
    for (unsigned i = 0; i < PLACES; i++) {
        struct oracle_object *old = __atomic_exchange_n(&kind->places[i], NULL, __ATOMIC_ACQ_REL);

        if (old)
            retire(kind, old, random);
    }
    /* Waits, because callbacks use the cache. */
    TORTURE_CHECK(prudence_domain_barrier(kind->domain) == 0);
    if (kind->domain == prudence_default_domain())
        prudence_urcu_barrier(kind->domain);
    if (kind->cache) {
        if (torture_below(random, 2))
            TORTURE_CHECK(prudence_cache_barrier(kind->cache) == 0);
        TORTURE_CHECK(prudence_cache_destroy(kind->cache) == 0);
    }
    while (kind->domains > 0)
        TORTURE_CHECK(prudence_domain_destroy(kind->made[--kind->domains]) == 0);
}

static void remake(struct kind *kind, uint64_t *random)
{
    if (in_child || kind == kinds || pthread_rwlock_trywrlock(&kind->lock))
        return;
    kind_end(kind, random);
    kind_make(kind, random);
    pthread_rwlock_unlock(&kind->lock);
    __atomic_fetch_add(&remakes, 1, __ATOMIC_RELAXED);
}

/* -------------------------------------------------------------------------- what else there is */

static void expect(int error)
{
    TORTURE_CHECK(error == 0);
}

static void use_short_term_memory(uint64_t *random)
{
    struct oracle_object *own[OWN];
    struct scm_clock *clock = torture_below(random, 2) ? scm_clock_create() : NULL;
    unsigned extension = 1 + torture_below(random, 3);

    for (unsigned i = 0; i < OWN; i++) {
        size_t size = any_size(random);

        own[i] = scm_malloc(size);
        oracle_adopt(own[i], size, NULL, ORACLE_UNTRACKED, false);
        expect(clock && i % 2 ? scm_clock_refresh(clock, own[i], extension)
                              : scm_refresh(own[i], extension));
    }
    for (unsigned tick = 0; tick < extension; tick++) {
        expect(scm_tick());
        if (clock)
            expect(scm_clock_tick(clock));
        for (unsigned i = 0; i < OWN; i++)
            oracle_check(own[i], "short-term");
    }
    expect(scm_global_tick());
    if (clock && torture_below(random, 4))
        expect(scm_clock_destroy(clock));
    if (torture_below(random, 4) == 0)
        expect(scm_unregister_thread()); /* another thread inherits the dates */
}

/* Installs another worker for liburcu's callbacks of the default domain, while callbacks wait
 * for the last one. */
static void change_worker(void)
{
    struct call_rcu_data *old;

    if (in_child || pthread_mutex_trylock(&worker_lock))
        return;
    old = worker;
    worker = prudence_urcu_create(prudence_default_domain(), 0, -1);
    TORTURE_CHECK(worker);
    prudence_urcu_set_thread(prudence_default_domain(), NULL);
    if (old)
        prudence_urcu_free(old);
    pthread_mutex_unlock(&worker_lock);
}

static void wait_for(struct kind *kind, uint64_t *random)
{
    switch (torture_below(random, 5)) {
    case 0:
        expect(prudence_domain_synchronize(kind->domain));
        break;
    case 1:
        expect(prudence_domain_barrier(kind->domain));
        break;
    case 2:
        prudence_urcu_barrier(prudence_default_domain());
        break;
    case 3:
        if (kind->cache)
            expect(prudence_cache_barrier(kind->cache));
        break;
    default:
        prudence_synchronize();
    }
}

/* Sets any option that may be changed at any time, to any value that keeps the objects' oracle
 * right: no memory limit, and no shorter extensions than the threads ask for. A thread of its
 * own also does this, as a storm. */
static void set_any_option(uint64_t *random)
{
    static const struct {
        const char *name, *values[4];
    } options[] = {
        {"cache_per_cpu", {"1", "64K", "1M", "8M"}},
        {"cache_total", {"64K", "1M", "16M", "256M"}},
        {"latent_limit", {"64K", "1M", "32M", "0"}},
        {"call_limit", {"64K", "256K", "64M", "0"}},
        {"wait_max", {"1ms", "5ms", "50ms", "500ms"}},
        {"stall_timeout", {"0", "10s", "60s", "0"}},
        {"retain", {"0", "64K", "2M", "64M"}},
        {"decay", {"0", "1ms", "100ms", "10s"}},
        {"huge_pages", {"0", "1", "0", "1"}},
        {"background", {"idle", "0", "idle", "0"}},
        {"preflush", {"0", "1", "0", "1"}},
        {"scm_collection", {"eager", "lazy", "eager", "lazy"}},
        {"scm_expired", {"free", "deferred", "free", "deferred"}},
        {"dump", {"0", "SIGUSR2", "SIGHUP", "SIGQUIT"}},
        {"profile_signal", {"0", "SIGUSR2", "SIGHUP", "SIGQUIT"}},
        {"export", {"0", "1", "SIGUSR2", "SIGHUP"}},
    };
    unsigned which = torture_below(random, sizeof options / sizeof *options);

    expect(
        prudence_option_set(options[which].name, options[which].values[torture_below(random, 4)]));
}

static void administrate(struct kind *kind, uint64_t *random)
{
    unsigned dice = torture_below(random, 14);

    if (dice < 10)
        set_any_option(random);
    else if (dice == 10)
        prudence_trim();
    else if (dice == 11 && kind->cache)
        prudence_cache_shrink(kind->cache);
    else if (dice == 12 && !in_child)
        expect(prudence_stats_print(nowhere, PRUDENCE_STATS_JSON));
    else
        change_worker();
}

static void act(struct kind *kind, uint64_t *random)
{
    unsigned dice = torture_below(random, 1000);

    if (dice < 400)
        read_kind(kind, random);
    else if (dice < 800)
        replace(kind, random);
    else if (dice < 900)
        never_published(kind, random);
    else if (dice < 930)
        storm(kind, random);
    else if (dice < 960)
        use_own(random);
    else if (dice < 975)
        use_short_term_memory(random);
    else if (dice < 990)
        administrate(kind, random);
    else
        wait_for(kind, random);
}

/* ---------------------------------------------------------------------------------------- forks */

static void *childs_thread(void *random)
{
    in_child = true;
    for (unsigned i = 0; i < 60; i++)
        act(&kinds[i % KINDS], random);
    return NULL;
}

static int be_child(uint64_t random, bool inside)
{
    struct prudence_stats stats;
    uint64_t threads_random = random ^ 77;
    pthread_t thread;
    pid_t grandchild;

    in_child = true;
    oracle_begun_elsewhere = ACTORS + 2; /* and the threads that run callbacks and destructors */
    alarm(2 * PATIENCE);                 /* if torture_wait, which reports more, cannot end it */
    torture_violations = 0;
    prudence_stats(&stats);
    TORTURE_CHECK(stats.readers <= 1);
    for (unsigned i = 0; i < KINDS; i++)
        if (inside)
            look(&kinds[i], &random);
    if (inside)
        for (unsigned i = KINDS; i-- > 0;)
            if (kinds[i].read_in != prudence_default_domain() || i == 0)
                leave(kinds[i].read_in);
    thread = torture_below(&random, 4) ? 0 : torture_thread(childs_thread, &threads_random);
    for (unsigned i = 0; i < 60; i++)
        act(&kinds[torture_below(&random, KINDS)], &random);
    if (thread)
        pthread_join(thread, NULL);
    grandchild = torture_below(&random, 8) ? -1 : fork();
    if (grandchild == 0)
        _exit(be_child(random, false));
    if (grandchild > 0)
        TORTURE_CHECK(torture_wait(grandchild, PATIENCE / 2.0) == 0);
    for (unsigned i = 0; i < KINDS; i++) {
        expect(prudence_domain_barrier(kinds[i].domain));
        if (kinds[i].cache)
            expect(prudence_cache_barrier(kinds[i].cache));
    }
    return torture_violations ? 4 : 0;
}

/* Forks with all locks of kinds held for reading, so that the child finds usable kinds. */
static void fork_once(uint64_t *random)
{
    uint64_t childs_seed = torture_random(random);
    bool inside = torture_below(random, 3) == 0;
    pid_t child;
    int status;

    for (unsigned i = 0; i < KINDS; i++)
        pthread_rwlock_rdlock(&kinds[i].lock);
    for (unsigned i = 0; i < KINDS; i++)
        if (inside && (kinds[i].read_in != prudence_default_domain() || i == 0))
            enter(kinds[i].read_in);
    child = fork();
    if (child == 0)
        _exit(be_child(childs_seed, inside));
    for (unsigned i = KINDS; i-- > 0;)
        if (inside && (kinds[i].read_in != prudence_default_domain() || i == 0))
            leave(kinds[i].read_in);
    for (unsigned i = KINDS; i-- > 0;)
        pthread_rwlock_unlock(&kinds[i].lock);
    status = torture_wait(child, PATIENCE);
    if (status)
        torture_violation("child %d%s ended with status %#x", (int)child,
                          inside ? " (forked inside sections)" : "", (unsigned)status);
    __atomic_fetch_add(&forks, 1, __ATOMIC_RELAXED);
}

/* -------------------------------------------------------------------------------------- threads */

static pthread_t actors[ACTORS];
static bool acting[ACTORS]; /* it exists and may be signalled; protected by acting_lock */
static pthread_mutex_t acting_lock = PTHREAD_MUTEX_INITIALIZER;

static void set_acting(unsigned which, bool is)
{
    pthread_mutex_lock(&acting_lock);
    acting[which] = is;
    pthread_mutex_unlock(&acting_lock);
}

static void step(uint64_t *random)
{
    unsigned which = torture_below(random, KINDS), dice = torture_below(random, 2000);
    struct kind *kind = &kinds[which];

    if (dice < 10)
        remake(kind, random);
    if (dice >= 10 && dice < 10 + forks_in && TORTURE_CHILD_THREADS)
        fork_once(random);
    pthread_rwlock_rdlock(&kind->lock);
    act(kind, random);
    pthread_rwlock_unlock(&kind->lock);
    __atomic_fetch_add(&operations, 1, __ATOMIC_RELAXED);
}

struct actor {
    unsigned which;
    uint64_t random;
};

static void *actor(void *argument)
{
    struct actor me = *(struct actor *)argument;
    unsigned steps = 100 + torture_below(&me.random, 3000);

    free(argument);
    set_acting(me.which, true);
    while (steps-- > 0 && !torture_stopped())
        step(&me.random);
    set_acting(me.which, false);
    return NULL;
}

static void start_actor(unsigned which, uint64_t *random)
{
    struct actor *starts = malloc(sizeof *starts);

    *starts = (struct actor){.which = which, .random = torture_random(random) | 1};
    actors[which] = torture_thread(actor, starts);
}

/* Returns mostly the signal that only the program handles, because the options' handlers take a
 * while. */
static int any_signal(uint64_t *random)
{
    static const int chosen_by_options[] = {SIGUSR2, SIGHUP, SIGQUIT};

    return torture_below(random, 32) ? SIGUSR1 : chosen_by_options[torture_below(random, 3)];
}

/* Sends signals, changes options, and replaces each thread that has ended. */
static void run_threads(uint64_t *random, double seconds)
{
    uint64_t until = torture_now() + (uint64_t)(seconds * 1e9);

    for (unsigned i = 0; i < ACTORS; i++)
        start_actor(i, random);
    while (torture_now() < until) {
        unsigned which = torture_below(random, ACTORS);

        pthread_mutex_lock(&acting_lock);
        if (acting[which])
            pthread_kill(actors[which], any_signal(random));
        pthread_mutex_unlock(&acting_lock);
        if (pthread_tryjoin_np(actors[which], NULL) == 0)
            start_actor(which, random);
        set_any_option(random);
        torture_sleep_us(200);
    }
    torture_stop();
    for (unsigned i = 0; i < ACTORS; i++)
        pthread_join(actors[i], NULL);
}

static void run_stepped(uint64_t *random, double seconds)
{
    uint64_t until = torture_now() + (uint64_t)(seconds * 1e9);

    while (torture_now() < until && !torture_violations)
        step(random);
}

/* Ends the dates of ended threads, which pass from heir to heir. */
static void end_short_term_memory(void)
{
    expect(prudence_option_set("scm_collection", "eager"));
    expect(prudence_option_set("scm_expired", "free"));
    for (unsigned heir = 0; heir < 2 * ACTORS; heir++) {
        expect(scm_register_thread());
        for (unsigned tick = 0; tick < 8; tick++) {
            expect(scm_tick());
            expect(scm_global_tick());
        }
        expect(scm_collect());
        expect(scm_unregister_thread());
    }
}

static int torture(const char *variant, double seconds)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    static const int signals[] = {SIGUSR1, SIGUSR2, SIGHUP, SIGQUIT};
    uint64_t random;

    seed = test_seed(torture_now());
    random = seed | 1;
    nowhere = fopen("/dev/null", "w");
    for (unsigned i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaction(signals[i], &action, NULL);
    expect(prudence_option_set("dump_file", "/dev/null"));
    expect(prudence_option_set("profile_file", "/dev/null"));
    torture_pretend_idle();
    for (unsigned i = 0; i < KINDS; i++) {
        pthread_rwlock_init(&kinds[i].lock, NULL);
        kind_make(&kinds[i], &random);
    }
    printf(" [seed %llu]", (unsigned long long)seed);
    fflush(stdout);
    if (strncmp(variant, "forks", 5) == 0) {
        forks_in = 40;
        ends_apart = 512;
    }
    if (strcmp(variant, "stepped") == 0)
        run_stepped(&random, seconds);
    else
        run_threads(&random, seconds);
    for (unsigned i = 0; i < KINDS; i++)
        kind_end(&kinds[i], &random);
    if (worker)
        prudence_urcu_free(worker);
    end_short_term_memory();
    TORTURE_SAY({"steps", operations}, {"kinds", remakes}, {"forks", forks},
                {"callbacks", callbacks}, {"destroyed", destroyed}, {"handled", handled});
    return torture_end(variant);
}

TORTURE(torture, {"default", ""}, {"stepped", ""}, {"lock, background", "rseq=0,background=1"},
        {"no membarrier", "membarrier=0"}, {"checked", "check=1,trace=0"},
        {"resting", "quarantine=1M,zero_on_free=1"},
        {"guarded, checked", "guard=20,check=1,quarantine=256K"},
        {"tight", "latent_limit=1M,call_limit=256K,wait_max=5ms,decay=0"}, {"forks", ""},
        {"forks, lock", "rseq=0,background=1"}, {"forks, no membarrier", "membarrier=0"},
        {"forks, guarded", "guard=10,check=1,quarantine=4M,zero_on_free=1"})
