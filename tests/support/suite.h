/* SPDX-License-Identifier: MIT */
/*
 * A program of tests with cmocka, in which no list has to name each test: TEST registers the
 * function that it defines, in a section that the linker keeps as one array, and SUITE runs them
 * all in the order of their lines, those of TEST_FIRST first.
 */
#ifndef SUPPORT_SUITE_H
#define SUPPORT_SUITE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

struct suite_entry {
    struct CMUnitTest test;
    int line;
};

extern const struct suite_entry *const __start_suite[], *const __stop_suite[]; /* by the linker */

/* TEST(name, setup, teardown, initial state) begins the definition of a test; all after its name
 * is optional. */
#define TEST(...) SUITE_TEST(__LINE__, __VA_ARGS__, NULL, NULL, NULL, 0)

/* The same for a test that runs before all others, because it needs a process that they have not
 * changed yet. */
#define TEST_FIRST(...) SUITE_TEST(__LINE__ - 1000000, __VA_ARGS__, NULL, NULL, NULL, 0)

#define SUITE_TEST(line, name, setup, teardown, initial, ...)                                      \
    static void name(void **state);                                                                \
    static const struct suite_entry name##_entry = {{#name, name, setup, teardown, initial},       \
                                                    line};                                         \
    __attribute__((section("suite"), used)) static const struct suite_entry *const name##_at =     \
        &name##_entry;                                                                             \
    static void name(__attribute__((unused)) void **state)

/* A whole main(), which evaluates the arguments before the tests. */
#define SUITE(...) SUITE_MAIN(NULL, NULL, __VA_ARGS__)

/* SUITE_BETWEEN(setup, teardown, arguments): the same with a set-up and a tear-down for all tests
 * together. */
#define SUITE_BETWEEN(...) SUITE_MAIN(__VA_ARGS__, (void)0)
#define SUITE_MAIN(setup, teardown, ...)                                                           \
    int main(void)                                                                                 \
    {                                                                                              \
        __VA_ARGS__;                                                                               \
        return suite_run(setup, teardown);                                                         \
    }

static inline int suite_by_line(const void *left, const void *right)
{
    return (*(const struct suite_entry *const *)left)->line -
           (*(const struct suite_entry *const *)right)->line;
}

/* SUITE_AGAIN(arguments): the same for tests that count exactly what restartable sequences do. A
 * sequence gives up when the system takes the CPU away in its midst, so on a busy machine a count
 * may be off. All tests run once more then, in another child, and a fault fails each time. */
#define SUITE_TRIES 5
#define SUITE_AGAIN(...)                                                                           \
    int main(void)                                                                                 \
    {                                                                                              \
        int status = 1;                                                                            \
                                                                                                   \
        for (unsigned i = 0; status && i < SUITE_TRIES; i++) {                                     \
            pid_t child = fork();                                                                  \
                                                                                                   \
            if (child == 0) {                                                                      \
                __VA_ARGS__;                                                                       \
                exit(suite_run(NULL, NULL) != 0);                                                  \
            }                                                                                      \
            if (child < 0 || waitpid(child, &status, 0) != child)                                  \
                return 1;                                                                          \
        }                                                                                          \
        return status != 0;                                                                        \
    }

/* Returns the number of tests that failed. `setup` and `teardown`, which may be NULL, are for all
 * tests together. */
static inline int suite_run(CMFixtureFunction setup, CMFixtureFunction teardown)
{
    const struct suite_entry *entries[200];
    static struct CMUnitTest tests[200];
    size_t count = (size_t)(__stop_suite - __start_suite);

    if (count > 200)
        abort();
    memcpy(entries, __start_suite, count * sizeof(entries[0]));
    qsort(entries, count, sizeof(entries[0]), suite_by_line);
    for (size_t i = 0; i < count; i++)
        tests[i] = entries[i]->test;
    return _cmocka_run_group_tests("tests", tests, count, setup, teardown);
}

#endif
