/* SPDX-License-Identifier: MIT */
/*
 * malloc() at every moment of a process and of a thread: before constructors, in destructors, in
 * libraries that come and go, in threads that end, around vfork() and spawn.
 */
#define _GNU_SOURCE

#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <prudence/prudence.h>
#include <prudence/stats.h>

#include "support/gp_child.h"
#include "support/suite.h"
#include "support/threads.h"

extern char **environ;

static __thread void *volatile sink; /* several threads use it */

static void *keep(void *object)
{
    sink = object;
    return sink;
}

static void use(unsigned long number)
{
    free(keep(malloc(number % 40000)));
    prudence_free_deferred(keep(strdup("some text")));
}

/* -------------------------------------------------------------------------- begin and end */

static void *from_preinit, *from_constructor;

static void preinit(void)
{
    from_preinit = malloc(100);
}

typedef void function(void);
static function *const at_preinit __attribute__((section(".preinit_array"), used)) = preinit;

__attribute__((constructor(101))) static void construct(void)
{
    from_constructor = malloc(5000);
}

static bool in_role;

__attribute__((destructor(101))) static void destruct(void)
{
    use(1000);
    free(from_constructor);
    if (in_role && write(STDOUT_FILENO, "destructor;", 11) < 0)
        abort();
}

static void at_exit(void)
{
    use(100);
    malloc_trim(0);
    if (write(STDOUT_FILENO, "atexit;", 7) < 0)
        abort();
}

static int exit_with_everything(void)
{
    in_role = true;
    atexit(at_exit);
    use(10);
    exit(0);
}

TEST(before_constructors_and_after_destructors)
{
    assert_true(malloc_usable_size(from_preinit) >= 100);
    assert_true(malloc_usable_size(from_constructor) >= 5000);
    free(from_preinit);
    expect_exit(0, exit_with_everything(), "");
    assert_string_equal(last_child.output, "atexit;destructor;");
}

TEST(there_is_no_hidden_thread)
{
    for (unsigned i = 0; i < 100000; i++)
        use(i);
    while (threads_now() != 1) /* after a long pause, a thread drains the process, and then ends */
        usleep(1000);
}

/* -------------------------------------------------------------------------------- libraries */

TEST(libraries_come_and_go)
{
    for (unsigned i = 0; i < 50; i++) {
        void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
        char *(*gives)(size_t size);
        char *given;

        assert_non_null(library);
        *(void **)&gives = dlsym(library, "library_gives");
        given = gives(1000 + i);
        assert_true(malloc_usable_size(given) >= 1000 + i);
        free(gives(10));
        dlclose(library);
        prudence_free_deferred(given);
    }
    assert_null(dlopen("/no/such/library", RTLD_NOW));
    assert_non_null(dlerror());
}

/* ---------------------------------------------------------------------------------- threads */

static pthread_key_t keys[40]; /* more than pthread keeps without allocating */

static void free_and_allocate(void *object)
{
    free(object);
    use(500);
}

static void *thread_with_keys(void *unused)
{
    for (unsigned i = 0; i < 40; i++)
        pthread_setspecific(keys[i], malloc(i * 100));
    use(1000);
    return unused;
}

TEST(destructors_of_threads_may_free)
{
    struct mallinfo2 before, after;

    for (unsigned i = 0; i < 40; i++)
        assert_int_equal(pthread_key_create(&keys[i], free_and_allocate), 0);
    before = mallinfo2();
    for (unsigned i = 0; i < 300; i++) {
        pthread_t thread;

        assert_int_equal(pthread_create(&thread, NULL, thread_with_keys, NULL), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
    }
    after = mallinfo2();
    assert_true(after.uordblks < before.uordblks + 300 * 100);
    for (unsigned i = 0; i < 40; i++)
        pthread_key_delete(keys[i]);
}

/* -------------------------------------------------------------------------------- processes */

static void *keep_allocating(void *stop)
{
    for (unsigned i = 0; !__atomic_load_n((bool *)stop, __ATOMIC_RELAXED); i++)
        use(i);
    return NULL;
}

static void assert_status(pid_t process, int wanted)
{
    int status;

    assert_true(process > 0);
    assert_int_equal(waitpid(process, &status, 0), process);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), wanted);
}

TEST(processes_are_started_from_a_threaded_one)
{
    char *true_program[] = {"true", NULL};
    bool stop = false;
    pthread_t thread;

    pthread_create(&thread, NULL, keep_allocating, &stop);
    for (unsigned i = 0; i < 50; i++) {
        pid_t process;

        assert_int_equal(posix_spawnp(&process, "true", NULL, NULL, true_program, environ), 0);
        assert_status(process, 0);
        process = vfork();
        if (process == 0) {
            execvp("true", true_program);
            _exit(127);
        }
        assert_status(process, 0);
        process = vfork();
        if (process == 0)
            _exit(3);
        assert_status(process, 3);
        assert_int_equal(system("exit 7") >> 8, 7);
        use(i);
    }
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
}

SUITE()
