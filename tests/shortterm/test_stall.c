/* SPDX-License-Identifier: MIT */
/* A thread that takes part and does not tick holds up global time: it is reported once. */
#include "support/scm_test.h"
#include "support/gp_child.h"

#include <time.h>

static int in_child(void)
{
    struct timespec pause = {.tv_nsec = 10000000};
    struct actor actor;

    prudence_option_set("stall_timeout", "50ms");
    actor_start(&actor);
    does(&actor, act_register, NULL);
    scm_register_thread();
    for (unsigned i = 0; i < 30; i++) {
        scm_global_tick();
        nanosleep(&pause, NULL);
    }
    does(&actor, act_block, NULL);
    actor_end(&actor);
    return 0;
}

TEST(a_thread_that_does_not_tick_is_named)
{
    expect_exit(0, in_child(), "");
    assert_int_equal(said("stall:"), 1);
    assert_true(said("domain 'scm'"));
}

SUITE(scm_test_uses())
