/* SPDX-License-Identifier: MIT */
/*
 * Every kind of domain: many more readers than CPUs, which sleep, move, nest, and hand sections
 * over, while writers replace and defer the objects that they read; and domains that come and
 * go.
 *
 * As in torture_readers, an age of 2 or more, in grace periods of the cache's domain, is a
 * violation, as is any change of the object's content inside the section.
 */
#define _GNU_SOURCE
#define TORTURE_WORDS 12
#include "support/torture_words.h"

#define POINTERS 16
#define READERS  12
#define WRITERS  3

static struct torture_words *pointers[POINTERS];
static struct prudence_domain *read_in[2]; /* domains that readers use */
/* of external variants: the domain that plays the foreign scheme */
static struct prudence_domain *foreign;
static uint64_t reads, updates, waits, made;

static void linger(uint64_t *random)
{
    unsigned dice = torture_below(random, 1000);

    if (dice < 4)
        torture_sleep_us(torture_below(random, 2000));
    else if (dice < 40)
        sched_yield();
    else if (dice < 44)
        torture_migrate(random);
    else if (dice < 48)
        torture_roam();
}

static void look_at_one(uint64_t *random)
{
    struct torture_words *object = prudence_dereference(pointers[torture_below(random, POINTERS)]);
    uint64_t birth = words_birth(object);

    words_note_age(object);
    words_check(object, birth, 0, 1);
    linger(random);
    words_check(object, birth, 0, 1);
    words_note_age(object);
}

static void *finish_elsewhere(void *at)
{
    prudence_srcu_up_read(read_in[0], (int)(intptr_t)at);
    return NULL;
}

static void read_once(uint64_t *random)
{
    struct prudence_domain *here = read_in[torture_below(random, 2)];
    unsigned dice = torture_below(random, 2000);
    bool srcu = here->kind == PRUDENCE_DOMAIN_SRCU;

    if (srcu && dice == 0 && here == read_in[0]) {
        int index = prudence_srcu_down_read(here);

        look_at_one(random);
        pthread_join(torture_thread(finish_elsewhere, (void *)(intptr_t)index), NULL);
    } else if (srcu && dice < 500) {
        int outer = prudence_srcu_read_lock(here), inner = prudence_srcu_read_lock(here);

        prudence_srcu_read_unlock(here, outer);
        look_at_one(random);
        prudence_srcu_read_unlock(here, inner);
    } else {
        prudence_domain_read_lock(here);
        look_at_one(random);
        prudence_domain_read_unlock(here);
    }
}

/* Reads for a while, and ends; another thread follows. */
static void *reader(void *argument)
{
    uint64_t random = (uint64_t)(uintptr_t)argument, done = 0;

    for (; done < 5000 && !torture_stopped(); done++)
        read_once(&random);
    __atomic_fetch_add(&reads, done, __ATOMIC_RELAXED);
    return NULL;
}

static void *reader_line(void *argument)
{
    uint64_t number = (uint64_t)(uintptr_t)argument;

    for (; !torture_stopped(); number += 1000)
        pthread_join(torture_thread(reader, (void *)(uintptr_t)number), NULL);
    return NULL;
}

static void retire(struct torture_words *object, uint64_t *random)
{
    unsigned how = torture_below(random, 8000);
    prudence_gp_t cookie = words_retire(object);

    if (how == 0) {
        TORTURE_CHECK(prudence_domain_synchronize(domain) == 0);
        TORTURE_CHECK(prudence_domain_poll_state(domain, cookie));
    } else if (how == 1) {
        cookie = prudence_domain_start_poll(domain);
        while (!prudence_domain_poll_state(domain, cookie))
            torture_sleep_us(20);
    } else {
        prudence_cache_free_deferred(cache, object);
        return;
    }
    __atomic_fetch_add(&waits, 1, __ATOMIC_RELAXED);
    torture_check_reuse(&object->mark, domain);
    prudence_cache_free(cache, object);
}

static void *writer(void *argument)
{
    uint64_t random = (uint64_t)(uintptr_t)argument, done = 0;

    while (!torture_stopped()) {
        struct torture_words *fresh = words_make();

        if (!fresh)
            break;
        retire(__atomic_exchange_n(&pointers[torture_below(&random, POINTERS)], fresh,
                                   __ATOMIC_ACQ_REL),
               &random);
        done++;
    }
    __atomic_fetch_add(&updates, done, __ATOMIC_RELAXED);
    return NULL;
}

/* Makes domains, with a cache and a reader each, that live for a moment. */
static void *maker(void *argument)
{
    uint64_t done = 0;

    while (!torture_stopped()) {
        struct prudence_domain *own = prudence_domain_create("brief", PRUDENCE_DOMAIN_SRCU, NULL);
        struct prudence_domain *both[] = {own, read_in[0]};
        struct prudence_domain *set = prudence_domain_create_set("brief set", both, 2);
        struct prudence_cache_attr attr = {.size = sizeof attr, .domain = done % 2 ? own : set};
        struct prudence_cache *brief = prudence_cache_create("brief", 64, &attr);
        int index = prudence_srcu_read_lock(own);

        prudence_cache_free_deferred(brief, prudence_cache_alloc(brief));
        TORTURE_CHECK(prudence_domain_destroy(own) == EBUSY);
        prudence_srcu_read_unlock(own, index);
        TORTURE_CHECK(prudence_cache_destroy(brief) == 0);
        TORTURE_CHECK(prudence_domain_destroy(set) == 0);
        TORTURE_CHECK(prudence_domain_destroy(own) == 0);
        torture_sleep_us(500);
        done++;
    }
    __atomic_fetch_add(&made, done, __ATOMIC_RELAXED);
    return argument;
}

/* --- the schemes behind external domains: a domain of ours --- */

static uint64_t foreign_start(void *unused)
{
    return prudence_domain_start_poll(foreign).private_value;
}

static bool foreign_poll(void *unused, uint64_t cookie)
{
    return prudence_domain_poll_state(foreign, (prudence_gp_t){cookie});
}

static void foreign_synchronize(void *unused)
{
    prudence_domain_synchronize(foreign);
}

static bool foreign_inside(void *unused)
{
    return prudence_domain_read_lock_held(foreign);
}

static void domains_make(const char *variant)
{
    struct prudence_domain_ops ops = {.size = sizeof ops, .read_lock_held = foreign_inside};
    struct prudence_domain *srcu = prudence_domain_create("srcu", PRUDENCE_DOMAIN_SRCU, NULL);
    struct prudence_domain *memb = prudence_domain_create("memb", PRUDENCE_DOMAIN_MEMB, NULL);
    struct prudence_domain *both[] = {srcu, memb};

    read_in[0] = read_in[1] = domain = srcu;
    foreign = memb;
    if (strncmp(variant, "external", 8) == 0) {
        read_in[0] = read_in[1] = memb;
        if (strstr(variant, "polled")) {
            ops.start_poll = foreign_start;
            ops.poll_state = foreign_poll;
        } else {
            ops.synchronize = foreign_synchronize;
        }
        domain = prudence_domain_create_external("external", &ops, NULL);
    } else if (strncmp(variant, "set", 3) == 0) {
        read_in[1] = memb;
        domain = prudence_domain_create_set("set", both, 2);
    }
}

static int torture(const char *variant, double seconds)
{
    struct prudence_cache_attr attr = {.size = sizeof attr};
    struct prudence_domain_stats stats;

    domains_make(variant);
    attr.domain = domain;
    cache = prudence_cache_create("torture", sizeof(struct torture_words), &attr);
    for (unsigned i = 0; i < POINTERS; i++)
        pointers[i] = words_make();
    torture_start(maker, 1, 0);
    torture_start(reader_line, READERS, 1);
    torture_start(writer, WRITERS, 100);
    torture_run(seconds);
    for (unsigned i = 0; i < POINTERS; i++)
        prudence_cache_free_deferred(cache, pointers[i]);
    TORTURE_CHECK(prudence_cache_destroy(cache) == 0);
    prudence_domain_stats(domain, &stats);
    TORTURE_CHECK(stats.users == 0 && stats.readers == 0 && stats.grace_periods > 0);
    if (domain != read_in[0] && domain != read_in[1])
        TORTURE_CHECK(prudence_domain_destroy(domain) == 0);
    TORTURE_CHECK(prudence_domain_destroy(read_in[0]) == 0);
    TORTURE_SAY({"reads", reads}, {"updates", updates}, {"waits", waits}, {"domains", made},
                {"recognized", recognized}, {"gp", stats.grace_periods});
    words_say_ages();
    return torture_end(variant);
}

TORTURE(torture, {"srcu", "reader_mode=auto"}, {"srcu checked", "check=1"},
        {"srcu limited", "latent_limit=64K,wait_max=20ms"}, {"set", "reader_mode=free"},
        {"set fenced", "reader_mode=fenced,rseq=0"}, {"external", "reader_mode=auto"},
        {"external polled", "reader_mode=auto"})
