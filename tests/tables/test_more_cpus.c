/* SPDX-License-Identifier: MIT */
/*
 * More CPUs than the library was told of at start, because a container shows its own list in /sys,
 * or a process is restored on a larger machine. Threads on the other CPUs share the first CPU's
 * caches. Nothing is lost, and nothing is written past the arrays.
 *
 * ctest: inlined-too
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "os/posix/posix.h"
#include "slab/start.h"
#include "support/marked_objects.h"
#include "support/threads.h"

#define THREADS 4
#define ROUNDS  150
#define TRIES   10

static int more; /* a CPU unknown to the library; -1: none */

static void move_to(int cpu)
{
    cpu_set_t one;

    CPU_ZERO(&one);
    CPU_SET((unsigned)cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
}

/* Alternates between the two CPUs. */
static void *work(void *argument)
{
    uintptr_t me = (uintptr_t)argument;
    void *other;

    for (unsigned round = 0; round < ROUNDS; round++) {
        move_to((round + me) % 2 ? more : 0);
        marked_turn(me);
        other = prudence_cache_replace(marked_cache, prudence_cache_alloc(marked_cache));
        prudence_cache_free(marked_cache, other);
    }
    return NULL;
}

TEST(threads_on_them_work)
{
    if (more < 0)
        skip();
    assert_int_equal(os_cpu_count(), 1);
    marked_threads(THREADS, ROUNDS, work);
}

/* The memory after the arrays is not accessed, because it may be another cache's line. */
TEST(there_is_no_line_for_them)
{
    static struct {
        struct os_percpu_line line;
        char rest[OS_PERCPU_STRIDE - sizeof(struct os_percpu_line)];
    } lines[2];
    void *stack[4] = {NULL, &lines, &lines, NULL}, *known = lines, *object = &more;

    if (more < 0 || !os_percpu_rseq)
        skip();
    for (unsigned i = 0; i < 2; i++) {
        os_percpu_line_init(&lines[i].line, i);
        lines[i].line.stack = stack + 1;
        lines[i].line.ring = stack;
        lines[i].line.stack_word = 1;
        os_percpu_limit_stack(&lines[i].line, 2);
        os_percpu_open(&lines[i].line);
    }
    move_to(more);
    assert_null(os_percpu_top(&known));
    assert_null(os_percpu_pop(&known));
    assert_false(os_percpu_push(&known, object));
    assert_false(os_percpu_append(&known, object));
    assert_null(os_percpu_remove(&known, (unsigned)more, 0));
    assert_false(os_percpu_add(&known, 1));
    assert_ptr_equal(os_percpu_take(lines, &object), &lines[0].line);
    assert_null(os_percpu_take(lines, &object));
    assert_int_equal(lines[1].line.owner, 0);
    assert_int_equal(lines[1].line.stack_word, 1);
    os_percpu_release(&lines[0].line);
    move_to(0);
    for (unsigned i = 0; i < TRIES && object != (void *)&lines; i++) /* may be interrupted */
        object = os_percpu_pop(&known);
    assert_ptr_equal(object, &lines);
}

/* Returns the number of CPUs up to the last one that this thread may run on; these always count. */
static unsigned allowed(void)
{
    unsigned count = CPU_SETSIZE;
    cpu_set_t own;

    sched_getaffinity(0, sizeof own, &own);
    while (count > 1 && !CPU_ISSET(count - 1, &own))
        count--;
    return count;
}

/* Runs in a child, because nothing may be allocated between two counts. */
TEST(lists_that_cannot_be_true)
{
    static const struct {
        const char *list;
        unsigned count; /* 0: as the kernel's mask says */
    } known[] = {
        {"0", 1},      {"0-5", 6},        {"0-3,8,10-11", 12}, {"0-8191", 8192},
        {"0-8192", 0}, {"", 0},           {"none", 0},         {"0-99999999999999999", 0},
        {"-5", 0},     {"4294967296", 0}, {"0-1048576", 0},    {"0,,5", 1},
        {"0-", 1},
    };
    pid_t pid = fork();

    for (unsigned i = 0; !pid && i < sizeof known / sizeof *known; i++) {
        posix_cpus_possible_injected = known[i].list;
        posix_cpu_start();
        if (known[i].count
                ? os_cpu_count() != (known[i].count > allowed() ? known[i].count : allowed())
                : os_cpu_count() % 8)
            _exit((int)i + 1);
    }
    if (!pid && more > 0) { /* a CPU that a thread may run on exists */
        move_to(more);
        posix_cpus_possible_injected = "0";
        posix_cpu_start();
        _exit(os_cpu_count() == (unsigned)more + 1 ? 0 : 99);
    }
    if (!pid)
        _exit(0);
    assert_int_equal(status_of(pid), 0);
}

/* Starts the library on the first CPU only, because the CPUs that the starting thread may use
 * always count. */
int main(void)
{
    cpu_set_t all;

    sched_getaffinity(0, sizeof all, &all);
    more = (int)allowed() - 1;
    if (more == 0 || !CPU_ISSET(0, &all)) {
        puts("tests are skipped: they need CPU 0 and another");
        more = -1;
    } else
        move_to(0);
    posix_cpus_possible_injected = "0";
    posix_cpu_start();
    posix_percpu_start(true);
    slab_start();
    return suite_run(NULL, NULL);
}
