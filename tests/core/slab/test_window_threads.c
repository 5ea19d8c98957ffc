/* SPDX-License-Identifier: MIT */
/*
 * Threads make slabs in one window, check each object's address, and give the slabs back. Their
 * objects are always found, by address or page map, and places between objects never. In the end
 * nothing remains.
 */

#include "slab/cache.h"
#include "support/window_test.h"
#include "support/threads.h"

#define THREADS 4
#define ROUNDS  2000
#define HELD    6

static struct prudence_cache *cache;

static void look_at(const struct slab *slab)
{
    for (unsigned i = 0; i < slab->capacity; i++) {
        const char *object = slab_object(slab, i, cache->body->stride);

        if (!is_of(cache, object) || is_of(cache, object + 8))
            abort();
    }
    if (is_of(cache, slab->base + slab->capacity * cache->body->stride) &&
        cache->body->slab_bytes % cache->body->stride)
        abort();
}

static void *work(void *argument)
{
    struct slab *slabs[HELD] = {NULL};
    unsigned random = (unsigned)(uintptr_t)argument + 1;

    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned i = (random = random * 1103515245 + 12345) >> 16;

        i %= HELD;
        if (slabs[i]) {
            look_at(slabs[i]);
            slab_count(cache); /* normally done by the node */
            slab_unmake(slabs[i]);
            slabs[i] = NULL;
        } else {
            slabs[i] = slab_grow(cache, 0, OS_ALLOC_DEFAULT);
            if (!slabs[i])
                abort();
            touch_pages(slabs[i]);
            look_at(slabs[i]);
        }
        if (round % 64 == 0)
            os_pages_trim();
    }
    for (unsigned i = 0; i < HELD; i++) {
        if (!slabs[i])
            continue;
        slab_count(cache);
        slab_unmake(slabs[i]);
    }
    return NULL;
}

TEST(threads_make_slabs)
{
    pthread_t threads[THREADS];
    size_t live;

    cache = prudence_cache_create("shared", 48, NULL);
    want_window(cache);
    threads_start(threads, THREADS, work);
    threads_join(threads, THREADS);
    assert_int_equal(cache->window_words.extent, 0);
    assert_true(cache_destroy(cache, &live));
    cache_forget(cache);
}

int main(void)
{
    if (!windows_exist())
        return 77;
    return suite_run(NULL, NULL);
}
