/* SPDX-License-Identifier: MIT */
/*
 * Preloaded into a program by `prudence-advise record`; counts the program's uses of pthread
 * mutexes and rwlocks.
 *
 * Locks first used at the same place of the program are one *site*, for example the locks of a hash
 * table's buckets. For each site each thread has its own counters, so that counting shares no cache
 * line. At the end of the process they are added up and written to the file $PRUDENCE_RECORD.PID, a
 * line for each site:
 *
 * kind, object file, offset in it, symbol, locks, threads, then for reads and for writes:
 * acquisitions, contended ones, ns waited, ns held
 *
 * An acquisition first tries the lock. A busy lock counts as contended, and the wait is timed.
 * Waits for condition variables release the mutex, so they are no held time. Locks beyond LOCKS,
 * sites beyond SITES and read locks that a thread holds beyond HELD at a time are not counted.
 * Nothing here waits for another thread, except for the requested lock.
 *
 * The table of locks is open-addressed: an entry is claimed by a compare-and-swap of its address,
 * and stays claimed. A destroyed lock's entry forgets its site, so that the next lock at that
 * address finds its own.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define EXPORT   __attribute__((visibility("default")))
#define LOCKS    (1u << 18) /* a power of two */
#define PROBES   64
#define SITES    1024
#define HELD     16
#define NO_SITE  0
#define CALLER() __builtin_return_address(0)

enum kind { MUTEX = 1, RWLOCK };

/* A place that first used a lock. Written once, without a lock, after a compare-and-swap of
 * `place`. */
struct site {
    void *place; /* NULL: free */
    uint32_t kind;
    uint32_t locks; /* seen at this place */
};

struct lock {
    void *address;  /* NULL: free */
    uint32_t site;  /* index of the site + 1; NO_SITE: not known yet */
    uint32_t depth; /* exclusive acquisitions of the owner, who alone uses this and `since` */
    uint64_t since; /* ns */
};

struct use {
    uint64_t count, contended, waited, held;
};

/* A thread's counters, never freed, because ended threads count, too. */
struct counters {
    struct counters *next;
    struct use read[SITES], write[SITES];
};

struct held {
    struct lock *lock;
    uint64_t since;
};

static struct site sites[SITES];
static struct lock *locks;            /* LOCKS entries */
static struct counters *all_counters; /* atomic */
static uint64_t started, missed;      /* missed: acquisitions without room */

static __thread struct counters *mine;
static __thread struct held held[HELD];
static __thread bool inside; /* in this library, whose calls are not counted */

/* ------------------------------------------------------------------------------------- real
 * functions */

static struct {
    int (*mutex_lock)(pthread_mutex_t *);
    int (*mutex_trylock)(pthread_mutex_t *);
    int (*mutex_timedlock)(pthread_mutex_t *, const struct timespec *);
    int (*mutex_unlock)(pthread_mutex_t *);
    int (*mutex_destroy)(pthread_mutex_t *);
    int (*rdlock)(pthread_rwlock_t *);
    int (*wrlock)(pthread_rwlock_t *);
    int (*tryrdlock)(pthread_rwlock_t *);
    int (*trywrlock)(pthread_rwlock_t *);
    int (*rwlock_unlock)(pthread_rwlock_t *);
    int (*rwlock_destroy)(pthread_rwlock_t *);
    int (*cond_wait)(pthread_cond_t *, pthread_mutex_t *);
    int (*cond_timedwait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    int (*cond_clockwait)(pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *);
} real;

/* Sets a function pointer of any type, as POSIX allows. */
static void find(void *function, const char *name, const char *version)
{
    void *found = version ? dlvsym(RTLD_NEXT, name, version) : NULL;

    if (!found)
        found = dlsym(RTLD_NEXT, name);
    memcpy(function, &found, sizeof found);
}

/* Finds the real functions before constructors run, because locks are used earlier. Doing this
 * twice is harmless. */
static void resolve(void)
{
    find(&real.mutex_trylock, "pthread_mutex_trylock", NULL);
    find(&real.mutex_timedlock, "pthread_mutex_timedlock", NULL);
    find(&real.mutex_unlock, "pthread_mutex_unlock", NULL);
    find(&real.mutex_destroy, "pthread_mutex_destroy", NULL);
    find(&real.rdlock, "pthread_rwlock_rdlock", NULL);
    find(&real.wrlock, "pthread_rwlock_wrlock", NULL);
    find(&real.tryrdlock, "pthread_rwlock_tryrdlock", NULL);
    find(&real.trywrlock, "pthread_rwlock_trywrlock", NULL);
    find(&real.rwlock_unlock, "pthread_rwlock_unlock", NULL);
    find(&real.rwlock_destroy, "pthread_rwlock_destroy", NULL);
    /* x86-64 also has older ones with another layout. */
    find(&real.cond_wait, "pthread_cond_wait", "GLIBC_2.3.2");
    find(&real.cond_timedwait, "pthread_cond_timedwait", "GLIBC_2.3.2");
    find(&real.cond_clockwait, "pthread_cond_clockwait", NULL);
    find(&real.mutex_lock, "pthread_mutex_lock", NULL);
}

static inline void need_real(void)
{
    if (!real.mutex_lock)
        resolve();
}

static uint64_t now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* ------------------------------------------------------------------------------------ counts */

static void *map(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

static struct lock *table(void)
{
    struct lock *there = __atomic_load_n(&locks, __ATOMIC_ACQUIRE), *made;

    if (there)
        return there;
    made = map(LOCKS * sizeof *made);
    if (!made)
        return NULL;
    if (__atomic_compare_exchange_n(&locks, &there, made, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE))
        return made;
    munmap(made, LOCKS * sizeof *made);
    return there;
}

static struct counters *counters(void)
{
    struct counters *made;

    if (mine)
        return mine;
    made = map(sizeof *made);
    if (!made)
        return NULL;
    made->next = __atomic_load_n(&all_counters, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&all_counters, &made->next, made, false, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED)) {
    }
    return mine = made;
}

static uint32_t find_site(void *place, enum kind kind)
{
    for (unsigned probe = 0; probe < SITES; probe++) {
        unsigned i = (unsigned)(((uintptr_t)place >> 2) * 2654435761u + probe) % SITES;
        void *there = __atomic_load_n(&sites[i].place, __ATOMIC_ACQUIRE);

        if (!there && __atomic_compare_exchange_n(&sites[i].place, &there, place, false,
                                                  __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            there = place;
        if (there != place)
            continue;
        __atomic_store_n(&sites[i].kind, kind, __ATOMIC_RELAXED);
        __atomic_fetch_add(&sites[i].locks, 1, __ATOMIC_RELAXED);
        return i + 1;
    }
    return NO_SITE;
}

/* Returns a lock's entry, with a site, or NULL if there is no room. */
static struct lock *find_lock(void *address, void *place, enum kind kind)
{
    struct lock *entries = table();
    uint64_t hash = ((uintptr_t)address >> 3) * UINT64_C(0x9e3779b97f4a7c15) >> 20;

    for (unsigned probe = 0; entries && probe < PROBES; probe++) {
        struct lock *lock = &entries[(hash + probe) & (LOCKS - 1)];
        void *there = __atomic_load_n(&lock->address, __ATOMIC_RELAXED);
        uint32_t site;

        if (!there && __atomic_compare_exchange_n(&lock->address, &there, address, false,
                                                  __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            there = address;
        if (there != address)
            continue;
        site = __atomic_load_n(&lock->site, __ATOMIC_RELAXED);
        if (site == NO_SITE) {
            uint32_t none = NO_SITE;

            site = find_site(place, kind);
            if (site == NO_SITE)
                break;
            __atomic_compare_exchange_n(&lock->site, &none, site, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED);
        }
        return lock;
    }
    __atomic_fetch_add(&missed, 1, __ATOMIC_RELAXED);
    return NULL;
}

static void forget(void *address)
{
    struct lock *entries = __atomic_load_n(&locks, __ATOMIC_ACQUIRE);
    uint64_t hash = ((uintptr_t)address >> 3) * UINT64_C(0x9e3779b97f4a7c15) >> 20;

    for (unsigned probe = 0; entries && probe < PROBES; probe++) {
        struct lock *lock = &entries[(hash + probe) & (LOCKS - 1)];
        void *there = __atomic_load_n(&lock->address, __ATOMIC_RELAXED);

        if (!there)
            return;
        if (there == address) {
            __atomic_store_n(&lock->site, NO_SITE, __ATOMIC_RELAXED);
            return;
        }
    }
}

static struct use *use_of(const struct lock *lock, bool exclusive)
{
    struct counters *own = counters();
    uint32_t site = __atomic_load_n(&lock->site, __ATOMIC_RELAXED);

    if (!own || site == NO_SITE)
        return NULL;
    return exclusive ? &own->write[site - 1] : &own->read[site - 1];
}

/* Counts an acquisition; `waited` in ns, 0 if the lock was free. */
static void acquired(void *address, void *place, enum kind kind, bool exclusive, uint64_t waited)
{
    struct lock *lock;
    struct use *use;

    inside = true;
    lock = find_lock(address, place, kind);
    use = lock ? use_of(lock, exclusive) : NULL;
    if (use) {
        use->count++;
        use->contended += waited > 0;
        use->waited += waited;
        if (exclusive) {
            if (lock->depth++ == 0)
                lock->since = now();
        } else {
            for (unsigned i = 0; i < HELD; i++)
                if (!held[i].lock) {
                    held[i] = (struct held){lock, now()};
                    break;
                }
        }
    }
    inside = false;
}

/* Counts the end of an acquisition, before the lock is released. */
static void releases(void *address, void *place, enum kind kind)
{
    struct lock *lock;
    struct use *use;

    inside = true;
    lock = find_lock(address, place, kind);
    if (lock && kind == RWLOCK)
        for (unsigned i = HELD; i-- > 0;)
            if (held[i].lock == lock) {
                use = use_of(lock, false);
                if (use)
                    use->held += now() - held[i].since;
                held[i].lock = NULL;
                inside = false;
                return;
            }
    if (lock && lock->depth && --lock->depth == 0) {
        use = use_of(lock, true);
        if (use)
            use->held += now() - lock->since;
    }
    inside = false;
}

static bool is_taken(int error)
{
    return error == 0 || error == EOWNERDEAD;
}

/* -------------------------------------------------------------------------------------
 * replacements */

EXPORT int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    uint64_t start;
    int error;

    need_real();
    if (inside)
        return real.mutex_lock(mutex);
    error = real.mutex_trylock(mutex);
    if (is_taken(error)) {
        acquired(mutex, CALLER(), MUTEX, true, 0);
        return error;
    }
    start = now();
    error = real.mutex_lock(mutex);
    if (is_taken(error))
        acquired(mutex, CALLER(), MUTEX, true, now() - start + 1);
    return error;
}

EXPORT int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    int error;

    need_real();
    error = real.mutex_trylock(mutex);
    if (is_taken(error) && !inside)
        acquired(mutex, CALLER(), MUTEX, true, 0);
    return error;
}

EXPORT int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *until)
{
    uint64_t start = now();
    int error;

    need_real();
    error = real.mutex_timedlock(mutex, until);
    if (is_taken(error) && !inside)
        acquired(mutex, CALLER(), MUTEX, true, now() - start);
    return error;
}

EXPORT int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    need_real();
    if (!inside)
        releases(mutex, CALLER(), MUTEX);
    return real.mutex_unlock(mutex);
}

EXPORT int pthread_mutex_destroy(pthread_mutex_t *mutex)
{
    need_real();
    forget(mutex);
    return real.mutex_destroy(mutex);
}

static int take_rwlock(pthread_rwlock_t *rwlock, bool exclusive, void *place)
{
    int error = (exclusive ? real.trywrlock : real.tryrdlock)(rwlock);
    uint64_t start;

    if (error == 0) {
        acquired(rwlock, place, RWLOCK, exclusive, 0);
        return 0;
    }
    start = now();
    error = (exclusive ? real.wrlock : real.rdlock)(rwlock);
    if (error == 0)
        acquired(rwlock, place, RWLOCK, exclusive, now() - start + 1);
    return error;
}

EXPORT int pthread_rwlock_rdlock(pthread_rwlock_t *rwlock)
{
    need_real();
    return inside ? real.rdlock(rwlock) : take_rwlock(rwlock, false, CALLER());
}

EXPORT int pthread_rwlock_wrlock(pthread_rwlock_t *rwlock)
{
    need_real();
    return inside ? real.wrlock(rwlock) : take_rwlock(rwlock, true, CALLER());
}

EXPORT int pthread_rwlock_tryrdlock(pthread_rwlock_t *rwlock)
{
    int error;

    need_real();
    error = real.tryrdlock(rwlock);
    if (error == 0 && !inside)
        acquired(rwlock, CALLER(), RWLOCK, false, 0);
    return error;
}

EXPORT int pthread_rwlock_trywrlock(pthread_rwlock_t *rwlock)
{
    int error;

    need_real();
    error = real.trywrlock(rwlock);
    if (error == 0 && !inside)
        acquired(rwlock, CALLER(), RWLOCK, true, 0);
    return error;
}

EXPORT int pthread_rwlock_unlock(pthread_rwlock_t *rwlock)
{
    need_real();
    if (!inside)
        releases(rwlock, CALLER(), RWLOCK);
    return real.rwlock_unlock(rwlock);
}

EXPORT int pthread_rwlock_destroy(pthread_rwlock_t *rwlock)
{
    need_real();
    forget(rwlock);
    return real.rwlock_destroy(rwlock);
}

/* Counts a mutex as held again after a condition wait, when another thread may have held it; this
 * is no new acquisition. */
static void resumed(pthread_mutex_t *mutex, void *place)
{
    struct lock *lock;

    inside = true;
    lock = find_lock(mutex, place, MUTEX);
    if (lock && lock->depth++ == 0)
        lock->since = now();
    inside = false;
}

EXPORT int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    int error;

    need_real();
    releases(mutex, CALLER(), MUTEX);
    error = real.cond_wait(condition, mutex);
    resumed(mutex, CALLER());
    return error;
}

EXPORT int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                  const struct timespec *until)
{
    int error;

    need_real();
    releases(mutex, CALLER(), MUTEX);
    error = real.cond_timedwait(condition, mutex, until);
    resumed(mutex, CALLER());
    return error;
}

EXPORT int pthread_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                  clockid_t clock, const struct timespec *until);
EXPORT int pthread_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                  clockid_t clock, const struct timespec *until)
{
    int error;

    need_real();
    releases(mutex, CALLER(), MUTEX);
    error = real.cond_clockwait(condition, mutex, clock, until);
    resumed(mutex, CALLER());
    return error;
}

/* --------------------------------------------------------------------------------------- result */

static void add(struct use *sum, const struct use *use)
{
    sum->count += __atomic_load_n(&use->count, __ATOMIC_RELAXED);
    sum->contended += __atomic_load_n(&use->contended, __ATOMIC_RELAXED);
    sum->waited += __atomic_load_n(&use->waited, __ATOMIC_RELAXED);
    sum->held += __atomic_load_n(&use->held, __ATOMIC_RELAXED);
}

static void write_site(FILE *file, unsigned index)
{
    const struct site *site = &sites[index];
    struct use read = {0}, write = {0};
    unsigned threads = 0;
    Dl_info info = {0};
    bool known = dladdr(site->place, &info) && info.dli_fname;
    uintptr_t offset = (uintptr_t)site->place - (known ? (uintptr_t)info.dli_fbase : 0);

    for (struct counters *one = __atomic_load_n(&all_counters, __ATOMIC_ACQUIRE); one;
         one = one->next) {
        threads += one->read[index].count || one->write[index].count;
        add(&read, &one->read[index]);
        add(&write, &one->write[index]);
    }
    if (!threads)
        return;
    fprintf(file, "%s\t%s\t%#lx\t%s\t%u\t%u", site->kind == MUTEX ? "mutex" : "rwlock",
            known ? info.dli_fname : "?", (unsigned long)offset,
            known && info.dli_sname ? info.dli_sname : "?", site->locks, threads);
    for (unsigned i = 0; i < 2; i++) {
        const struct use *use = i ? &write : &read;

        fprintf(file, "\t%lu\t%lu\t%lu\t%lu", (unsigned long)use->count,
                (unsigned long)use->contended, (unsigned long)use->waited,
                (unsigned long)use->held);
    }
    putc('\n', file);
}

/* Resets the counters in a forked child, where only the forking thread goes on. */
static void fork_child(void)
{
    for (struct counters *one = all_counters; one; one = one->next) {
        memset(one->read, 0, sizeof one->read);
        memset(one->write, 0, sizeof one->write);
    }
    missed = 0;
    started = now();
}

__attribute__((constructor)) static void start(void)
{
    need_real();
    started = now();
    pthread_atfork(NULL, NULL, fork_child);
}

__attribute__((destructor)) static void stop(void)
{
    const char *name = getenv("PRUDENCE_RECORD");
    char path[4096];
    FILE *file;

    inside = true;
    if (!name || snprintf(path, sizeof path, "%s.%d", name, (int)getpid()) >= (int)sizeof path)
        return;
    file = fopen(path, "we");
    if (!file)
        return;
    fprintf(file, "elapsed\t%lu\nmissed\t%lu\n", (unsigned long)(now() - started),
            (unsigned long)missed);
    for (unsigned i = 0; i < SITES; i++)
        if (sites[i].place)
            write_site(file, i);
    fclose(file);
}
