/* SPDX-License-Identifier: MIT */
/*
 * Forks of a threaded process in which all threads allocate, and fork handlers, too, which are
 * registered before any constructor has run.
 */
#define _GNU_SOURCE

#include <pthread.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <prudence/prudence.h>

#include "support/gp_child.h"
#include "support/suite.h"

#define THREADS 3
#define FORKS   150 /* a quarter of them under emulation, which is very slow */

static void *volatile sink;

static void use(unsigned long number)
{
    char *object = malloc(number % 40000);

    sink = object;
    if (!object)
        abort();
    object = realloc(object, number % 7000 + 1);
    sink = object;
    memset(object, 1, number % 7000 + 1);
    free(calloc(number % 50, 10));
    prudence_free_deferred(object);
}

/* A library with a lock that its threads hold while they allocate, and that it holds across a fork
 * by common handlers. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool armed;
static unsigned handlers_run;

static void prepare(void)
{
    if (!armed)
        return;
    use(handlers_run);
    pthread_mutex_lock(&lock);
    use(handlers_run * 100);
    handlers_run++;
}

static void parent(void)
{
    if (!armed)
        return;
    use(handlers_run);
    pthread_mutex_unlock(&lock);
    handlers_run++;
}

static void child(void)
{
    if (!armed)
        return;
    use(handlers_run * 10);
    pthread_mutex_unlock(&lock);
    handlers_run++;
}

static void late(void)
{
    use(handlers_run * 7);
}

static void register_early(void)
{
    pthread_atfork(prepare, parent, child);
}

/* Runs before all constructors, including the library's. */
typedef void function(void);
static function *const at_preinit __attribute__((section(".preinit_array"), used)) = register_early;

static bool stop;

static void *keep_busy(void *number)
{
    unsigned long i = (unsigned long)number;

    for (; !__atomic_load_n(&stop, __ATOMIC_RELAXED); i++) {
        use(i * 37);
        pthread_mutex_lock(&lock);
        use(i * 53);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static void *use_a_thread(void *unused)
{
    for (unsigned i = 0; i < 100; i++)
        use(i);
    return unused;
}

static int child_of_threads(void)
{
    pthread_t thread;

    for (unsigned i = 0; i < 300; i++)
        use(i * 71);
    if (pthread_create(&thread, NULL, use_a_thread, NULL) || pthread_join(thread, NULL))
        return 1;
    return handlers_run % 2 == 0 ? 42 : 2; /* prepare and child */
}

TEST(forks_of_a_threaded_process)
{
    pthread_t threads[THREADS];
    int status;

    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, keep_busy, (void *)(i * 1000)), 0);
    pthread_atfork(late, late, late);
    armed = true;
    for (unsigned left = getenv("PRUDENCE_EMULATED") ? FORKS / 4 : FORKS; left; left--) {
        pid_t process;

        alarm(patience(100)); /* per step, so that a slow machine does not look like a deadlock */
        process = fork();
        if (process == 0) {
            alarm(CHILD_PATIENCE);
            _exit(child_of_threads());
        }
        assert_true(process > 0);
        assert_int_equal(waitpid(process, &status, 0), process);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 42);
    }
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    alarm(0);
}

SUITE()
