/* SPDX-License-Identifier: MIT */
/* Whether a table may be destroyed where its program asks for it, because destroying its caches waits for readers. */
#ifndef STRUCTURES_ENDING_H
#define STRUCTURES_ENDING_H

#include <errno.h>

#include "os/os.h"
#include "rcu/may_wait.h"
#include "slab/cache.h"

/*
 * 0, or the error that the program gets: EBUSY in a handler of pthread_atfork; EDEADLK, with a report, where a wait for the
 * readers of the cache's domain would wait for itself. `what`: the public function, which `caller` called; `of`: "of table".
 */
static inline int ending_error(const char *what, const char *of, const struct prudence_cache *cache,
                               void *caller)
{
    const struct wait_request request = {
        .what = what, .of = of, .name = cache->name, .caller = caller};

    if (os_lock_forking)
        return EBUSY;
    return may_wait_for_readers(&request, cache->domain) ? 0 : EDEADLK;
}

#endif /* STRUCTURES_ENDING_H */
