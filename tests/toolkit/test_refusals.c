/* SPDX-License-Identifier: MIT */
/*
 * Each cause of EINVAL and of EBUSY in a domain has a separate message, which names the domain
 * and the value. A long name, and the most members that a set may have, are no such cause.
 */
#include <errno.h>

#include <prudence/call.h>
#include <prudence/rcu.h>

#include "gp/user/domain.h"
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
                                      reserved = {.size = sizeof reserved, .reserved = 1},
                                      newer[2] = {{.size = sizeof newer}, {.flags = 1}};

    EXPECT_REFUSED(refuses(NULL, PRUDENCE_DOMAIN_MEMB, NULL),
                   "prudence_domain_create: the name is NULL");
    EXPECT_REFUSED(refuses("", PRUDENCE_DOMAIN_MEMB, NULL),
                   "prudence_domain_create: the name is empty");
    EXPECT_REFUSED(refuses("odd", 77, NULL), "domain 'odd': there is no kind 77");
    EXPECT_REFUSED(refuses("odd", -1, NULL), "domain 'odd': there is no kind -1");
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
    EXPECT_REFUSED(refuses("odd", PRUDENCE_DOMAIN_MEMB, &reserved),
                   "and attr->reserved 1, which must be 0");
}

TEST(a_long_name_is_cut)
{
    const struct prudence_domain_attr attr = {.size = sizeof attr};
    struct prudence_domain *domain = prudence_domain_create(
        "a name of much more than thirty-one bytes", PRUDENCE_DOMAIN_MEMB, &attr);

    assert_non_null(domain);
    assert_string_equal(domain->name, "a name of much more than thirty");
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

TEST(sets)
{
    static struct prudence_domain *members[PRUDENCE_DOMAIN_SET_MAX + 1];
    struct prudence_domain *full;

    EXPECT_REFUSED(as_refused(prudence_domain_create_set("odd", members, 0)),
                   "set 'odd' has no members");
    EXPECT_REFUSED(as_refused(prudence_domain_create_set("odd", NULL, 1)),
                   "set 'odd' has no members");
    members[0] = prudence_default_domain();
    EXPECT_REFUSED(as_refused(prudence_domain_create_set(NULL, members, 1)),
                   "prudence_domain_create_set: the name is NULL");
    EXPECT_REFUSED(as_refused(prudence_domain_create_set("", members, 1)),
                   "prudence_domain_create_set: the name is empty");
    EXPECT_REFUSED(as_refused(prudence_domain_create_set("odd", members, 2)),
                   "set 'odd': member 1 is NULL");
    for (unsigned i = 0; i <= PRUDENCE_DOMAIN_SET_MAX; i++)
        members[i] = prudence_domain_create("member", PRUDENCE_DOMAIN_MANUAL, NULL);
    EXPECT_REFUSED(
        as_refused(prudence_domain_create_set("odd", members, PRUDENCE_DOMAIN_SET_MAX + 1)),
        "set 'odd' has more than 64 members");
    full = prudence_domain_create_set("full", members, PRUDENCE_DOMAIN_SET_MAX);
    assert_non_null(full);
    assert_int_equal(prudence_domain_destroy(full), 0);
}

static uint64_t start(void *context)
{
    return 1;
}

static bool poll_state(void *context, uint64_t cookie)
{
    return true;
}

static void wait_for_all(void *context)
{
}

static bool refuses_external(const char *name, const struct prudence_domain_ops *ops)
{
    return as_refused(prudence_domain_create_external(name, ops, NULL));
}

TEST(external_domains)
{
    const struct prudence_domain_ops eight = {.size = 8}, none = {.size = sizeof none},
                                     half = {.size = sizeof half, .start_poll = start},
                                     other_half = {.size = sizeof other_half,
                                                   .poll_state = poll_state,
                                                   .synchronize = wait_for_all},
                                     valid = {.size = sizeof valid, .synchronize = wait_for_all};
    struct prudence_domain_ops newer[2] = {{.size = sizeof newer}, {.size = 1}};

    EXPECT_REFUSED(refuses_external(NULL, &valid),
                   "prudence_domain_create_external: the name is NULL");
    EXPECT_REFUSED(refuses_external("", &valid),
                   "prudence_domain_create_external: the name is empty");
    EXPECT_REFUSED(refuses_external("odd", NULL), "domain 'odd': ops is NULL");
    EXPECT_REFUSED(refuses_external("odd", &eight), "domain 'odd': ops->size is 8, not");
    EXPECT_REFUSED(refuses_external("odd", newer),
                   "domain 'odd': byte 56 of struct prudence_domain_ops is not 0");
    EXPECT_REFUSED(refuses_external("odd", &none), "domain 'odd': ops has neither synchronize nor");
    EXPECT_REFUSED(refuses_external("odd", &half),
                   "domain 'odd': ops has one of start_poll and poll_state");
    EXPECT_REFUSED(refuses_external("odd", &other_half),
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
