/* SPDX-License-Identifier: MIT */
/*
 * Origins of the objects of the misuse matrix. With the first origin, operations that take a cache
 * get objects of a cache, and other operations get objects of prudence_malloc. With the other
 * origins all operations get objects of a cache, and the caches differ in their attributes.
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

/* Does nothing, because a destructor that writes to an object twice would be another misuse. */
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
