// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Runs all tests, or those listed in `only`, when the module is loaded. Prints KTAP to the kernel's
 * log, because Debian's kernels have no KUnit.
 */
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/vmalloc.h>

#include "test.h"

static int failed;
module_param(failed, int, 0444);
MODULE_PARM_DESC(failed, "tests that failed");

#define CPUS_NEEDED 3 /* two for readers, one for the test */
#define ONLY_MAX    16
static char *only[ONLY_MAX];
static unsigned int only_count;
module_param_array(only, charp, &only_count, 0444);
MODULE_PARM_DESC(only, "names of the tests to run (all)");

static const struct {
    const char *name;
    void (*run)(void);
} tests[] = {
#define TEST_LISTED(test) {.name = #test, .run = (test)},
    ALL_TESTS(TEST_LISTED)};

int test_failures;

static bool is_wanted(const char *name)
{
    unsigned int i;

    for (i = 0; i < only_count; i++)
        if (!strcmp(only[i], name))
            return true;
    return !only_count;
}

static bool is_known(const char *name)
{
    unsigned int i;

    for (i = 0; i < ARRAY_SIZE(tests); i++)
        if (!strcmp(tests[i].name, name))
            return true;
    pr_err("prudence_test: there is no test '%s'\n", name);
    return false;
}

static int __init test_start(void)
{
    unsigned int i, number = 0;

    if (num_online_cpus() < CPUS_NEEDED) {
        pr_err("prudence_test: needs %d CPUs, there are %u\n", CPUS_NEEDED, num_online_cpus());
        return -ENODEV;
    }
    for (i = 0; i < only_count; i++)
        if (!is_known(only[i]))
            return -EINVAL;
    objects = vmalloc(array_size(RING + MANY, sizeof(*objects)));
    if (!objects)
        return -ENOMEM;
    pr_info("KTAP version 1\n");
    pr_info("1..%zu\n", only_count ? only_count : ARRAY_SIZE(tests));
    for (i = 0; i < ARRAY_SIZE(tests); i++) {
        if (!is_wanted(tests[i].name))
            continue;
        test_failures = 0;
        tests[i].run();
        pr_info("%sok %u prudence.%s\n", test_failures ? "not " : "", ++number, tests[i].name);
        failed += test_failures > 0;
        cond_resched();
    }
    vfree(objects);
    return 0;
}

static void __exit test_stop(void)
{
}

module_init(test_start);
module_exit(test_stop);
MODULE_DESCRIPTION("Tests of prudence.ko");
MODULE_LICENSE("Dual MIT/GPL");
