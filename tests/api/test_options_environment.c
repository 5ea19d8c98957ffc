/* SPDX-License-Identifier: MIT */
/*
 * PRUDENCE_OPTIONS is read at start. It may have several settings; empty ones are skipped, and bad
 * ones are reported by name and value without effect on the others. The program runs itself with
 * that environment.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "guard/check.h"
#include "gp/user/mode.h"
#include "slab/preflush.h"
#include "slab/reclaim/decay.h"
#include "slab/reclaim/limit.h"
#include "slab/reclaim/wait.h"
#include "support/self.h"
#include "support/slab_test.h"

/* Prints the options that the started program finds to standard error. */
static int show(void)
{
    fprintf(stderr, "limit=%llu wait_max=%llu check=%d rseq=%d mode=%d background=%d preflush=%d\n",
            (unsigned long long)os_pages_limit(), (unsigned long long)slab_wait_max, check_wanted,
            os_percpu_rseq, (int)gp_reader_mode, decay_helper, preflush_enabled);
    fprintf(stderr, "latent_limit=%llu latent_ceiling=%llu\n",
            (unsigned long long)slab_latent_limit, (unsigned long long)limit_ceiling());
    return 0;
}

static void run_self(const char *options)
{
    setenv("PRUDENCE_OPTIONS", options, 1);
    self_exec((char *[]){"self", "show", NULL});
    abort();
}

/* Runs with the options, and expects each of the texts. */
#define run_with(options, ...) expect_survival(run_self(options), __VA_ARGS__)

/* The two may stand in either order; a ceiling below the limit is refused, and the limit stays. */
TEST(limit_and_ceiling_agree)
{
    run_with("latent_ceiling=8M,latent_limit=4M", "latent_limit=4194304 latent_ceiling=8388608\n");
    assert_false(said("prudence:"));
    run_with("latent_limit=64M,latent_ceiling=128M",
             "latent_limit=67108864 latent_ceiling=134217728\n");
    assert_false(said("prudence:"));
    run_with("latent_ceiling=8M,latent_limit=16M",
             "prudence: option 'latent_ceiling': the value is below latent_limit",
             "latent_limit=16777216 latent_ceiling=16777216\n");
    run_with("latent_limit=4M", "latent_limit=4194304 latent_ceiling=4194304\n");
}

TEST(several_are_read)
{
    run_with("limit=512M,wait_max=7ms,check=1,rseq=0,reader_mode=fenced,background=1",
             "limit=536870912 ", "wait_max=7000000 ", "check=1 ", "rseq=0 ", "mode=1 ",
             "background=1 preflush=1");
    assert_false(said("prudence:"));
}

/* Only the permanent helper pre-flushes, in addition to other work. The order of these options does
 * not matter. */
TEST(pre_flush_is_on_with_the_helper)
{
    run_with("background=1,preflush=0", "background=1 preflush=0");
    run_with("preflush=0,background=1", "background=1 preflush=0");
    run_with("preflush=0,background=1,preflush=1", "background=1 preflush=1");
    run_with("preflush=1", "background=0 preflush=0");
    run_with("background=1,background=idle", "background=0 preflush=0");
    run_with("background=1,preflush=2", "'preflush': bad value '2'", "background=1 preflush=1");
}

TEST(bad_ones_do_no_harm)
{
    run_with("limit=1K,nosuch=3,,wait_max=forever,check,=5,latent_limit=,retain=1M,wait_max=3us,",
             "'nosuch' (value '3')", "'wait_max': bad value 'forever'", "'check': bad value ''",
             "'latent_limit': bad value ''", "limit=1024 ", "wait_max=3000 ", "check=0 ");
}

TEST(nothing_is_no_option)
{
    run_with("", "");
    assert_false(said("prudence:"));
    run_with(",,,", "");
    assert_false(said("prudence:"));
}

TEST(help_leaves_other_settings)
{
    run_with("help,wait_max=9ms,latent_limt=1M", "prudence:  PRUDENCE_OPTIONS=name=value",
             "did you mean 'latent_limit'?", "wait_max=9000000 ");
}

TEST(a_very_long_one_is_reported)
{
    char options[900] = "";

    memset(options, 'x', 600);
    strcpy(options + 600, "=1,wait_max=9ms");
    run_with(options, "unknown option 'xxx", "wait_max=9000000 ");
}

TEST(a_very_long_value_is_bad)
{
    char options[300] = "limit=5K,limit=";

    memset(options + strlen(options), '0', 200);
    strcat(options, "7K,wait_max=9ms");
    run_with(options, "'limit': bad value '000", "limit=5120 ", "wait_max=9000000 ");
}

int main(int count, char **arguments)
{
    if (count > 1 && strcmp(arguments[1], "show") == 0)
        return show();
    return suite_run(NULL, NULL);
}
