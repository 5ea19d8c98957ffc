/* SPDX-License-Identifier: MIT */
/*
 * The check of memory pressure runs inside an allocation, on any stack. It must need little stack,
 * and a whole allocation that finds memory short must fit into the smallest stack that a thread can
 * have.
 *
 * ctest: not-with thread (ThreadSanitizer puts its state of a thread on the stack, which is small
 * here)
 */
#include <limits.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "posix.h"
#include "support/slab_test.h"

#define STACK ((size_t)128 << 10)
#define PAINT 0xa5

/* A sanitizer has large frames of its own. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WITH_SANITIZER 1
#else
#define WITH_SANITIZER 0
#endif

static uint64_t now = 1;
static char folder[] = "/tmp/prudence-group-XXXXXX", slashed[sizeof folder + 1];

static uint64_t our_clock(void)
{
    return now;
}

static void *look_for_pressure(void *unused)
{
    now += UINT64_C(10000000000);
    posix_pressure_check(1 << 20);
    return unused;
}

static void *do_nothing(void *unused)
{
    return unused;
}

/* Returns the bytes of stack that a thread touches in `run`. */
static size_t stack_of(void *(*run)(void *))
{
    unsigned char *stack =
        mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_attr_t attributes;
    pthread_t thread;
    size_t untouched = 0;

    assert_true(stack != MAP_FAILED);
    memset(stack, PAINT, STACK);
    pthread_attr_init(&attributes);
    assert_int_equal(pthread_attr_setstack(&attributes, stack, STACK), 0);
    assert_int_equal(pthread_create(&thread, &attributes, run, NULL), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
    while (untouched < STACK && stack[untouched] == PAINT)
        untouched++;
    munmap(stack, STACK);
    return STACK - untouched;
}

static void expect_little(void)
{
    size_t least, used;

    stack_of(look_for_pressure); /* binds functions */
    least = stack_of(do_nothing);
    used = stack_of(look_for_pressure);
    print_message("%zu bytes, %zu more than for nothing\n", used, used - least);
    if (!WITH_SANITIZER)
        assert_in_range(used - least, 0, 1500);
}

TEST(of_the_own_group)
{
    expect_little();
}

static void write_file(const char *name, const char *text)
{
    char path[100];
    FILE *file;

    snprintf(path, sizeof path, "%s%s", slashed, name);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static const char *const files[][2] = {
    {"memory.current", "1000000\n"},
    {"memory.high", "1000001\n"},
    {"memory.max", "1000001\n"},
    {"memory.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"},
    {"memory.events", "low 0\nhigh 3\nmax 0\noom 0\noom_kill 0\n"},
};

TEST(of_a_group_that_is_short)
{
    for (unsigned i = 0; i < sizeof files / sizeof *files; i++)
        write_file(files[i][0], files[i][1]);
    posix_pressure_inject(slashed, "/proc/pressure/memory");
    expect_little();
    assert_true(os_memory_is_short());
}

static void *allocate_and_empty(void *failed)
{
    void *block;

    now += UINT64_C(10000000000);
    block = prudence_malloc(20 << 20);
    prudence_free(block);
    return block ? NULL : failed;
}

TEST(on_the_least_stack)
{
    static void *objects[10000];
    pthread_attr_t attributes;
    pthread_t thread;
    void *result;

    if (WITH_SANITIZER)
        skip();
    for (unsigned i = 0; i < 10000; i++)
        objects[i] = prudence_malloc(1000);
    for (unsigned i = 0; i < 10000; i++)
        prudence_free(objects[i]);
    pthread_attr_init(&attributes);
    assert_int_equal(pthread_attr_setstacksize(&attributes, (size_t)sysconf(_SC_THREAD_STACK_MIN)),
                     0);
    assert_int_equal(pthread_create(&thread, &attributes, allocate_and_empty, "failed"), 0);
    pthread_join(thread, &result);
    pthread_attr_destroy(&attributes);
    assert_null(result);
}

static int make(void **state)
{
    posix_clock_injected = our_clock;
    if (!mkdtemp(folder))
        return 1;
    snprintf(slashed, sizeof slashed, "%s/", folder);
    return 0;
}

static int unmake(void **state)
{
    char path[100];

    for (unsigned i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s%s", slashed, files[i][0]);
        unlink(path);
    }
    return rmdir(folder);
}

SUITE_BETWEEN(make, unmake)
