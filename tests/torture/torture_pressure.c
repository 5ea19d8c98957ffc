/* SPDX-License-Identifier: MIT */
/*
 * Too little memory: small limits, readers that stay, and a page source that fails at random.
 * Allocations may fail with ENOMEM, and nothing else may: no object is lost or handed out twice or
 * too early, the limit holds at any time, and all memory comes back.
 */
#define _GNU_SOURCE
#include "support/gp_torture.h"

#include "os/os.h"

#define THREADS 8
#define OWNED   200
#define LARGEST 204800
#define LEAST   1000 /* operations; a slow machine runs until then */

struct item {
    struct torture_mark *object;
    size_t size;
};

static uint64_t operations, failures, recognized, injected, calls, most_used, most_latent;
static bool inject;

static bool fails_at_random(void)
{
    uint64_t call = __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);

    call *= UINT64_C(0x9e3779b97f4a7c15);
    if (!__atomic_load_n(&inject, __ATOMIC_RELAXED) || (call ^ call >> 29) % 7)
        return false;
    __atomic_fetch_add(&injected, 1, __ATOMIC_RELAXED);
    return true;
}

static size_t random_size(uint64_t *random)
{
    unsigned dice = torture_below(random, 100);

    return 32 + torture_below(random, dice < 80 ? 500 : dice < 97 ? 8000 : LARGEST - 32);
}

static void fill(struct item *item, uint64_t tag)
{
    if (torture_check_reuse(item->object, prudence_default_domain()))
        __atomic_fetch_add(&recognized, 1, __ATOMIC_RELAXED);
    item->object->birth = tag;
    torture_mark_set(item->object, TORTURE_LIVE, 0);
    memset(item->object + 1, (int)tag & 0xff, item->size - sizeof *item->object);
}

static void check(const struct item *item, size_t size)
{
    const unsigned char *bytes = (const unsigned char *)(item->object + 1);

    for (size_t i = 0; i < size - sizeof *item->object; i++) {
        if (bytes[i] != (unsigned char)item->object->birth) {
            torture_violation("byte %zu of live object %p changed", i, (void *)item->object);
            return;
        }
    }
}

static void get(struct item *item, uint64_t *random)
{
    item->size = random_size(random);
    errno = 0;
    item->object =
        torture_below(random, 8) ? prudence_malloc(item->size) : prudence_calloc(1, item->size);
    if (item->object) {
        fill(item, torture_random(random));
        return;
    }
    TORTURE_CHECK(errno == ENOMEM);
    __atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED);
}

/* A realloc that fails leaves the object unchanged. */
static void resize(struct item *item, uint64_t *random)
{
    size_t size = random_size(random);
    struct torture_mark *moved;

    torture_mark_set(item->object, TORTURE_NEW, 0); /* the old copy is not live */
    moved = prudence_realloc(item->object, size);
    if (!moved) {
        torture_mark_set(item->object, TORTURE_LIVE, 0);
        check(item, item->size);
        return;
    }
    item->object = moved;
    check(item, size < item->size ? size : item->size);
    item->size = size;
    moved->birth = torture_random(random);
    torture_mark_set(moved, TORTURE_LIVE, 0);
    memset(moved + 1, (int)moved->birth & 0xff, size - sizeof *moved);
}

static void put(struct item *item, bool defer)
{
    check(item, item->size);
    if (defer) {
        torture_mark_set(item->object, TORTURE_RETIRED, prudence_gp_get_state().private_value);
        prudence_free_deferred(item->object);
    } else {
        torture_mark_set(item->object, TORTURE_NEW, 0);
        prudence_free(item->object);
    }
    item->object = NULL;
}

static void *worker(void *argument)
{
    uint64_t random = (uint64_t)(uintptr_t)argument;
    struct item *items = calloc(OWNED, sizeof *items);

    for (; !torture_stopped(); __atomic_fetch_add(&operations, 1, __ATOMIC_RELAXED)) {
        struct item *item = &items[torture_below(&random, OWNED)];
        unsigned dice = torture_below(&random, 1000);
        bool inside = dice >= 995;

        if (inside)
            prudence_read_lock(); /* so that nothing waits */
        if (!item->object)
            get(item, &random);
        else if (dice < 100)
            resize(item, &random);
        else
            put(item, dice % 2);
        if (inside)
            prudence_read_unlock();
    }
    for (unsigned i = 0; i < OWNED; i++)
        if (items[i].object)
            put(&items[i], i % 2);
    free(items);
    return NULL;
}

static void *staying_reader(void *argument)
{
    uint64_t random = (uint64_t)(uintptr_t)argument;

    while (!torture_stopped()) {
        prudence_read_lock();
        torture_sleep_us(torture_below(&random, 30000));
        prudence_read_unlock();
        torture_sleep_us(torture_below(&random, 5000));
    }
    return NULL;
}

/* Switches the injection on and off, and checks the limit. */
static void watch(double seconds)
{
    uint64_t end = torture_now() + (uint64_t)(seconds * 1e9);

    for (unsigned i = 0;
         torture_now() < end || __atomic_load_n(&operations, __ATOMIC_RELAXED) < LEAST; i++) {
        struct prudence_stats stats;

        prudence_stats(&stats);
        torture_raise(&most_used, stats.slab_bytes + stats.retained_bytes);
        torture_raise(&most_latent, stats.bytes_latent);
        __atomic_store_n(&inject, i / 50 % 2, __ATOMIC_RELAXED);
        torture_sleep_us(1000);
    }
    __atomic_store_n(&inject, false, __ATOMIC_RELAXED);
}

static void check_end(void)
{
    struct prudence_stats stats;

    torture_expect_nothing_left(&stats);
    TORTURE_CHECK(stats.limit);
    if (most_used > stats.limit)
        torture_violation("%llu bytes in use, the limit is %llu", (unsigned long long)most_used,
                          (unsigned long long)stats.limit);
}

static int torture(const char *variant, double seconds)
{
    struct prudence_stats stats;

    os_memory_fails = fails_at_random;
    torture_start(worker, THREADS, 1);
    torture_start(staying_reader, 2, 100);
    watch(seconds);
    torture_join();
    os_memory_fails = NULL;
    check_end();
    prudence_stats(&stats);
    TORTURE_SAY({"operations", operations}, {"failures", failures}, {"injected", injected},
                {"recognized", recognized}, {"most used K", most_used >> 10},
                {"latent K", most_latent >> 10}, {"waits", stats.throttle_waits},
                {"pressure waits", stats.pressure_waits}, {"expired", stats.throttle_expiries});
    return torture_end(variant);
}

TORTURE(torture, {"limit", "limit=8M,latent_limit=1M,wait_max=3ms"},
        {"lock", "limit=8M,latent_limit=1M,wait_max=3ms,rseq=0,background=1"},
        {"no latent limit", "limit=16M,latent_limit=0,wait_max=50ms,retain=0"},
        {"checked", "limit=8M,latent_limit=1M,wait_max=3ms,check=1"},
        {"watched", "limit=8M,latent_limit=1M,wait_max=3ms,guard=10,check=1,quarantine=4M"})
