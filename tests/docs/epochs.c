/* SPDX-License-Identifier: MIT */
/*
 * From epochs to Prudence, in docs/how-to/epochs.md. The program has the same route four times:
 * with Concurrency Kit's epochs alone, with Concurrency Kit's readers and Prudence's deferred
 * frees, with Prudence alone, and with Prudence's epochs.
 *
 * ctest: needs ck
 */
#include <ck_epoch.h>
#include <prudence/ck-domain.h>
#include <prudence/epoch.h>
#include <prudence/prudence.h>
#include <stdbool.h>
#include <stdlib.h>

enum { UPDATES = 10000 };

struct route {
    ck_epoch_entry_t entry; /* needed by the first version alone */
    int hop;
};

static struct route *current;
static ck_epoch_t epoch;
static __thread ck_epoch_record_t *record;

/* -------------------------------------------------------------------- Concurrency Kit alone */

static void route_free(ck_epoch_entry_t *entry)
{
    free(entry); /* the route's first member */
}

static int lookup_by_epochs(void)
{
    ck_epoch_begin(record, NULL);
    int hop = ((struct route *)ck_pr_load_ptr(&current))->hop;
    ck_epoch_end(record, NULL);
    return hop;
}

static bool replace_by_epochs(int hop)
{
    static unsigned retired;
    struct route *old = current, *fresh = malloc(sizeof *fresh);

    if (!fresh)
        return false;
    fresh->hop = hop;
    ck_pr_fence_store();
    ck_pr_store_ptr(&current, fresh);
    if (old)
        ck_epoch_call(record, &old->entry, route_free);
    if (++retired % 64 == 0)
        ck_epoch_poll(record);
    return true;
}

/* ---------------------------------------------------------- its readers, our deferred frees */

static ck_epoch_record_t *own_record(void)
{
    return record;
}

static const struct prudence_ck_readers readers = {&epoch, own_record};

static bool replace_with_cache(struct prudence_cache *cache, int hop)
{
    struct route *old = current, *fresh = prudence_cache_alloc(cache);

    if (!fresh)
        return false;
    fresh->hop = hop;
    prudence_assign_pointer(current, fresh);
    prudence_cache_free_deferred(cache, old); /* NULL is ignored */
    return true;
}

/* ------------------------------------------------------------------------------- ours alone */

static int lookup(void)
{
    prudence_read_lock();
    int hop = prudence_dereference(current)->hop;
    prudence_read_unlock();
    return hop;
}

/* -------------------------------------------------------------------------------- our epochs */

static bool work_pinned(struct prudence_domain *domain, struct prudence_cache *cache)
{
    struct prudence_reader *self = prudence_epoch_record(domain);
    bool right = self != NULL;

    prudence_epoch_pin(self);
    for (int hop = 0; right && hop < UPDATES; hop++) {
        right = replace_with_cache(cache, hop) && prudence_dereference(current)->hop == hop;
        if (hop % 64 == 0) {
            prudence_epoch_try_advance(domain, NULL); /* this thread is behind until it moves */
            prudence_epoch_repin(self);               /* no pointer of before is used after */
        }
    }
    prudence_epoch_unpin(self);
    return right;
}

static bool with_our_epochs(void)
{
    struct prudence_domain_attr how = {.size = sizeof how,
                                       .flags = PRUDENCE_DOMAIN_CALLERS_ADVANCE};
    struct prudence_domain *domain = prudence_domain_create("own", PRUDENCE_DOMAIN_MEMB, &how);
    struct prudence_cache_attr attr = {.size = sizeof attr, .domain = domain};
    struct prudence_cache *cache = prudence_cache_create("routes", sizeof(struct route), &attr);
    bool right = cache && work_pinned(domain, cache);

    prudence_cache_free_deferred(cache, current);
    current = NULL;
    return prudence_cache_destroy(cache) == 0 && prudence_domain_destroy(domain) == 0 && right;
}

/* ------------------------------------------------------------------------------------------ */

static bool alone(void)
{
    for (int hop = 0; hop < UPDATES; hop++)
        if (!replace_by_epochs(hop) || lookup_by_epochs() != hop)
            return false;
    ck_epoch_barrier(record);
    free(current);
    current = NULL;
    return true;
}

/* Runs all updates in a cache of `domain` (NULL: the default domain), with readers that call
 * `look_up`. */
static bool with_cache(struct prudence_domain *domain, int (*look_up)(void))
{
    struct prudence_cache_attr attr = {.size = sizeof attr, .domain = domain};
    struct prudence_cache *cache = prudence_cache_create("routes", sizeof(struct route), &attr);
    bool right = cache;

    for (int hop = 0; right && hop < UPDATES; hop++)
        right = replace_with_cache(cache, hop) && look_up() == hop;
    prudence_cache_free_deferred(cache, current);
    current = NULL;
    return prudence_cache_destroy(cache) == 0 && right;
}

int main(void)
{
    static ck_epoch_record_t first;
    struct prudence_domain *domain;

    ck_epoch_init(&epoch);
    ck_epoch_register(&epoch, &first, NULL);
    record = &first;
    domain = prudence_ck_domain_create("epochs", &readers);
    return !(domain && alone() && with_cache(domain, lookup_by_epochs) &&
             with_cache(NULL, lookup) && with_our_epochs() && prudence_domain_destroy(domain) == 0);
}
