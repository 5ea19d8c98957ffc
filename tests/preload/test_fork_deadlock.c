/* SPDX-License-Identifier: MIT */
/*
 * Forks of a threaded process in which all threads allocate, also with a lock that fork() waits
 * for, and fork handlers, too, of which some are registered before any constructor has run. libc
 * takes the lock of the list of streams after all fork handlers have run. The holder of that lock
 * (fflush(NULL), fopen) waits for a stream's lock, whose holder (getline) waits in malloc().
 */
#define _GNU_SOURCE

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <prudence/prudence.h>

#include "support/gp_child.h"
#include "support/suite.h"

#define FORKERS  4
#define FORKS    100 /* of each; a quarter of them under emulation, which is very slow */
#define PATIENCE 100 /* seconds without a completed fork; then there is a deadlock */
#define LINES    40
#define HANDLERS 400 /* libc's list of handlers grows, and so allocates, with 49, 73, ... of them */

static bool stop;
static void *volatile sink;

static bool stopped(void)
{
    return __atomic_load_n(&stop, __ATOMIC_RELAXED);
}

/* Pauses, because libc's locks are unfair and would starve the other threads. */
static void let_others(void)
{
    usleep(50);
}

/* ---------------------------------------------------------------------------- the other threads */

/* Makes a file with lines of all sizes, up to a large block. */
static FILE *lines_make(void)
{
    FILE *file = tmpfile();

    assert_non_null(file);
    for (unsigned line = 0; line < LINES; line++) {
        for (unsigned i = 0; i < (line * line * line * 7) % 90000; i++)
            putc_unlocked('a' + (int)line % 26, file);
        putc_unlocked('\n', file);
    }
    return file;
}

/* getline() allocates with the stream's lock held. */
static void *read_lines(void *file)
{
    while (!stopped()) {
        char *line = NULL;
        size_t size = 0;

        rewind(file);
        while (getline(&line, &size, file) >= 0 && !stopped()) {
            free(line);
            line = NULL;
            size = 0;
            let_others();
        }
        free(line);
    }
    return NULL;
}

static void *flush_all(void *unused)
{
    while (!stopped()) {
        fflush(NULL);
        let_others();
    }
    return unused;
}

static void *open_and_close(void *unused)
{
    while (!stopped()) {
        char *text;
        size_t size;
        FILE *file = open_memstream(&text, &size);

        fprintf(file, "%0*d", 5000, 7);
        fclose(file);
        free(text);
        let_others();
    }
    return unused;
}

static void use(unsigned long number)
{
    char *block = malloc(number * 97 % 70000), *aligned = aligned_alloc(4096, 4096 * (number % 5));

    sink = block;
    block = realloc(block, number * 131 % 3000000 + 1);
    if (!block)
        abort();
    block[0] = 1;
    sink = block = realloc(block, number * 37 % 4000 + 1);
    free(aligned);
    free(calloc(number % 50, 100));
    prudence_free_deferred(block);
}

/* Allocates all kinds of blocks with a stream's lock held. */
static void *use_locked(void *file)
{
    for (unsigned long i = (uintptr_t)file; !stopped(); i++) {
        flockfile(file);
        use(i);
        funlockfile(file);
        let_others();
    }
    return NULL;
}

/* A library with a lock that its threads hold while they allocate, and that it holds across a fork
 * by common handlers. */
static pthread_mutex_t library_lock = PTHREAD_MUTEX_INITIALIZER;

static void prepare(void)
{
    use(7);
    pthread_mutex_lock(&library_lock);
    use(11);
}

static void release(void)
{
    use(13);
    pthread_mutex_unlock(&library_lock);
}

static void register_early(void)
{
    pthread_atfork(prepare, release, release);
}

/* Runs before all constructors, including the library's. */
typedef void function(void);
static function *const at_preinit __attribute__((section(".preinit_array"), used)) = register_early;

static void *use_library(void *unused)
{
    while (!stopped()) {
        pthread_mutex_lock(&library_lock);
        use((uintptr_t)&unused >> 4);
        pthread_mutex_unlock(&library_lock);
        let_others();
    }
    return unused;
}

static void *use_once(void *unused)
{
    use((uintptr_t)&unused);
    return unused;
}

static void *make_threads(void *unused)
{
    while (!stopped()) {
        pthread_t thread;

        if (pthread_create(&thread, NULL, use_once, NULL) == 0)
            pthread_join(thread, NULL);
    }
    return unused;
}

static void *load_libraries(void *unused)
{
    while (!stopped()) {
        void *library = dlopen(LIBRARY, RTLD_NOW);

        if (!library)
            abort();
        dlclose(library);
    }
    return unused;
}

static void handler(void)
{
    use(7);
}

/* libc's list of handlers has its own lock, which fork() takes again after each handler. */
static void *register_handlers(void *unused)
{
    for (unsigned i = 0; i < HANDLERS && !stopped(); i++) {
        pthread_atfork(handler, NULL, NULL);
        usleep(1000);
    }
    return unused;
}

/* ------------------------------------------------------------------------------------- forking */

static int child(unsigned long number)
{
    char *line = NULL;
    size_t size = 0;
    pthread_t thread;
    FILE *file;

    for (unsigned i = 0; i < 20; i++)
        use(number + i * 71);
    file = fopen("/proc/self/stat", "r");
    if (!file || getline(&line, &size, file) < 0)
        return 1;
    free(line);
    fclose(file);
    if (number % 8)
        return 42;
    fclose(open_memstream(&line, &size));
    free(line);
    return pthread_create(&thread, NULL, use_once, NULL) || pthread_join(thread, NULL) ? 2 : 42;
}

static unsigned failures;

static void *fork_often(void *first)
{
    unsigned long number = (uintptr_t)first;

    for (unsigned left = getenv("PRUDENCE_EMULATED") ? FORKS / 4 : FORKS; left; left--, number++) {
        pid_t process = fork();
        int status;

        if (process == 0) {
            alarm(CHILD_PATIENCE);
            _exit(child(number));
        }
        if (process < 0 || waitpid(process, &status, 0) != process || !WIFEXITED(status) ||
            WEXITSTATUS(status) != 42)
            __atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED);
        alarm(patience(PATIENCE));
    }
    return NULL;
}

TEST(forks_with_streams)
{
    FILE *files[] = {lines_make(), lines_make(), tmpfile()};
    struct {
        void *(*run)(void *argument);
        void *argument;
        pthread_t thread;
    } others[] = {
        {.run = read_lines, .argument = files[0]},
        {.run = read_lines, .argument = files[1]},
        {.run = use_locked, .argument = files[2]},
        {.run = use_library},
        {.run = flush_all},
        {.run = open_and_close},
        {.run = make_threads},
        {.run = load_libraries},
        {.run = register_handlers},
    };
    enum { OTHERS = sizeof others / sizeof others[0] };
    pthread_t forkers[FORKERS];

    alarm(patience(PATIENCE));
    for (unsigned i = 0; i < OTHERS; i++)
        assert_int_equal(pthread_create(&others[i].thread, NULL, others[i].run, others[i].argument),
                         0);
    for (uintptr_t i = 0; i < FORKERS; i++)
        assert_int_equal(pthread_create(&forkers[i], NULL, fork_often, (void *)(i * 1000)), 0);
    for (unsigned i = 0; i < FORKERS; i++)
        pthread_join(forkers[i], NULL);
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < OTHERS; i++)
        pthread_join(others[i].thread, NULL);
    alarm(0);
    assert_int_equal(failures, 0);
    for (unsigned i = 0; i < sizeof files / sizeof files[0]; i++)
        fclose(files[i]);
}

SUITE()
