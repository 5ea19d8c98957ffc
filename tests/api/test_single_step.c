/* SPDX-License-Identifier: MIT */
/*
 * A stepping debugger interrupts each instruction, so no restartable sequence completes (software
 * watchpoints, `record full`, `next` over inlined code). Each operation must still end within a
 * bound of steps, with its usual result. The parent steps the child (PTRACE_SINGLESTEP).
 *
 * Only on x86-64, because elsewhere an atomic update may be a pair of instructions that a step
 * interrupts.
 *
 * ctest: not-with sanitizers (most steps would be their own)
 * ctest: inlined-too
 */
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <prudence/counter.h>
#include <prudence/scm.h>

#include "support/slab_test.h"

#define WARM 300
#define LOOP 50
#define STEPS                                                                                      \
    200000 /* of all operations; they need a third, most of it for decay that happens to be due */
#define NO_TRACES 77 /* exit status of a child that may not be traced */

static struct prudence_cache *cache;
static struct prudence_counter *counter;
static void *object;

static bool alloc_and_free(void)
{
    void *first = prudence_cache_alloc(cache);

    prudence_cache_free(cache, first);
    return first && first != object;
}

static bool malloc_and_free(void)
{
    void *first = prudence_malloc(64), *second = prudence_malloc(64);
    bool right = first && second && first != second;

    prudence_free(first);
    prudence_free_deferred(second);
    return right;
}

static bool defer(void)
{
    void *first = prudence_cache_alloc(cache);

    prudence_cache_free_deferred(cache, first);
    return first && first != object;
}

static bool replace(void)
{
    object = prudence_cache_replace(cache, object); /* the same object if there was no reader */
    return object != NULL;
}

static bool read_section(void)
{
    prudence_read_lock();
    prudence_read_unlock();
    return true;
}

static bool count(void)
{
    int64_t before = prudence_counter_sum(counter);

    prudence_counter_add(counter, 7);
    prudence_counter_add(counter, -2);
    return prudence_counter_sum(counter) == before + 5;
}

static bool short_term(void)
{
    void *dated = scm_malloc(48);

    scm_refresh(dated, 1);
    scm_tick();
    return dated != NULL;
}

static bool loop(void)
{
    for (unsigned i = 0; i < LOOP; i++)
        if (!alloc_and_free())
            return false;
    return true;
}

static const struct {
    const char *name;
    bool (*run)(void);
} operations[] = {
    {"alloc and free", alloc_and_free},
    {"malloc and free", malloc_and_free},
    {"defer", defer},
    {"replace", replace},
    {"read section", read_section},
    {"count", count},
    {"short term", short_term},
    {"loop", loop},
};
#define OPERATIONS (sizeof operations / sizeof *operations)

static unsigned *at; /* the operation being stepped; shared with the parent */

static void child(void)
{
    bool right = true;

    for (unsigned i = 0; i < WARM * OPERATIONS; i++) /* opens fast paths */
        right &= operations[i % OPERATIONS].run();
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
        _exit(NO_TRACES);
    raise(SIGSTOP);
    for (*at = 0; right && *at < OPERATIONS; ++*at)
        right = operations[*at].run();
    _exit(right ? 0 : 1);
}

/* Steps the child. Returns its exit status, or -1 if it died or had not ended after `most`
 * steps. */
static int step(pid_t pid, unsigned most)
{
    int status;

    for (unsigned steps = 0; steps < most; steps++) {
        if (waitpid(pid, &status, 0) != pid)
            return -1;
        if (!WIFSTOPPED(status))
            return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        if (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL))
            return -1;
    }
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    return -1;
}

TEST(operations_end)
{
    pid_t pid;
    int said;

#if !defined(__x86_64__)
    skip();
#endif
    at = mmap(NULL, sizeof *at, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(at, MAP_FAILED);
    pid = fork();
    assert_true(pid >= 0);
    if (!pid)
        child();
    said = step(pid, STEPS);
    if (said == NO_TRACES)
        skip();
    if (said)
        print_message("%s: %d\n", *at < OPERATIONS ? operations[*at].name : "?", said);
    assert_int_equal(said, 0);
}

SUITE(cache = prudence_cache_create("stepped", 64, NULL), counter = prudence_counter_create(),
      object = prudence_cache_alloc(cache))
