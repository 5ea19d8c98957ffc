/* SPDX-License-Identifier: MIT */
/*
 * Readers pin, move their pins, nest and stay, with writers that replace and defer; a domain is
 * driven by the library or by its callers alone. Each reader gives a kick, by which it learns when
 * to move. Some take it back; of the others the thread's end does. The argument is poisoned at
 * once, so a call that comes too late is found.
 *
 * Readers check the age of what they find (torture_words.h): no object is seen a grace period after
 * it was retired, and none changes under a pin that has not moved since.
 */
#define _GNU_SOURCE
#include <prudence/epoch.h>

#define TORTURE_WORDS 12
#include "support/torture_words.h"

#define POINTERS 16
#define READERS  6
#define WRITERS  2

#define ALIVE UINT64_C(0x616c697665)
#define GONE  UINT64_C(0x676f6e65)

static struct torture_words *pointers[POINTERS];
static uint64_t reads, moves, kicks, advanced, behind_counted, taken_back;

struct learner {
    uint64_t alive; /* atomic */
    uint32_t told;  /* atomic */
    uint64_t random;
    struct prudence_kick kick;
};

static void tell(void *argument)
{
    struct learner *learner = argument;

    if (__atomic_load_n(&learner->alive, __ATOMIC_RELAXED) != ALIVE)
        torture_violation("a kick after its thread has ended, or taken it back");
    __atomic_store_n(&learner->told, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&kicks, 1, __ATOMIC_RELAXED);
}

/* Returns an object and its birth, which must not change until the pin moves. */
static struct torture_words *look(uint64_t *random, uint64_t *birth)
{
    struct torture_words *object = prudence_dereference(pointers[torture_below(random, POINTERS)]);

    *birth = words_birth(object);
    words_check(object, *birth, 0, 5);
    words_note_age(object);
    return object;
}

/* Pins again inside the pin, which then cannot move. */
static void nest(struct prudence_reader *self, uint64_t *random)
{
    struct torture_words *object;
    uint64_t birth;

    prudence_epoch_pin(self);
    object = look(random, &birth);
    TORTURE_CHECK(!prudence_epoch_repin(self));
    words_check(object, birth, 1, 5);
    prudence_epoch_unpin(self);
}

static void read_pinned(struct prudence_reader *self, struct learner *learner)
{
    uint64_t birth, done = 0;

    prudence_epoch_pin(self);
    for (unsigned i = torture_below(&learner->random, 2000); i && !torture_stopped(); i--) {
        struct torture_words *object = look(&learner->random, &birth);

        if (torture_below(&learner->random, 8) == 0)
            nest(self, &learner->random);
        if (torture_below(&learner->random, 1000) == 0)
            sched_yield();
        words_check(object, birth, 2, 5);
        if (__atomic_exchange_n(&learner->told, 0, __ATOMIC_RELAXED) ||
            torture_below(&learner->random, 50) == 0) {
            TORTURE_CHECK(prudence_epoch_repin(self));
            __atomic_fetch_add(&moves, 1, __ATOMIC_RELAXED);
        }
        done++;
    }
    prudence_epoch_unpin(self);
    __atomic_fetch_add(&reads, done, __ATOMIC_RELAXED);
}

static void *reader(void *argument)
{
    struct learner *learner = argument;
    struct prudence_reader *self = prudence_epoch_record(domain);
    unsigned rounds = 1 + torture_below(&learner->random, 200);

    TORTURE_CHECK(self != NULL);
    TORTURE_CHECK(prudence_kick_set(domain, &learner->kick) == 0);
    while (rounds-- && !torture_stopped())
        read_pinned(self, learner);
    if (torture_below(&learner->random, 2)) {
        TORTURE_CHECK(prudence_kick_set(domain, NULL) == 0);
        __atomic_store_n(&learner->alive, GONE, __ATOMIC_RELAXED);
        __atomic_fetch_add(&taken_back, 1, __ATOMIC_RELAXED);
        read_pinned(self, learner);
    }
    return NULL;
}

/* Threads come and go; each has memory of its own that is poisoned when the thread has ended. */
static void *reader_line(void *argument)
{
    uint64_t random = (uint64_t)(uintptr_t)argument;

    while (!torture_stopped()) {
        struct learner learner = {.alive = ALIVE, .random = random++ << 20};

        learner.kick = (struct prudence_kick){.size = sizeof learner.kick,
                                              .function = tell,
                                              .argument = &learner,
                                              .after = torture_below(&random, 2) ? 0 : 20000};
        pthread_join(torture_thread(reader, &learner), NULL);
        __atomic_store_n(&learner.alive, GONE, __ATOMIC_RELAXED);
    }
    return NULL;
}

static void *writer(void *argument)
{
    uint64_t random = (uint64_t)(uintptr_t)argument;

    while (!torture_stopped()) {
        struct torture_words *fresh = words_make(), *old;

        if (!fresh)
            break;
        old = __atomic_exchange_n(&pointers[torture_below(&random, POINTERS)], fresh,
                                  __ATOMIC_ACQ_REL);
        words_retire(old);
        prudence_cache_free_deferred(cache, old);
        if (torture_below(&random, 2000) == 0)
            torture_sleep_us(200);
    }
    return NULL;
}

static void *advancer(void *unused)
{
    while (!torture_stopped()) {
        int behind = -1;

        if (prudence_epoch_try_advance(domain, &behind))
            __atomic_fetch_add(&advanced, 1, __ATOMIC_RELAXED);
        else
            __atomic_fetch_add(&behind_counted, behind > 0, __ATOMIC_RELAXED);
        torture_sleep_us(20);
    }
    return unused;
}

static int torture(const char *variant, double seconds)
{
    bool callers = strstr(variant, "callers") != NULL;
    struct prudence_domain_attr how = {.size = sizeof how,
                                       .flags = callers ? PRUDENCE_DOMAIN_CALLERS_ADVANCE : 0};
    struct prudence_cache_attr attr = {.size = sizeof attr};

    attr.domain = domain = prudence_domain_create("epochs", PRUDENCE_DOMAIN_MEMB, &how);
    cache = prudence_cache_create("torture", sizeof(struct torture_words), &attr);
    for (unsigned i = 0; i < POINTERS; i++)
        pointers[i] = words_make();
    torture_start(reader_line, READERS, 1);
    torture_start(writer, WRITERS, 100);
    torture_start(advancer, callers ? 2 : 1, 0);
    torture_sleep_us((unsigned)(seconds * 1e6));
    torture_wait_for(&moves);
    torture_wait_for(&kicks);
    torture_wait_for(&advanced);
    torture_wait_for(&taken_back);
    torture_join();
    for (unsigned i = 0; i < POINTERS; i++)
        prudence_cache_free_deferred(cache, pointers[i]);
    TORTURE_CHECK(prudence_cache_destroy(cache) == 0);
    TORTURE_CHECK(prudence_domain_destroy(domain) == 0);
    TORTURE_CHECK(moves && kicks && advanced);
    TORTURE_SAY({"reads", reads}, {"moves", moves}, {"kicks", kicks}, {"advanced", advanced},
                {"behind", behind_counted}, {"recognized", recognized});
    words_say_ages();
    return torture_end(variant);
}

TORTURE(torture, {"auto", "reader_mode=auto"}, {"fence-free", "reader_mode=free"},
        {"fenced", "reader_mode=fenced"}, {"callers", "reader_mode=auto"},
        {"callers, fenced", "reader_mode=fenced"}, {"no membarrier", "membarrier=0"})
