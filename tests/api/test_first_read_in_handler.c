/* SPDX-License-Identifier: MIT */
/*
 * A thread's first read is in a signal handler that interrupted malloc, in a process with enough
 * thread-specific keys that setting one more allocates. The handler must not allocate, because the
 * thread would wait for itself. The program counts allocations inside handlers (its own malloc
 * precedes libc's); the alarm ends a deadlock. The threads end without a hook, and are then no
 * longer readers.
 */
#define _GNU_SOURCE

#include <pthread.h>
#include <signal.h>

#include <prudence/prudence.h>
#include <prudence/rcu.h>
#include <prudence/stats.h>

#include "support/gp_child.h"
#include "support/late_library.h"
#include "support/suite.h"

#define KEYS    100
#define THREADS 60

static __thread volatile sig_atomic_t in_handler __attribute__((tls_model("initial-exec")));
static unsigned allocations_in_handlers, handled; /* atomic */

/* ----------------------------------------------------------------------------- malloc's symbols */

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *object, size_t size);
void __libc_free(void *object);

static void note(void)
{
    if (in_handler)
        __atomic_fetch_add(&allocations_in_handlers, 1, __ATOMIC_RELAXED);
}

void *malloc(size_t size)
{
    note();
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    note();
    return __libc_calloc(count, size);
}

void *realloc(void *object, size_t size)
{
    note();
    return __libc_realloc(object, size);
}

void free(void *object)
{
    note();
    __libc_free(object);
}

#endif

/* ---------------------------------------------------------------------------------- the library */

static struct {
    struct prudence_domain *(*default_domain)(void);
    struct prudence_domain *(*create)(const char *, enum prudence_domain_kind,
                                      const struct prudence_domain_attr *);
    void (*lock)(struct prudence_domain *);
    void (*unlock)(struct prudence_domain *);
    int (*stats)(struct prudence_domain *, struct prudence_domain_stats *, size_t);
    int (*synchronize)(struct prudence_domain *);
} late;

static struct prudence_domain *domains[2];

static bool load(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return false;
    }
    late_library_symbol(library, "prudence_default_domain", &late.default_domain);
    late_library_symbol(library, "prudence_domain_create", &late.create);
    late_library_symbol(library, "prudence_domain_read_lock", &late.lock);
    late_library_symbol(library, "prudence_domain_read_unlock", &late.unlock);
    late_library_symbol(library, "prudence_domain_stats_sized", &late.stats);
    late_library_symbol(library, "prudence_domain_synchronize", &late.synchronize);
    domains[0] = late.default_domain();
    domains[1] = late.create("late", PRUDENCE_DOMAIN_MEMB, NULL);
    return domains[1] != NULL;
}

/* ------------------------------------------------------------------------------------ the storm */

static void on_signal(int number)
{
    in_handler = 1;
    for (unsigned i = 0; i < 2; i++) {
        late.lock(domains[i]);
        late.unlock(domains[i]);
    }
    in_handler = 0;
    __atomic_fetch_add(&handled, 1, __ATOMIC_RELEASE);
}

static unsigned rounds; /* of the running thread; atomic */

static void *allocate(void *unused)
{
    unsigned before = __atomic_load_n(&handled, __ATOMIC_ACQUIRE);

    do {
        void *volatile first = malloc(2000 + rounds % 5000), *volatile second = malloc(3000);

        free(first);
        free(second);
        __atomic_fetch_add(&rounds, 1, __ATOMIC_RELAXED);
    } while (__atomic_load_n(&handled, __ATOMIC_ACQUIRE) == before);
    return NULL;
}

static void interrupt_one_thread(unsigned after)
{
    unsigned before = __atomic_load_n(&rounds, __ATOMIC_RELAXED);
    pthread_t thread;

    if (pthread_create(&thread, NULL, allocate, NULL))
        abort();
    while (__atomic_load_n(&rounds, __ATOMIC_RELAXED) - before < after)
        ;
    pthread_kill(thread, SIGUSR1);
    pthread_join(thread, NULL);
}

static int storm(void *path)
{
    struct prudence_domain_stats stats;
    pthread_key_t key;

    for (unsigned i = 0; i < KEYS; i++)
        if (pthread_key_create(&key, NULL))
            return 1;
    if (!load(path))
        return 2;
    signal(SIGUSR1, on_signal);
    for (unsigned i = 0; i < THREADS; i++)
        interrupt_one_thread(1 + i * 7 % 20);
    fprintf(stderr, "%u handlers, %u allocations in them\n", handled, allocations_in_handlers);
    if (handled != THREADS || allocations_in_handlers)
        return 3;
    for (unsigned i = 0; i < 2; i++) {
        do /* a thread ends a little after it is joined */
            late.stats(domains[i], &stats, sizeof stats);
        while (stats.readers);
        if (late.synchronize(domains[i]))
            return 4;
    }
    return 42;
}

TEST(it_neither_allocates_nor_leaves_anything)
{
    char path[600];

    if (!late_library_find(path, sizeof path)) {
        print_message("libprudence.so not found next to this program\n");
        skip();
    }
    assert_child(storm, path);
}

SUITE()
