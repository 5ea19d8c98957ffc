/* SPDX-License-Identifier: MIT */
/* The pool as a cache of Prudence, whose domain asks liburcu's qsbr flavour for grace periods. */
#include "pool.h"

#include <errno.h>
#include <stdlib.h>
#include <urcu/urcu-qsbr.h>

#include <prudence/prudence.h>
#include <prudence/stats.h>
#include <prudence/urcu-domain.h>

static struct prudence_domain *readers;
static struct prudence_cache *cache;

int pool_start(void)
{
    struct prudence_cache_attr attr = {.size = sizeof attr};

    readers = prudence_urcu_domain_create("workers", &urcu_qsbr_flavor);
    if (!readers)
        return errno;
    attr.domain = readers;
    cache = prudence_cache_create("versions", OBJECT, &attr);
    return cache ? 0 : errno;
}

void *pool_allocate(void)
{
    return prudence_cache_alloc(cache);
}

void pool_retire(void *object)
{
    prudence_cache_free_deferred(cache, object);
}

void pool_settle(void)
{
    if (prudence_cache_barrier(cache))
        abort();
}

size_t pool_stop(void)
{
    struct prudence_cache_stats stats;

    pool_settle();
    prudence_cache_stats(cache, &stats);
    if (!stats.objects_live && (prudence_cache_destroy(cache) || prudence_domain_destroy(readers)))
        abort();
    return stats.objects_live;
}
