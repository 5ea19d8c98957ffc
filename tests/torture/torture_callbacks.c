/* SPDX-License-Identifier: MIT */
/*
 * Callbacks free objects that readers read: no object changes inside a section. Each object's
 * callback runs exactly once; barriers cover all callbacks queued before them. Uses two domains,
 * callbacks that queue further callbacks, and threads that come and go.
 */
#define _GNU_SOURCE
#include <prudence/call.h>

#include "support/gp_torture.h"

#define WRITERS  3
#define READERS  3
#define POINTERS 16
#define WORDS    8

struct object {
    uint64_t birth;
    uint64_t words[WORDS];
    struct prudence_head head;
    struct prudence_domain *domain;
    unsigned further; /* callbacks that its callback queues, one after another */
    uint64_t *done;   /* the writer's counter */
};

static struct object *pointers[2][POINTERS];
static struct prudence_domain *domains[2];
static uint64_t births, queued, freed, reads, done_of[WRITERS];

static void read_lock(unsigned which)
{
    if (which)
        prudence_domain_read_lock(domains[1]);
    else
        prudence_read_lock();
}

static void read_unlock(unsigned which)
{
    if (which)
        prudence_domain_read_unlock(domains[1]);
    else
        prudence_read_unlock();
}

static void *reader(void *argument)
{
    uint64_t random = 77 + (uintptr_t)argument;

    while (!torture_stopped()) {
        unsigned which = torture_below(&random, 2), stay = torture_below(&random, 40);
        struct object *object;
        uint64_t birth;

        read_lock(which);
        object = prudence_dereference(pointers[which][torture_below(&random, POINTERS)]);
        birth = __atomic_load_n(&object->birth, __ATOMIC_RELAXED);
        for (unsigned i = 0; i < WORDS * (stay + 1); i++)
            if (__atomic_load_n(&object->words[i % WORDS], __ATOMIC_RELAXED) != birth + i % WORDS)
                torture_violation("object %p changed inside a section", (void *)object);
        if (stay == 0)
            torture_sleep_us(torture_below(&random, 300));
        read_unlock(which);
        __atomic_fetch_add(&reads, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

static void end(struct prudence_head *head)
{
    struct object *object = (struct object *)((char *)head - offsetof(struct object, head));

    if (object->further) {
        object->further--;
        prudence_domain_call(object->domain, head, end);
        return;
    }
    for (unsigned i = 0; i < WORDS; i++)
        __atomic_store_n(&object->words[i], 0, __ATOMIC_RELAXED);
    __atomic_store_n(&object->birth, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(object->done, 1, __ATOMIC_RELEASE);
    __atomic_fetch_add(&freed, 1, __ATOMIC_RELAXED);
    prudence_free(object);
}

static struct object *make(unsigned which, unsigned further, uint64_t *done)
{
    struct object *object = prudence_malloc(sizeof *object);

    object->birth = __atomic_add_fetch(&births, WORDS, __ATOMIC_RELAXED) << 8;
    for (unsigned i = 0; i < WORDS; i++)
        object->words[i] = object->birth + i;
    object->domain = domains[which];
    object->further = further;
    object->done = done;
    return object;
}

static void retire(struct object *object)
{
    __atomic_fetch_add(&queued, 1, __ATOMIC_RELAXED);
    prudence_domain_call(object->domain, &object->head, end);
}

static void *writer(void *argument)
{
    uint64_t random = 4711 + (uintptr_t)argument, mine = 0;
    uint64_t *done = &done_of[(uintptr_t)argument];

    for (unsigned i = 0; !torture_stopped(); i++) {
        unsigned which = torture_below(&random, 2);
        static uint64_t others;
        struct object *fresh = make(which, which ? torture_below(&random, 3) : 0, &others);
        /* The barrier is for one domain, the default one; other threads retire `fresh`. */
        struct object *never_seen = make(0, 0, done);
        struct object *old = __atomic_exchange_n(&pointers[which][torture_below(&random, POINTERS)],
                                                 fresh, __ATOMIC_ACQ_REL);

        retire(old);
        retire(never_seen);
        mine++;
        if (torture_below(&random, 3000) == 0) {
            prudence_barrier();
            if (__atomic_load_n(done, __ATOMIC_ACQUIRE) < mine)
                torture_violation("a barrier returned before %llu of its callbacks",
                                  (unsigned long long)(mine - *done));
        }
        if (torture_below(&random, 500) == 0)
            torture_migrate(&random);
        if (torture_below(&random, 5000) == 0)
            prudence_domain_barrier(domains[1]);
    }
    return NULL;
}

static int torture(const char *variant, double seconds)
{
    static uint64_t initial;

    domains[0] = prudence_default_domain();
    domains[1] = prudence_domain_create("other", PRUDENCE_DOMAIN_MEMB, NULL);
    for (unsigned i = 0; i < 2 * POINTERS; i++)
        pointers[i / POINTERS][i % POINTERS] = make(i / POINTERS, 0, &initial);
    torture_start(writer, WRITERS, 0);
    torture_start(reader, READERS, WRITERS);
    torture_run(seconds);
    for (unsigned i = 0; i < 2 * POINTERS; i++)
        retire(pointers[i / POINTERS][i % POINTERS]);
    for (unsigned i = 0; i < 4; i++) /* includes callbacks that queue themselves again */
        TORTURE_CHECK(prudence_domain_barrier(domains[1]) == 0);
    TORTURE_CHECK(prudence_barrier() == 0);
    TORTURE_CHECK(freed == queued);
    TORTURE_CHECK(prudence_domain_destroy(domains[1]) == 0);
    TORTURE_SAY({"callbacks", freed}, {"reads", reads});
    return torture_end(variant);
}

TORTURE(torture, {"default", ""}, {"fence-free", "reader_mode=free"},
        {"small limit", "call_limit=256K,wait_max=5ms"}, {"checked", "check=1,trace=0"})
