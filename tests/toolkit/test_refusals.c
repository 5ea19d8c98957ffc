/* SPDX-License-Identifier: MIT */
/*
 * Each cause of EINVAL and of EBUSY in a domain has a separate message, which names the domain
 * and the value.
 */
#include <errno.h>

#include <prudence/call.h>
#include <prudence/rcu.h>

#include "support/gp_child.h"
#include "support/suite.h"

/* Each refusal is reported once, although one place makes three attempts. */
#define EXPECT_REFUSED(expression, text)                                                           \
    do {                                                                                           \
        expect_exit(42, (expression) ? 42 : 1, text);                                              \
        assert_int_equal(said(text), 1);                                                           \
        assert_int_equal(said("prudence: "), 1);                                                   \
    } while (0)

static bool as_refused(const struct prudence_domain *domain)
{
    return !domain && errno == EINVAL;
}

static bool refuses(const char *name, int kind, const void *attr)
{
    return as_refused(prudence_domain_create(name, (enum prudence_domain_kind)kind, attr));
}

TEST(domains)
{
    const struct prudence_domain_attr seven = {.size = 7},
                                      flags = {.size = sizeof flags, .flags = 5},
                                      newer[2] = {{.size = sizeof newer}, {.flags = 1}};

    EXPECT_REFUSED(refuses(NULL, PRUDENCE_DOMAIN_MEMB, NULL),
                   "prudence_domain_create: the name is NULL");
    EXPECT_REFUSED(refuses("", PRUDENCE_DOMAIN_MEMB, NULL),
                   "prudence_domain_create: the name is empty");
    EXPECT_REFUSED(refuses("odd", 77, NULL), "domain 'odd': there is no kind 77");
    EXPECT_REFUSED(refuses("odd", PRUDENCE_DOMAIN_SET, NULL),
                   "domain 'odd': set domains are made by prudence_domain_create_set");
    EXPECT_REFUSED(refuses("odd", PRUDENCE_DOMAIN_EXTERNAL, NULL),
                   "domain 'odd': external domains are made by prudence_domain_create_external");
    EXPECT_REFUSED(refuses("odd", PRUDENCE_DOMAIN_MEMB, &seven),
                   "domain 'odd': attr->size is 7, not");
    EXPECT_REFUSED(refuses("odd", PRUDENCE_DOMAIN_MEMB, newer),
                   "domain 'odd': byte 24 of struct prudence_domain_attr is not 0");
    EXPECT_REFUSED(refuses("odd", PRUDENCE_DOMAIN_MEMB, &flags),
                   "domain 'odd': attr->flags is 0x5");
}

TEST(sets)
{
    static struct prudence_domain *members[PRUDENCE_DOMAIN_SET_MAX + 1];

    EXPECT_REFUSED(as_refused(prudence_domain_create_set("odd", members, 0)),
                   "set 'odd' has no members");
    members[0] = prudence_default_domain();
    EXPECT_REFUSED(as_refused(prudence_domain_create_set("odd", members, 2)),
                   "set 'odd': member 1 is NULL");
    for (unsigned i = 0; i <= PRUDENCE_DOMAIN_SET_MAX; i++)
        members[i] = prudence_domain_create("member", PRUDENCE_DOMAIN_MANUAL, NULL);
    EXPECT_REFUSED(
        as_refused(prudence_domain_create_set("odd", members, PRUDENCE_DOMAIN_SET_MAX + 1)),
        "set 'odd' has more than 64 members");
}

static uint64_t start(void *context)
{
    return 1;
}

static bool refuses_external(const struct prudence_domain_ops *ops)
{
    return as_refused(prudence_domain_create_external("odd", ops, NULL));
}

TEST(external_domains)
{
    const struct prudence_domain_ops eight = {.size = 8}, none = {.size = sizeof none},
                                     half = {.size = sizeof half, .start_poll = start};
    struct prudence_domain_ops newer[2] = {{.size = sizeof newer}, {.size = 1}};

    EXPECT_REFUSED(refuses_external(NULL), "domain 'odd': ops is NULL");
    EXPECT_REFUSED(refuses_external(&eight), "domain 'odd': ops->size is 8, not");
    EXPECT_REFUSED(refuses_external(newer),
                   "domain 'odd': byte 56 of struct prudence_domain_ops is not 0");
    EXPECT_REFUSED(refuses_external(&none), "domain 'odd': ops has neither synchronize nor");
    EXPECT_REFUSED(refuses_external(&half),
                   "domain 'odd': ops has one of start_poll and poll_state");
}

static bool is_not_destroyed(struct prudence_domain *domain)
{
    bool busy = true;

    for (unsigned i = 0; i < 3; i++)
        busy &= prudence_domain_destroy(domain) == EBUSY;
    return busy;
}

static void nothing(struct prudence_head *head)
{
}

TEST(busy_domains)
{
    struct prudence_domain *domain = prudence_domain_create("busy", PRUDENCE_DOMAIN_MEMB, NULL);
    struct prudence_domain *manual = prudence_domain_create("busy", PRUDENCE_DOMAIN_MANUAL, NULL);
    struct prudence_cache_attr attr = {.size = sizeof attr, .domain = domain};
    static struct prudence_head head;

    EXPECT_REFUSED((prudence_cache_create("a", 64, &attr), prudence_cache_create("b", 64, &attr),
                    is_not_destroyed(domain)),
                   "domain 'busy' is not destroyed: 2 caches or sets use it");
    EXPECT_REFUSED((prudence_domain_read_lock(domain), is_not_destroyed(domain)),
                   "domain 'busy' is not destroyed: a thread is inside");
    EXPECT_REFUSED((prudence_domain_call(manual, &head, nothing), is_not_destroyed(manual)),
                   "domain 'busy' is not destroyed: callbacks wait");
}

SUITE()
