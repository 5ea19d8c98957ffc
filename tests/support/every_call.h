/* SPDX-License-Identifier: MIT */
/*
 * Lets calls to the page source, metadata and page map fail, one after the other: a row's scenario
 * runs in a child while the first call fails, then the second, ... until it makes fewer calls. What
 * the scenario finds wrong, it asserts. A failure of the test names the row and the call.
 */
#ifndef TESTS_SUPPORT_EVERY_CALL_H
#define TESTS_SUPPORT_EVERY_CALL_H

#include "support/deep.h"
#include "support/gp_child.h"
#include "support/slab_test.h"

#define EVERY_CALL_SINGLY 12 /* with `in_strides` each of the first calls fails, then every third */

struct failure_row {
    const char *name;
    void (*run)(void);          /* with calls that fail, until it calls failures_end() */
    const char *const *options; /* name, value, ... NULL; set while calls fail */
    unsigned least;             /* the scenario makes more calls */
    bool in_strides;            /* it makes many; a deep run lets each fail */
};

static struct {
    const struct failure_row *row;
    unsigned first, count; /* calls that fail */
    unsigned calls;        /* number of calls until the last failures_end() */
} failing;

static inline void failures_begin(void)
{
    memory_fail(failing.first, failing.count);
}

/* Lets all further calls succeed, and counts them. */
static inline void failures_end(void)
{
    failing.calls += memory_calls;
    memory_fail(UINT32_MAX, 0);
}

static inline int every_call_life(void *unused)
{
    const char *const *option = failing.row->options;

    setenv("CMOCKA_TEST_ABORT", "1", 1); /* an assertion ends this process */
    failures_begin();
    for (; option && *option; option += 2)
        assert_int_equal(prudence_option_set(option[0], option[1]), 0);
    failing.row->run();
    memory_succeed();
    fprintf(stderr, "calls=%u", failing.calls);
    return 42;
}

/* Lets `count` calls fail from each call on. */
static inline void every_call(const struct failure_row *row, unsigned count)
{
    failing.row = row;
    failing.count = count;
    for (failing.first = 0;; failing.first++) {
        struct child_result result;
        const char *calls;

        child_run(every_call_life, NULL, &result);
        calls = strstr(result.output, "calls=");
        if (!child_exited_with(&result, 42) || !calls)
            fail_msg("%s, %u calls fail from call %u on: status %#x: %s", row->name, count,
                     failing.first, (unsigned)result.status, result.output);
        if (failing.first >= strtoul(calls + 6, NULL, 10))
            break;
        if (row->in_strides && failing.first >= EVERY_CALL_SINGLY)
            failing.first += deep_stride(3) - 1;
    }
    if (failing.first <= row->least)
        fail_msg("%s makes no more than %u calls", row->name, row->least);
}

/* Lets each call of each row fail alone, and with all that follow. */
static inline void every_call_of(const struct failure_row *rows, size_t row_count)
{
    for (size_t i = 0; i < row_count; i++) {
        every_call(&rows[i], 1);
        every_call(&rows[i], UINT32_MAX);
    }
}

#endif /* TESTS_SUPPORT_EVERY_CALL_H */
