/* SPDX-License-Identifier: MIT */
/*
 * The shared library is loaded at run time, in a process that already has threads. All of them then
 * use it; it is closed (and stays loaded) and used again.
 */
#define _GNU_SOURCE

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <prudence/prudence.h>
#include <prudence/rcu.h>

#include "support/gp_child.h"
#include "support/late_library.h"
#include "support/suite.h"
#include "support/threads.h"

#define THREADS 16

/* Found by name, so that the test does not call the static copy in this program. */
static struct {
    void *(*alloc)(size_t);
    void (*defer)(void *);
    struct prudence_domain *(*domain)(void);
    void (*lock)(struct prudence_domain *);
    void (*unlock)(struct prudence_domain *);
    int (*synchronize)(struct prudence_domain *);
} late;

static pthread_barrier_t loaded, used, closed;

static void use(void)
{
    struct prudence_domain *domain = late.domain();

    for (unsigned i = 0; i < 3000; i++) {
        late.lock(domain);
        late.defer(late.alloc(i));
        late.unlock(domain);
    }
    if (late.synchronize(domain))
        abort();
}

static void *thread(void *unused)
{
    pthread_barrier_wait(&loaded);
    use();
    pthread_barrier_wait(&used);
    pthread_barrier_wait(&closed);
    use(); /* and its destructor for this thread still exists at exit */
    return unused;
}

static int load_use_close_use(void *path)
{
    pthread_t threads[THREADS];
    void *library;

    pthread_barrier_init(&loaded, NULL, THREADS + 1);
    pthread_barrier_init(&used, NULL, THREADS + 1);
    pthread_barrier_init(&closed, NULL, THREADS + 1);
    threads_start(threads, THREADS, thread);
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    late_library_symbol(library, "prudence_malloc", &late.alloc);
    late_library_symbol(library, "prudence_free_deferred", &late.defer);
    late_library_symbol(library, "prudence_default_domain", &late.domain);
    late_library_symbol(library, "prudence_domain_read_lock", &late.lock);
    late_library_symbol(library, "prudence_domain_read_unlock", &late.unlock);
    late_library_symbol(library, "prudence_domain_synchronize", &late.synchronize);
    if (late.domain() == prudence_default_domain())
        return 2; /* the test must not use the copy in this program */
    pthread_barrier_wait(&loaded);
    pthread_barrier_wait(&used);
    dlclose(library);
    if (!dlopen(path, RTLD_NOW | RTLD_NOLOAD))
        return 3;
    pthread_barrier_wait(&closed);
    threads_join(threads, THREADS);
    use();
    return 42;
}

TEST(loaded_late_used_by_many_threads_and_never_unloaded)
{
    char path[600];

    if (!late_library_find(path, sizeof path)) {
        print_message("libprudence.so not found next to this program\n");
        skip();
    }
    assert_child(load_use_close_use, path);
}

SUITE()
