/* SPDX-License-Identifier: MIT */
/*
 * Preloaded into a program by prudence-latent: follows callbacks from call_rcu to their call, adds
 * up the bytes that they free, and times threads that wait for grace periods (ADR 157). layout.h
 * describes the file that is written.
 *
 * A callback's head is its name: a program may queue it again only once it has been called. So the
 * table has one entry a head. The entry is found among the PROBES entries from the head's place on,
 * empty ones or not, because no thread moves entries. It is written before the head is queued, and
 * taken by the one thread that runs the callback.
 *
 * Locks: none, and no call of malloc after the start. The functions here do what the program's call
 * does in a signal handler and across fork; a child counts in a file of its own.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "layout.h"

#define EXPORT    __attribute__((visibility("default")))
#define CALLER()  ((uint64_t)(uintptr_t)__builtin_return_address(0))
#define ENTRIES   (1u << 20) /* a power of two */
#define PROBES    16
#define NO_SITE   (SITES - 1)
#define TLS_MODEL __attribute__((tls_model("initial-exec")))

struct head {
    void *private[2]; /* liburcu's */
};
typedef void callback_fn(struct head *head);

struct entry {
    struct head *head; /* NULL: free; atomic */
    callback_fn *func;
    uint64_t since;
    uint64_t site;
};

static struct latent_file *file; /* NULL: the tool is not there, and nothing is counted */
static struct entry *table;
static uint32_t parts_given;

static __thread uint32_t my_part TLS_MODEL;      /* + 1 */
static __thread uint64_t bytes_freed TLS_MODEL;  /* since counting began */
static __thread uint32_t counts_bytes TLS_MODEL; /* depth of callbacks */
static __thread uint32_t inside TLS_MODEL;     /* depth of watched calls; the outermost is noted */
static __thread uint32_t waits TLS_MODEL;      /* depth of those that wait */
static __thread uint64_t wait_began TLS_MODEL; /* of the outermost wait */
static __thread uint64_t slept TLS_MODEL; /* in the outermost call: ns of waits that are over */

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static void add(uint64_t *at, uint64_t amount)
{
    __atomic_fetch_add(at, amount, __ATOMIC_RELAXED);
}

static struct latent_part *part(void)
{
    if (!my_part)
        my_part = __atomic_fetch_add(&parts_given, 1, __ATOMIC_RELAXED) % PARTS + 1;
    return &file->parts[my_part - 1];
}

/* ----------------------------------------------------------------------------------- figures */

/* Four buckets to each power of two. */
static unsigned bucket_of(uint64_t ns)
{
    unsigned power;

    if (ns < 4)
        return (unsigned)ns;
    power = 63 - (unsigned)__builtin_clzll(ns);
    return power * 4 + (unsigned)(ns >> (power - 2) & 3);
}

static struct latent_slot *slot_at(struct latent_part *mine, uint64_t when)
{
    uint64_t slot = when > file->began ? (when - file->began) / file->slot_ns : 0;

    return &mine->slots[slot < SLOTS ? slot : SLOTS - 1];
}

static void note_wait(struct latent_use *use, uint64_t ns)
{
    uint64_t most = __atomic_load_n(&use->most, __ATOMIC_RELAXED);

    add(&use->ended, 1);
    if (ns)
        add(&use->waited, ns);
    while (ns > most && !__atomic_compare_exchange_n(&use->most, &most, ns, true, __ATOMIC_RELAXED,
                                                     __ATOMIC_RELAXED))
        ;
}

/* ------------------------------------------------------------------------------------- sites */

/* Whether a place in that file is none of the program's: liburcu's worker waits, and DPDK's queues
 * reclaim. */
static bool is_internal(const char *path)
{
    const char *name = strrchr(path, '/');

    name = name ? name + 1 : path;
    return !strncmp(name, "liburcu", 7) || !strncmp(name, "librte_rcu.", 11);
}

static void name_site(struct latent_site *site, const char *function)
{
    Dl_info found;

    strncpy(site->function, function, sizeof site->function - 1);
    if (dladdr((void *)(uintptr_t)site->place, &found) && found.dli_fname) {
        strncpy(site->file, found.dli_fname, sizeof site->file - 1);
        site->offset = site->place - (uint64_t)(uintptr_t)found.dli_fbase;
        if (site->kind != KIND_CALL && is_internal(found.dli_fname))
            site->kind = KIND_INTERNAL;
    }
    __atomic_store_n(&site->named, 1, __ATOMIC_RELEASE);
}

static unsigned site_of(uint64_t place, enum latent_kind kind, const char *function)
{
    unsigned at = (unsigned)(place * UINT64_C(0x9e3779b97f4a7c15) >> 40) % NO_SITE;

    for (unsigned i = 0; i < PROBES; i++, at = (at + 1) % NO_SITE) {
        struct latent_site *site = &file->sites[at];
        uint64_t found = __atomic_load_n(&site->place, __ATOMIC_RELAXED);

        if (!found && __atomic_compare_exchange_n(&site->place, &found, place, false,
                                                  __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
            site->kind = kind;
            name_site(site, function);
            return at;
        }
        if (found == place)
            return at;
    }
    return NO_SITE;
}

static unsigned called(uint64_t place, enum latent_kind kind, const char *function)
{
    unsigned site = site_of(place, kind, function);

    add(&part()->uses[site].calls, 1);
    if (!__atomic_load_n(&file->seen, __ATOMIC_RELAXED))
        __atomic_store_n(&file->seen, 1, __ATOMIC_RELAXED);
    return site;
}

/* --------------------------------------------------------------------------------- callbacks */

static unsigned first_entry(const struct head *head)
{
    return (unsigned)((uintptr_t)head >> 5) & (ENTRIES - 1);
}

/* Returns whether the callback has an entry now. Acquire: the thread that emptied the entry reads
 * it no longer. The thread that runs the callback sees the rest by liburcu's queue. */
static bool remember(struct head *head, callback_fn *func, unsigned site)
{
    unsigned at = first_entry(head);

    for (unsigned i = 0; i < PROBES; i++, at = (at + 1) & (ENTRIES - 1)) {
        struct head *nobody = NULL;

        if (__atomic_load_n(&table[at].head, __ATOMIC_RELAXED) ||
            !__atomic_compare_exchange_n(&table[at].head, &nobody, head, false, __ATOMIC_ACQUIRE,
                                         __ATOMIC_RELAXED))
            continue;
        table[at].func = func;
        table[at].site = site;
        table[at].since = now_ns();
        return true;
    }
    return false;
}

static struct entry take(const struct head *head)
{
    unsigned at = first_entry(head);

    for (unsigned i = 0; i < PROBES; i++, at = (at + 1) & (ENTRIES - 1)) {
        struct entry found;

        if (__atomic_load_n(&table[at].head, __ATOMIC_ACQUIRE) != head)
            continue;
        found = table[at];
        __atomic_store_n(&table[at].head, NULL, __ATOMIC_RELEASE);
        return found;
    }
    fprintf(stderr, "prudence-latent: a callback is called that was not queued: head %p\n",
            (const void *)head);
    abort();
}

/* Callbacks may run callbacks, by a barrier. */
static uint64_t start_counting(void)
{
    counts_bytes++;
    return bytes_freed;
}

/* Returns how many bytes this thread freed since `start`, which start_counting() returned. */
static uint64_t stop_counting(uint64_t start)
{
    counts_bytes--;
    return bytes_freed - start;
}

static void note_callback(const struct entry *entry, uint64_t bytes, uint64_t ended)
{
    struct latent_part *mine = part();
    struct latent_slot *queued = slot_at(mine, entry->since), *ran = slot_at(mine, ended);
    uint64_t waited = ended - entry->since;

    note_wait(&mine->uses[entry->site], waited);
    add(&mine->uses[entry->site].bytes, bytes);
    add(&mine->waits[bucket_of(waited)], 1);
    add((uint64_t *)&queued->waiting, 1);
    add((uint64_t *)&ran->waiting, (uint64_t)-1);
    add((uint64_t *)&queued->bytes, bytes);
    add((uint64_t *)&ran->bytes, -bytes);
}

/* liburcu calls this in the place of the program's function. */
static void run_callback(struct head *head)
{
    struct entry entry = take(head);
    uint64_t ended = now_ns(), start;

    if (!file) { /* a child that got none */
        entry.func(head);
        return;
    }
    add(&file->waiting, (uint64_t)-1);
    start = start_counting();
    entry.func(head);
    note_callback(&entry, stop_counting(start), ended);
}

typedef void call_fn(struct head *head, callback_fn *func);

static void call(call_fn *real, struct head *head, callback_fn *func, uint64_t place)
{
    unsigned site;

    if (!file) {
        real(head, func);
        return;
    }
    site = called(place, KIND_CALL, "call_rcu");
    if (remember(head, func, site)) {
        add(&file->waiting, 1);
        func = run_callback;
    } else {
        add(&file->untracked, 1);
    }
    real(head, func);
}

/* ----------------------------------------------------- calls that wait, run callbacks or defer */

static inline bool is_wait(enum latent_kind kind)
{
    return kind == KIND_SYNCHRONIZE || kind == KIND_BARRIER;
}

/* Begins a call. A call within another one is part of it, because a barrier synchronizes and then
 * reclaims, and a full queue reclaims. Returns what leave() needs. */
static inline uint64_t enter(enum latent_kind kind)
{
    if (inside++ == 0)
        slept = 0;
    if (is_wait(kind) && waits++ == 0)
        wait_began = now_ns();
    return start_counting();
}

/* Notes what the outermost call slept and freed. Each deferral counts, because a callback may
 * defer. */
static void leave(uint64_t place, enum latent_kind kind, const char *function, uint64_t start,
                  bool refused)
{
    uint64_t freed = stop_counting(start);
    bool outermost = --inside == 0;
    struct latent_use *use;
    unsigned site;

    if (is_wait(kind) && --waits == 0)
        slept += now_ns() - wait_began;
    if (!file || (!outermost && kind != KIND_DEFER))
        return;
    site = called(place, kind, function);
    use = &part()->uses[site];
    if (refused)
        add(&use->refused, 1);
    note_wait(use, outermost ? slept : 0);
    if (!outermost)
        return;
    add(&use->bytes, freed);
    if ((slept || is_wait(kind)) && file->sites[site].kind != KIND_INTERNAL)
        add(&part()->sleeps[bucket_of(slept)], 1);
}

/* Sets *known to the next library's function of that name. Ends the process if there is none: the
 * program has called a function that no library has. Several threads may search at the same time;
 * they find the same. */
static __attribute__((noinline, cold)) void *look_up(void **known, const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);

    if (!found) {
        fprintf(stderr, "prudence-latent: the program calls %s, which no library has\n", name);
        abort();
    }
    __atomic_store_n(known, found, __ATOMIC_RELAXED);
    return found;
}

#define FIND_REAL(name)                                                                            \
    static void *known;                                                                            \
    __typeof__(&name) real;                                                                        \
    void *found = __atomic_load_n(&known, __ATOMIC_RELAXED);                                       \
    if (__builtin_expect(!found, 0))                                                               \
        found = look_up(&known, #name);                                                            \
    memcpy(&real, &found, sizeof real)

#define WATCH(name, kind, function, parameters, arguments)                                         \
    EXPORT void name parameters;                                                                   \
    void name parameters                                                                           \
    {                                                                                              \
        uint64_t place = CALLER(), start;                                                          \
        FIND_REAL(name);                                                                           \
        start = enter(kind);                                                                       \
        real arguments;                                                                            \
        leave(place, kind, function, start, false);                                                \
    }

/* Wraps a function that answers: `refused` is an expression of `answer`. */
#define WATCH_ANSWER(type, name, kind, function, refused, parameters, arguments)                   \
    EXPORT type name parameters;                                                                   \
    type name parameters                                                                           \
    {                                                                                              \
        uint64_t place = CALLER(), start;                                                          \
        type answer;                                                                               \
        FIND_REAL(name);                                                                           \
        start = enter(kind);                                                                       \
        answer = real arguments;                                                                   \
        leave(place, kind, function, start, refused);                                              \
        return answer;                                                                             \
    }

/* ------------------------------------------------------------------------------------ liburcu */

#define FLAVOUR(flavour)                                                                           \
    EXPORT void urcu_##flavour##_call_rcu(struct head *head, callback_fn *func);                   \
    void urcu_##flavour##_call_rcu(struct head *head, callback_fn *func)                           \
    {                                                                                              \
        FIND_REAL(urcu_##flavour##_call_rcu);                                                      \
        call(real, head, func, CALLER());                                                          \
    }                                                                                              \
    WATCH(urcu_##flavour##_synchronize_rcu, KIND_SYNCHRONIZE, "synchronize_rcu", (void), ())       \
    WATCH(urcu_##flavour##_barrier, KIND_BARRIER, "rcu_barrier", (void), ())                       \
    WATCH(urcu_##flavour##_defer_rcu, KIND_DEFER, "defer_rcu",                                     \
          (void (*func)(void *), void *object), (func, object))                                    \
    WATCH(urcu_##flavour##_defer_barrier, KIND_BARRIER, "defer_barrier", (void), ())               \
    WATCH(urcu_##flavour##_defer_barrier_thread, KIND_BARRIER, "defer_b._thread", (void), ())      \
    WATCH(urcu_##flavour##_defer_unregister_thread, KIND_BARRIER, "defer_unregist.", (void), ())   \
    WATCH(urcu_##flavour##_call_rcu_data_free, KIND_BARRIER, "call_rcu_d_free", (void *worker),    \
          (worker))                                                                                \
    WATCH(urcu_##flavour##_free_all_cpu_call_rcu_data, KIND_BARRIER, "free_all_cpu_c.", (void), ())

FLAVOUR(memb)
FLAVOUR(mb)
FLAVOUR(signal)
FLAVOUR(bp)
FLAVOUR(qsbr)

WATCH(cds_lfht_resize, KIND_SYNCHRONIZE, "lfht_resize", (void *hash, unsigned long size),
      (hash, size))
WATCH_ANSWER(int, cds_lfht_destroy, KIND_BARRIER, "lfht_destroy", false,
             (void *hash, void *attributes), (hash, attributes))

/* ------------------------------------------ Concurrency Kit: functions that are no macros of it */

typedef void wait_fn(void *global, void *record, void *data);

WATCH(ck_epoch_synchronize, KIND_SYNCHRONIZE, "epoch_synchron.", (void *record), (record))
WATCH(ck_epoch_synchronize_wait, KIND_SYNCHRONIZE, "epoch_synch._w.",
      (void *global, wait_fn *wait, void *data), (global, wait, data))
WATCH(ck_epoch_barrier, KIND_BARRIER, "epoch_barrier", (void *record), (record))
WATCH(ck_epoch_barrier_wait, KIND_BARRIER, "epoch_barrier_w",
      (void *record, wait_fn *wait, void *data), (record, wait, data))
WATCH(ck_epoch_reclaim, KIND_RECLAIM, "epoch_reclaim", (void *record), (record))
WATCH_ANSWER(bool, ck_epoch_poll, KIND_RECLAIM, "epoch_poll", false, (void *record), (record))
WATCH_ANSWER(bool, ck_epoch_poll_deferred, KIND_RECLAIM, "epoch_poll_def.", false,
             (void *record, void *deferred), (record, deferred))
WATCH(ck_hp_retire, KIND_DEFER, "hp_retire", (void *record, void *hazard, void *data, void *object),
      (record, hazard, data, object))
WATCH(ck_hp_free, KIND_DEFER, "hp_free", (void *record, void *hazard, void *data, void *object),
      (record, hazard, data, object))
WATCH(ck_hp_reclaim, KIND_RECLAIM, "hp_reclaim", (void *record), (record))
WATCH(ck_hp_purge, KIND_BARRIER, "hp_purge", (void *record), (record))

/* ------------------------------------------------------------------------- DPDK's librte_rcu */

WATCH(rte_rcu_qsbr_synchronize, KIND_SYNCHRONIZE, "qsbr_synchron.",
      (void *readers, unsigned thread), (readers, thread))
WATCH_ANSWER(int, rte_rcu_qsbr_dq_enqueue, KIND_DEFER, "dq_enqueue", answer != 0,
             (void *queue, void *resource), (queue, resource))
WATCH_ANSWER(int, rte_rcu_qsbr_dq_reclaim, KIND_RECLAIM, "dq_reclaim", answer != 0,
             (void *queue, unsigned most, unsigned *freed, unsigned *pending, unsigned *available),
             (queue, most, freed, pending, available))
WATCH_ANSWER(int, rte_rcu_qsbr_dq_delete, KIND_RECLAIM, "dq_delete", answer != 0, (void *queue),
             (queue))

/* -------------------------------------------------------------------------------------- free */

EXPORT void free(void *block)
{
    FIND_REAL(free);
    if (__builtin_expect(counts_bytes, 0) && block)
        bytes_freed += malloc_usable_size(block);
    real(block);
}

/* ------------------------------------------------------------------------------------- start */

static bool is_ours(const void *function)
{
    Dl_info found, self;

    return dladdr(function, &found) && dladdr(&file, &self) && found.dli_fbase == self.dli_fbase;
}

/* Maps $PRUDENCE_LATENT.PID. Without memory or a file the program runs as it would have. */
static void open_file(void)
{
    const char *prefix = getenv("PRUDENCE_LATENT"), *every = getenv("PRUDENCE_LATENT_SLOT_NS");
    struct latent_file *made;
    char name[4096];
    int descriptor;

    file = NULL;
    if (!prefix || snprintf(name, sizeof name, "%s.%d", prefix, (int)getpid()) >= (int)sizeof name)
        return;
    descriptor = open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (descriptor < 0)
        return;
    if (ftruncate(descriptor, sizeof *made)) {
        close(descriptor);
        return;
    }
    made = mmap(NULL, sizeof *made, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    close(descriptor);
    if (made == MAP_FAILED)
        return;
    made->process = (uint64_t)getpid();
    made->parent = (uint64_t)getppid();
    made->slot_ns = every ? strtoull(every, NULL, 10) : 0;
    made->slot_ns = made->slot_ns ? made->slot_ns : 10000000;
    made->began = now_ns();
    if (readlink("/proc/self/exe", made->program, sizeof made->program - 1) < 0)
        made->program[0] = 0;
    made->own_free = !is_ours(dlsym(RTLD_DEFAULT, "free"));
    made->version = LATENT_VERSION;
    made->magic = LATENT_MAGIC;
    file = made;
}

/* The child has copies of the callbacks that wait, and may run them: entries and sites stay. */
static void begin_child(void)
{
    struct latent_file *parents = file;

    if (!parents)
        return;
    open_file();
    if (file) {
        memcpy(file->sites, parents->sites, sizeof file->sites);
        file->waiting = parents->waiting;
    }
    munmap(parents, sizeof *parents);
}

__attribute__((constructor)) static void begin(void)
{
    table = mmap(NULL, ENTRIES * sizeof *table, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (table == MAP_FAILED)
        return;
    open_file();
    if (file && pthread_atfork(NULL, NULL, begin_child)) {
        munmap(file, sizeof *file);
        file = NULL;
    }
}
