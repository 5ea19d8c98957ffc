/* SPDX-License-Identifier: MIT */
/* The lasting domain, which is never destroyed, is that of liburcu's qsbr. A forked child makes it
 * anew if another thread was about to while fork copied the process. */
#include <errno.h>

#include <prudence/rcu.h>

#include "gp/user/readers.h"
#include "support/gp_child.h"
#include "support/suite.h"

static struct prudence_domain *make_lasting(void)
{
    struct prudence_domain *domain = prudence_domain_create("qsbr", PRUDENCE_DOMAIN_QSBR, NULL);

    assert_non_null(domain);
    readers_make_lasting(domain);
    return domain;
}

static int makes_it_anew(void)
{
    struct prudence_domain *first = make_lasting(), *second = make_lasting();

    assert_true(readers_are_lasting(second) && !readers_are_lasting(first));
    prudence_qsbr_online(second);
    assert_ptr_equal(reader_lasting_self, &readers_slot_if_any(second)->reader);
    prudence_qsbr_offline(second);
    assert_int_equal(prudence_domain_destroy(second), EINVAL);
    return 42;
}

TEST(a_child_makes_it_anew)
{
    expect_exit(42, makes_it_anew(), "");
}

SUITE()
