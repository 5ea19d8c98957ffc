/* SPDX-License-Identifier: MIT */
/*
 * Readers protect objects by hazard pointers while writers replace and defer them, in a cache and
 * by deleters. A protected object must stay as it is: whoever gets the memory next writes another
 * birth. Readers come and go, protect in signal handlers, and hand slots to other threads. One
 * stays with an object for the whole time. The mode changes, and children are forked.
 */
#define _GNU_SOURCE
#include <prudence/hazard.h>

#include "toolkit/domains/hazard_slots.h"
#include "gp/user/mode.h"
#include "support/gp_torture.h"

#define POINTERS 8
#define READERS  4
#define WRITERS  2
#define WORDS    12

/* `birth` and all words are equal while the object is live or protected. */
struct hazardous {
    struct prudence_hazard_head head;
    uint64_t birth;
    uint64_t words[WORDS];
};

static struct prudence_domain *hazards;
static struct prudence_cache *cache;
static void *pointers[POINTERS];   /* of the cache */
static void *retired_by[POINTERS]; /* that are retired with a deleter */
static uint64_t births, reads, updates, deleted, handled, forks, switches, most_latent;

static void *make(struct prudence_cache *from)
{
    struct hazardous *object = from ? prudence_cache_alloc(from) : prudence_malloc(sizeof *object);
    uint64_t birth = __atomic_add_fetch(&births, 1, __ATOMIC_RELAXED);

    if (!object)
        abort();
    __atomic_store_n(&object->birth, birth, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < WORDS; i++)
        __atomic_store_n(&object->words[i], birth, __ATOMIC_RELAXED);
    return object;
}

static void check(const struct hazardous *object, uint64_t birth)
{
    for (unsigned i = 0; i < WORDS; i++)
        if (__atomic_load_n(&object->words[i], __ATOMIC_RELAXED) != birth)
            torture_violation("object %p changed under its hazard pointer", (const void *)object);
}

static void use(struct prudence_hazard *hazard, uint64_t *random)
{
    void **links = torture_below(random, 4) ? pointers : retired_by;
    const struct hazardous *object =
        prudence_hazard_protect(hazard, &links[torture_below(random, POINTERS)]);
    uint64_t birth = __atomic_load_n(&object->birth, __ATOMIC_RELAXED);
    unsigned dice = torture_below(random, 1000);

    check(object, birth);
    if (dice < 2)
        torture_sleep_us(torture_below(random, 500));
    else if (dice < 5)
        sched_yield();
    check(object, birth);
}

static void handler(int unused)
{
    static __thread uint64_t random;
    struct prudence_hazard *hazard = prudence_hazard_acquire();

    (void)unused;
    if (!random)
        random = (uint64_t)(uintptr_t)&random;
    if (hazard)
        use(hazard, &random);
    prudence_hazard_release(hazard);
    __atomic_fetch_add(&handled, 1, __ATOMIC_RELAXED);
}

/* A movable slot, which readers pass on to each other while it protects. */
struct passed {
    struct prudence_hazard *hazard;
    const struct hazardous *object;
    uint64_t birth;
};
static struct passed *passed;

static void pass_on(void)
{
    struct passed *mine = malloc(sizeof *mine), *other;

    mine->hazard = prudence_hazard_acquire_movable();
    mine->object = prudence_hazard_protect(mine->hazard, &pointers[0]);
    mine->birth = __atomic_load_n(&mine->object->birth, __ATOMIC_RELAXED);
    other = __atomic_exchange_n(&passed, mine, __ATOMIC_ACQ_REL);
    if (!other)
        return;
    check(other->object, other->birth);
    prudence_hazard_release(other->hazard);
    free(other);
}

static void *reader(void *argument)
{
    uint64_t random = (uint64_t)(uintptr_t)argument, done = 0;
    struct prudence_hazard *hazards_here[PRUDENCE_HAZARDS + 2];

    while (!torture_stopped() && done < 20000) {
        unsigned slots = 1 + torture_below(&random, torture_below(&random, 50) ? 2 : 9);

        for (unsigned i = 0; i < slots; i++) {
            hazards_here[i] = prudence_hazard_acquire();
            use(hazards_here[i], &random);
        }
        for (unsigned i = 0; i < slots; i++)
            prudence_hazard_release(hazards_here[i]);
        if (torture_below(&random, 300) == 0)
            pass_on();
        if (torture_below(&random, 1000) == 0)
            raise(SIGUSR1);
        done++;
    }
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

static void delete (struct prudence_hazard_head *head)
{
    __atomic_fetch_add(&deleted, 1, __ATOMIC_RELAXED);
    prudence_free(head);
}

static void replace(uint64_t *random)
{
    unsigned place = torture_below(random, POINTERS);

    if (torture_below(random, 4)) {
        prudence_cache_free_deferred(
            cache, __atomic_exchange_n(&pointers[place], make(cache), __ATOMIC_ACQ_REL));
    } else {
        struct hazardous *old =
            __atomic_exchange_n(&retired_by[place], make(NULL), __ATOMIC_ACQ_REL);

        prudence_hazard_retire(&old->head, old, sizeof *old, delete);
    }
}

static void *writer(void *argument)
{
    uint64_t random = (uint64_t)(uintptr_t)argument, done = 0;

    for (; !torture_stopped(); done++) {
        struct prudence_cache_stats stats;

        replace(&random);
        if (done % 4096)
            continue;
        if (torture_below(&random, 4) == 0)
            prudence_cache_shrink(cache);
        prudence_cache_stats(cache, &stats);
        torture_raise(&most_latent, stats.objects_latent);
    }
    __atomic_fetch_add(&updates, done, __ATOMIC_RELAXED);
    return NULL;
}

static void *switcher(void *unused)
{
    for (unsigned i = 0; !torture_stopped(); i++) {
        __atomic_store_n(&gp_reader_mode, i % 2 ? READER_MODE_FREE : READER_MODE_FENCED,
                         __ATOMIC_RELAXED);
        hazard_slots_follow_options();
        switches++;
        torture_sleep_us(300);
    }
    return unused;
}

/* The child replaces objects as well; it has none of the other threads. */
static void *forker(void *argument)
{
    uint64_t random = (uint64_t)(uintptr_t)argument;
    pid_t child;
    int status;

    while (!torture_stopped()) {
        torture_sleep_us(20000);
        child = fork();
        if (child == 0) {
            for (unsigned i = 0; i < 200; i++) {
                struct prudence_hazard *hazard = prudence_hazard_acquire();

                use(hazard, &random);
                prudence_hazard_release(hazard);
                replace(&random);
            }
            _exit(torture_violations ? 1 : 0);
        }
        if (child < 0 || waitpid(child, &status, 0) != child || status)
            torture_violation("a child failed");
        forks++;
    }
    return NULL;
}

static int torture(const char *variant, double seconds)
{
    struct prudence_hazard *stays = prudence_hazard_acquire();
    struct prudence_cache_attr attr = {.size = sizeof attr};
    const struct hazardous *object;
    struct prudence_cache_stats stats;
    uint64_t birth;

    signal(SIGUSR1, handler);
    attr.domain = hazards = prudence_domain_create("hazards", PRUDENCE_DOMAIN_HAZARD, NULL);
    cache = prudence_cache_create("torture", sizeof(struct hazardous), &attr);
    for (unsigned i = 0; i < POINTERS; i++) {
        pointers[i] = make(cache);
        retired_by[i] = make(NULL);
    }
    object = prudence_hazard_protect(stays, &pointers[3]);
    birth = object->birth;
    torture_start(reader_line, READERS, 1);
    torture_start(writer, WRITERS, 100);
    torture_start(switcher, strcmp(variant, "switching") == 0 && !TORTURE_TSAN, 0);
    torture_start(forker, TORTURE_CHILD_THREADS, 7);
    torture_sleep_us((unsigned)(seconds * 1e6));
    torture_join();
    check(object, birth);
    prudence_hazard_release(stays);
    if (passed) {
        check(passed->object, passed->birth);
        prudence_hazard_release(passed->hazard);
    }
    for (unsigned i = 0; i < POINTERS; i++) {
        prudence_cache_free_deferred(cache, pointers[i]);
        delete (&((struct hazardous *)retired_by[i])->head);
    }
    TORTURE_CHECK(prudence_hazard_reclaim() == 0);
    prudence_trim();
    prudence_cache_stats(cache, &stats);
    TORTURE_CHECK(stats.objects_live == 0);
    TORTURE_CHECK(prudence_cache_destroy(cache) == 0);
    TORTURE_CHECK(prudence_domain_destroy(hazards) == 0);
    TORTURE_SAY({"reads", reads}, {"updates", updates}, {"deleted", deleted}, {"handled", handled},
                {"forks", forks}, {"switched", switches}, {"latent at most", most_latent});
    return torture_end(variant);
}

TORTURE(torture, {"auto", "reader_mode=auto"}, {"fenced", "reader_mode=fenced"},
        {"switching", "reader_mode=auto"}, {"check", "check=1"}, {"little", "latent_limit=256K"})
