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

static int as_refused(const struct prudence_domain *domain)
{
    return !domain && errno == EINVAL ? 42 : 1;
}

static int create(const char *name, int kind, size_t size, unsigned flags)
{
    struct prudence_domain_attr attr = {.size = size, .flags = flags};

    return as_refused(
        prudence_domain_create(name, (enum prudence_domain_kind)kind, size ? &attr : NULL));
}

static int no_name(void *unused)
{
    return create(NULL, PRUDENCE_DOMAIN_MEMB, 0, 0);
}

static int empty_name(void *unused)
{
    return create("", PRUDENCE_DOMAIN_MEMB, 0, 0);
}

static int no_such_kind(void *unused)
{
    return create("odd", 77, 0, 0);
}

static int set_by_create(void *unused)
{
    return create("odd", PRUDENCE_DOMAIN_SET, 0, 0);
}

static int external_by_create(void *unused)
{
    return create("odd", PRUDENCE_DOMAIN_EXTERNAL, 0, 0);
}

static int attributes_of_another_size(void *unused)
{
    return create("odd", PRUDENCE_DOMAIN_MEMB, 7, 0);
}

static int attributes_of_a_newer_version(void *unused)
{
    struct prudence_domain_attr attr[2] = {{.size = sizeof attr}, {0}};

    ((char *)&attr[1])[8] = 1;
    return as_refused(prudence_domain_create("odd", PRUDENCE_DOMAIN_MEMB, attr));
}

static int unknown_flags(void *unused)
{
    return create("odd", PRUDENCE_DOMAIN_MEMB, sizeof(struct prudence_domain_attr), 5);
}

static int set_of_none(void *unused)
{
    struct prudence_domain *members[1] = {NULL};

    return as_refused(prudence_domain_create_set("odd", members, 0));
}

static int set_of_null(void *unused)
{
    struct prudence_domain *members[2] = {prudence_default_domain(), NULL};

    return as_refused(prudence_domain_create_set("odd", members, 2));
}

static int set_of_many(void *unused)
{
    static struct prudence_domain *members[PRUDENCE_DOMAIN_SET_MAX + 1];

    for (unsigned i = 0; i <= PRUDENCE_DOMAIN_SET_MAX; i++)
        members[i] = prudence_domain_create("member", PRUDENCE_DOMAIN_MANUAL, NULL);
    return as_refused(prudence_domain_create_set("odd", members, PRUDENCE_DOMAIN_SET_MAX + 1));
}

static uint64_t start(void *context)
{
    return 1;
}

static int external(size_t size, uint64_t (*start_poll)(void *context))
{
    struct prudence_domain_ops ops = {.size = size, .start_poll = start_poll};

    return as_refused(prudence_domain_create_external("odd", size ? &ops : NULL, NULL));
}

static int external_without_ops(void *unused)
{
    return external(0, NULL);
}

static int external_of_another_size(void *unused)
{
    return external(8, NULL);
}

static int external_of_a_newer_version(void *unused)
{
    struct prudence_domain_ops ops[2] = {{.size = sizeof ops}, {0}};

    *(char *)&ops[1] = 1;
    return as_refused(prudence_domain_create_external("odd", ops, NULL));
}

static int external_that_does_nothing(void *unused)
{
    return external(sizeof(struct prudence_domain_ops), NULL);
}

static int external_with_half_a_poll(void *unused)
{
    return external(sizeof(struct prudence_domain_ops), start);
}

static struct prudence_domain *make(enum prudence_domain_kind kind)
{
    return prudence_domain_create("busy", kind, NULL);
}

static int destroy_thrice(struct prudence_domain *domain)
{
    for (unsigned i = 0; i < 3; i++)
        if (prudence_domain_destroy(domain) != EBUSY)
            return 1;
    return 42;
}

static int destroy_named(void *unused)
{
    struct prudence_cache_attr attr = {.size = sizeof attr, .domain = make(PRUDENCE_DOMAIN_MEMB)};

    prudence_cache_create("a", 64, &attr);
    prudence_cache_create("b", 64, &attr);
    return destroy_thrice(attr.domain);
}

static int destroy_read(void *unused)
{
    struct prudence_domain *domain = make(PRUDENCE_DOMAIN_MEMB);

    prudence_domain_read_lock(domain);
    return destroy_thrice(domain);
}

static void nothing(struct prudence_head *head)
{
}

static int destroy_with_callbacks(void *unused)
{
    static struct prudence_head head;
    struct prudence_domain *domain = make(PRUDENCE_DOMAIN_MANUAL);

    prudence_domain_call(domain, &head, nothing);
    return destroy_thrice(domain);
}

static const struct refusal {
    int (*attempt)(void *unused);
    const char *says;
} refusals[] = {
    {no_name, "prudence_domain_create: the name is NULL"},
    {empty_name, "prudence_domain_create: the name is empty"},
    {no_such_kind, "domain 'odd': there is no kind 77"},
    {set_by_create, "domain 'odd': set domains are made by prudence_domain_create_set"},
    {external_by_create,
     "domain 'odd': external domains are made by prudence_domain_create_external"},
    {attributes_of_another_size, "domain 'odd': attr->size is 7, not"},
    {attributes_of_a_newer_version,
     "domain 'odd': byte 24 of struct prudence_domain_attr is not 0"},
    {unknown_flags, "domain 'odd': attr->flags is 0x5"},
    {set_of_none, "set 'odd' has no members"},
    {set_of_null, "set 'odd': member 1 is NULL"},
    {set_of_many, "set 'odd' has more than 64 members"},
    {external_without_ops, "domain 'odd': ops is NULL"},
    {external_of_another_size, "domain 'odd': ops->size is 8, not"},
    {external_of_a_newer_version, "domain 'odd': byte 56 of struct prudence_domain_ops is not 0"},
    {external_that_does_nothing, "domain 'odd': ops has neither synchronize nor"},
    {external_with_half_a_poll, "domain 'odd': ops has one of start_poll and poll_state"},
    {destroy_named, "domain 'busy' is not destroyed: 2 caches or sets use it"},
    {destroy_read, "domain 'busy' is not destroyed: a thread is inside"},
    {destroy_with_callbacks, "domain 'busy' is not destroyed: callbacks wait"},
};

/* Reported once, although one place makes three attempts. */
TEST(each_cause_is_named)
{
    for (unsigned i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        struct child_result result;

        child_run(refusals[i].attempt, NULL, &result);
        if (!child_exited_with(&result, 42) || child_count(&result, refusals[i].says) != 1 ||
            child_count(&result, "prudence: ") != 1)
            fail_msg("expected '%s', not (status %#x): %s", refusals[i].says,
                     (unsigned)result.status, result.output);
    }
}

SUITE()
