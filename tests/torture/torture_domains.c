/* SPDX-License-Identifier: MIT */
/*
 * Every kind of domain: many more readers than CPUs, which sleep, move, nest, and hand sections
 * over, while writers replace and defer the objects that they look at; and domains that come and
 * go.
 *
 * As in torture_readers, a retired object carries a cookie of its cache's domain, and a reader that
 * finds it takes its age in whole grace periods since. An age of 2 or more is a violation, as is
 * any change of the object's content inside the section.
 */
#define _GNU_SOURCE
#include "support/gp_torture.h"

#define POINTERS 16
#define WORDS    12
#define READERS  12
#define WRITERS  3
#define AGES     6

struct object {
    struct torture_mark mark;
    uint64_t words[WORDS];
};

/* Accesses are plain, so that ThreadSanitizer checks that the grace period orders writers and
 * readers. */
#if TORTURE_TSAN
#define WORD_LOAD(word)         (word)
#define WORD_STORE(word, value) ((word) = (value))
#else
#define WORD_LOAD(word)         __atomic_load_n(&(word), __ATOMIC_RELAXED)
#define WORD_STORE(word, value) __atomic_store_n(&(word), (value), __ATOMIC_RELAXED)
#endif

static struct object *pointers[POINTERS];
static struct prudence_cache *cache;
static struct prudence_domain *domain;     /* the cache's domain */
static struct prudence_domain *read_in[2]; /* domains that readers use */
/* of external variants: the domain that plays the foreign scheme */
static struct prudence_domain *foreign;
static uint64_t births, ages[AGES], reads, updates, recognized, waits, made;

static struct object *object_make(void)
{
    struct object *object = prudence_cache_alloc(cache);
    uint64_t birth = __atomic_add_fetch(&births, 1, __ATOMIC_RELAXED);

    if (!object)
        return NULL;
    if (torture_check_reuse(&object->mark, domain))
        __atomic_fetch_add(&recognized, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&object->mark.birth, birth, __ATOMIC_RELAXED);
    torture_mark_set(&object->mark, TORTURE_LIVE, 0);
    for (unsigned i = 0; i < WORDS; i++)
        WORD_STORE(object->words[i], birth + i);
    return object;
}

static void note_age(struct object *object)
{
    uint64_t state = __atomic_load_n(&object->mark.state, __ATOMIC_ACQUIRE);
    uint64_t cookie = __atomic_load_n(&object->mark.cookie, __ATOMIC_ACQUIRE);
    uint64_t completed = load_acquire(&domain->progress.completed);
    uint64_t age = 0;

    if (state != TORTURE_RETIRED)
        return;
    if (!sequence_before(completed, cookie))
        age = 2 + (completed - cookie) / GP_STEP;
    else if (cookie - completed <= GP_STEP)
        age = 1;
    __atomic_fetch_add(&ages[age < AGES ? age : AGES - 1], 1, __ATOMIC_RELAXED);
    if (age >= 2)
        torture_violation("a reader sees object %p %llu grace periods after it was retired",
                          (void *)object, (unsigned long long)(age - 1));
}

static void check_words(const struct object *object, uint64_t birth)
{
    if (__atomic_load_n(&object->mark.birth, __ATOMIC_RELAXED) != birth)
        torture_violation("object %p was born again inside a section", (const void *)object);
    for (unsigned i = 0; i < WORDS; i++)
        if (WORD_LOAD(object->words[i]) != birth + i)
            torture_violation("word %u of object %p changed inside a section", i,
                              (const void *)object);
}

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
    struct object *object = prudence_dereference(pointers[torture_below(random, POINTERS)]);
    uint64_t birth = __atomic_load_n(&object->mark.birth, __ATOMIC_RELAXED);

    note_age(object);
    check_words(object, birth);
    linger(random);
    check_words(object, birth);
    note_age(object);
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

static void retire(struct object *object, uint64_t *random)
{
    unsigned how = torture_below(random, 8000);
    prudence_gp_t cookie = prudence_domain_get_state(domain);

    torture_mark_set(&object->mark, TORTURE_RETIRED, cookie.private_value);
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
        struct object *fresh = object_make();

        if (!fresh) {
            torture_violation("no memory");
            break;
        }
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
    pthread_t readers[READERS], writers[WRITERS], makes;
    struct prudence_domain_stats stats;

    domains_make(variant);
    attr.domain = domain;
    cache = prudence_cache_create("torture", sizeof(struct object), &attr);
    for (unsigned i = 0; i < POINTERS; i++)
        pointers[i] = object_make();
    makes = torture_thread(maker, NULL);
    for (uintptr_t i = 0; i < READERS; i++)
        readers[i] = torture_thread(reader_line, (void *)(i + 1));
    for (uintptr_t i = 0; i < WRITERS; i++)
        writers[i] = torture_thread(writer, (void *)(i + 100));
    torture_sleep_us((unsigned)(seconds * 1e6));
    torture_stop();
    pthread_join(makes, NULL);
    for (unsigned i = 0; i < READERS; i++)
        pthread_join(readers[i], NULL);
    for (unsigned i = 0; i < WRITERS; i++)
        pthread_join(writers[i], NULL);
    for (unsigned i = 0; i < POINTERS; i++)
        prudence_cache_free_deferred(cache, pointers[i]);
    TORTURE_CHECK(prudence_cache_destroy(cache) == 0);
    prudence_domain_stats(domain, &stats);
    TORTURE_CHECK(stats.users == 0 && stats.readers == 0 && stats.grace_periods > 0);
    if (domain != read_in[0] && domain != read_in[1])
        TORTURE_CHECK(prudence_domain_destroy(domain) == 0);
    TORTURE_CHECK(prudence_domain_destroy(read_in[0]) == 0);
    printf(": reads=%llu updates=%llu waits=%llu domains=%llu recognized=%llu gp=%llu ages",
           (unsigned long long)reads, (unsigned long long)updates, (unsigned long long)waits,
           (unsigned long long)made, (unsigned long long)recognized,
           (unsigned long long)stats.grace_periods);
    for (unsigned i = 0; i < AGES; i++)
        printf(" %u:%llu", i, (unsigned long long)ages[i]);
    return torture_end(variant);
}

int main(int argc, char **argv)
{
    static const struct torture_variant variants[] = {
        {"srcu", "reader_mode=auto"},
        {"srcu checked", "check=1"},
        {"srcu limited", "latent_limit=64K,wait_max=20ms"},
        {"set", "reader_mode=free"},
        {"set fenced", "reader_mode=fenced,rseq=0"},
        {"external", "reader_mode=auto"},
        {"external polled", "reader_mode=auto"},
    };

    return torture_main(argc, argv, variants, sizeof variants / sizeof variants[0], torture);
}
