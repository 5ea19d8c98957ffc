/* SPDX-License-Identifier: MIT */
/*
 * Freeing closes or opens guard pages, by calls that may reach an allocating function of the
 * program. These calls are made after the thread has released everything it holds, and before the
 * free returns. If another thread is inside such a call during a fork, the child makes the call
 * again.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mapping.h"
#include "support/pages.h"
#include "support/readable.h"
#include "support/threads.h"

#define LARGE ((size_t)300 << 10)

static unsigned calls_seen, frees_seen;
static bool freeing;
static __thread bool inside;

static void use_memory(void)
{
    void *small = prudence_malloc(100), *large = prudence_malloc(LARGE);
    void *empty = prudence_malloc(0);

    prudence_free(large);
    prudence_free(empty);
    prudence_free(small);
}

static void allocate(const char *call)
{
    assert_false(inside);
    assert_true(os_holds_nothing());
    inside = true;
    calls_seen++;
    frees_seen += freeing;
    use_memory();
    inside = false;
}

TEST(a_free_closes_before_it_returns)
{
    static const size_t sizes[] = {LARGE, 40000, 3 << 20, 200};

    mapping_watch(allocate);
    for (unsigned i = 0; i < 60; i++) {
        char *block = prudence_malloc(sizes[i % 4]);

        assert_non_null(block);
        memset(block, 1, sizes[i % 4]);
        freeing = true;
        prudence_free(block);
        freeing = false;
        assert_false(is_open(block));
    }
    mapping_watch(NULL);
    assert_true(calls_seen > 0 && frees_seen > 0);
}

TEST(objects_of_no_bytes_go)
{
    static void *objects[20000];

    mapping_watch(allocate);
    for (unsigned i = 0; i < 20000; i++) {
        objects[i] = prudence_malloc(0);
        assert_non_null(objects[i]);
        assert_false(is_open(objects[i]) && i % 1000 == 0);
    }
    for (unsigned i = 0; i < 20000; i++)
        prudence_free(objects[i]);
    prudence_trim();
    mapping_watch(NULL);
    prudence_trim();
}

/* Each call frees a block, which another call closes. Every operation must still return, and all
 * deferred work must be done. */
TEST(what_calls_free_is_closed_later)
{
    uint64_t used;

    prudence_trim();
    used = pages().used;
    mapping_watch(allocate);
    for (unsigned i = 0; i < 600; i++)
        prudence_free(prudence_malloc(LARGE));
    mapping_watch(NULL);
    for (unsigned i = 0; i < 300; i++) /* resting blocks release earlier ones */
        prudence_free(prudence_malloc(40000));
    assert_true(pages().used <= used + 80 * MIB);
}

/* --------------------------------------------------------------------------------- signals */

static bool another_allocates;

static void *allocates(void *unused)
{
    prudence_free(prudence_malloc(100));
    return unused;
}

/* In the place of the C library's. */
int sigaction(int number, const struct sigaction *action, struct sigaction *before)
{
    static int (*next)(int number, const struct sigaction *action, struct sigaction *before);

    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "sigaction");
    if (another_allocates) {
        another_allocates = false;
        in_thread(allocates, NULL);
    }
    return next(number, action, before);
}

TEST(sigaction_may_wait_for_a_thread_that_allocates)
{
    another_allocates = true;
    prudence_free(prudence_malloc(100));
    assert_false(another_allocates);
}

/* --------------------------------------------------------------------------------- fork */

static sem_t entered, leave;
static const char *held_in;
static __thread bool waits;

static void wait_in_call(const char *call)
{
    if (!waits || strcmp(call, held_in) != 0)
        return;
    waits = false;
    sem_post(&entered);
    while (sem_wait(&leave))
        ;
}

static char *block;

static void *frees(void *unused)
{
    waits = true;
    prudence_free(block);
    return unused;
}

TEST(a_child_closes_what_another_thread_was_closing)
{
    pthread_t thread;
    pid_t process;

#if defined(__SANITIZE_THREAD__)
    skip(); /* ThreadSanitizer may hang in children of threads */
#endif
    sem_init(&entered, 0, 0);
    sem_init(&leave, 0, 0);
    block = prudence_malloc(LARGE);
    assert_non_null(block);
    block[0] = 1;
    held_in = "mprotect";
    mapping_watch(wait_in_call);
    assert_int_equal(pthread_create(&thread, NULL, frees, NULL), 0);
    while (sem_wait(&entered))
        ;
    assert_true(is_open(block));
    process = fork();
    if (!process) {
        mapping_watch(NULL);
        prudence_free(prudence_malloc(LARGE));
        _exit(is_open(block) ? 1 : 0);
    }
    assert_int_equal(status_of(process), 0);
    sem_post(&leave);
    pthread_join(thread, NULL);
    mapping_watch(NULL);
    assert_false(is_open(block));
}

int main(void)
{
    /* The pool must not be made with the locks of the options held, either. */
    mapping_watch(allocate);
    if (prudence_option_set("guard", "1") || prudence_option_set("guard_large", "1") ||
        prudence_option_set("guard_empty", "1"))
        return 1;
    mapping_watch(NULL);
    return suite_run(NULL, NULL);
}
