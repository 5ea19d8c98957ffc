/* SPDX-License-Identifier: MIT */
/* A reader-writer lock of POSIX; the old object is freed as soon as it is replaced. */
#include <pthread.h>
#include <stdlib.h>

#include "version.h"

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static struct version *current; /* under lock */

static inline bool look(uint64_t *number)
{
    bool whole;

    pthread_rwlock_rdlock(&lock);
    whole = version_get(current, number);
    pthread_rwlock_unlock(&lock);
    return whole;
}

static inline void replace(uint64_t number)
{
    struct version *fresh = malloc(sizeof *fresh), *old;

    if (!fresh)
        abort();
    version_set(fresh, number);
    pthread_rwlock_wrlock(&lock);
    old = current;
    current = fresh;
    pthread_rwlock_unlock(&lock);
    if (old)
        version_spoil(old);
    free(old);
}

#include "versions_family.h"

const struct subject subject_version_rwlock = {
    "version-rwlock", "a POSIX lock for readers and writers", .fill = fill, .run = run};
