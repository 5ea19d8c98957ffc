/* SPDX-License-Identifier: MIT */
/*
 * Where the objects of the misuse matrix come from. The first origin is the plain one: operations that take a cache have objects
 * of one, the others have those of prudence_malloc. In the others all operations have objects of a cache, which differ in their
 * attributes.
 */
#include "misuse.h"

#include <prudence/rcu.h>
#include <string.h>

static struct prudence_cache *create(struct subject *subject, struct prudence_cache_attr attr)
{
    attr.size = sizeof attr;
    return prudence_cache_create("subject", subject->size, &attr);
}

static struct prudence_cache *named(struct subject *subject)
{
    return create(subject, (struct prudence_cache_attr){.flags = 0});
}

static struct prudence_cache *plain(struct subject *subject)
{
    return subject->takes_cache ? named(subject) : NULL;
}

static struct prudence_cache *with_domain(struct subject *subject)
{
    subject->domain = prudence_domain_create("own", PRUDENCE_DOMAIN_MEMB, NULL);
    return create(subject, (struct prudence_cache_attr){.domain = subject->domain});
}

static void construct(void *object, void *context)
{
    (void)context;
    memset(object, 0, 16);
}

static struct prudence_cache *with_constructor(struct subject *subject)
{
    return create(subject, (struct prudence_cache_attr){.flags = PRUDENCE_CACHE_TYPESAFE,
                                                        .constructor = construct});
}

/* Leaves the object alone: what a destructor does to an object that it gets twice would be a misuse of its own. */
static void destroy(void *object, void *context)
{
    (void)object;
    (void)context;
}

static struct prudence_cache *with_destructor(struct subject *subject)
{
    return create(subject, (struct prudence_cache_attr){.destructor = destroy});
}

const struct origin origins[] = {
    {"by default", plain},
    {"of a cache", named},
    {"of a cache with a domain", with_domain},
    {"of a type-safe cache with a constructor", with_constructor},
    {"of a cache with a destructor", with_destructor},
};
const size_t origin_count = sizeof origins / sizeof origins[0];
