// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Tests what objects contain when they are allocated. The boot parameters init_on_alloc and
 * init_on_free have a say, so tools/kernel/test boots with each combination of them.
 */
#include <linux/mm.h>
#include <linux/rcupdate.h>

#include "test.h"

#define OWNED 64 /* objects that have an owner, who frees or defers them */

static bool is_zero(const void *object)
{
    return !memchr_inv(object, 0, SIZE);
}

static bool had_owner(const void *object, void *const *owned)
{
    unsigned int i;

    for (i = 0; i < OWNED; i++)
        if (owned[i] == object)
            return true;
    return false;
}

/* Allocates until all objects that had an owner are back. Expects contents of the last
 * owner, or zero. */
static void owned_objects_come_back(struct prudence_cache *cache, void *const *owned, bool zero)
{
    unsigned int count = 0, back = 0, kept = 0, zeroed = 0;

    while (back < OWNED && count < MANY) {
        void *object = objects[count++] = prudence_cache_alloc(cache, GFP_KERNEL);

        if (!object || !had_owner(object, owned))
            continue;
        back++;
        kept += is_untouched(object);
        zeroed += is_zero(object);
    }
    EXPECT_EQ(back, OWNED);
    EXPECT_EQ(kept, zero ? 0 : OWNED);
    EXPECT_EQ(zeroed, zero ? OWNED : 0);
    while (count)
        prudence_cache_free(cache, objects[--count]);
}

/* Each object that is freed has a neighbor that lives, so decay leaves the slabs alone. */
static void objects_have_owners(struct prudence_cache *cache, bool deferred, bool zero)
{
    static void *owned[OWNED], *neighbors[OWNED];
    unsigned int i;

    migrate_disable();
    EXPECT_EQ(fill(cache, 2 * OWNED), 2 * OWNED);
    for (i = 0; i < OWNED; i++) {
        owned[i] = objects[2 * i];
        neighbors[i] = objects[2 * i + 1];
    }
    for (i = 0; i < OWNED; i++)
        if (deferred)
            prudence_cache_free_deferred(cache, owned[i]);
        else
            prudence_cache_free(cache, owned[i]);
    if (deferred) {
        prudence_cache_shrink(cache); /* closes the open batch */
        synchronize_rcu();
        prudence_cache_shrink(cache); /* merges it into the slabs */
    }
    owned_objects_come_back(cache, owned, zero);
    for (i = 0; i < OWNED; i++)
        prudence_cache_free(cache, neighbors[i]);
    migrate_enable();
}

static unsigned int constructed; /* calls of construct() */

static void construct(void *object)
{
    memset(object, 0x5a, SIZE);
    constructed++;
}

static void objects_are_constructed_once(struct prudence_cache *cache)
{
    unsigned int i, then, wrong = 0;

    for (i = 0; i < MANY; i++) {
        objects[i] = prudence_cache_alloc(cache, GFP_KERNEL | __GFP_ZERO); /* the flag is ignored */
        wrong += !is_untouched(objects[i]);
    }
    EXPECT_EQ(wrong, 0);
    then = constructed;
    for (i = 0; i < MANY; i++)
        prudence_cache_free(cache, objects[i]);
    for (i = 0; i < 100; i++)
        objects[i] = prudence_cache_alloc(cache, GFP_KERNEL);
    EXPECT_EQ(constructed, then);
    for (i = 0; i < 100; i++)
        prudence_cache_free(cache, objects[i]);
}

static void contents(unsigned int flags, void (*constructor)(void *object))
{
    struct prudence_cache *cache = prudence_cache_create("test", SIZE, 0, flags, constructor);
    bool zero = !flags && !constructor && (want_init_on_alloc(GFP_KERNEL) || want_init_on_free());

    EXPECT(cache != NULL);
    if (constructor)
        objects_are_constructed_once(cache);
    objects_have_owners(cache, false, zero);
    objects_have_owners(cache, true, zero);
    EXPECT_EQ(prudence_cache_destroy(cache), 0);
}

void plain_objects_are_zero_if_the_kernel_wants_that(void)
{
    pr_info("# init_on_alloc=%d init_on_free=%d\n", want_init_on_alloc(GFP_KERNEL),
            want_init_on_free());
    contents(0, NULL);
}

/* A reader may read an object that was freed and handed out again. It must find the contents
 * of the last owner. */
void type_safe_memory_keeps_its_contents(void)
{
    struct prudence_cache *cache;
    void *object;

    contents(PRUDENCE_TYPESAFE, NULL);
    cache = prudence_cache_create("test", SIZE, 0, PRUDENCE_TYPESAFE, NULL);
    migrate_disable();
    EXPECT_EQ(fill(cache, 1), 1);
    prudence_cache_free(cache, objects[0]);
    object = prudence_cache_alloc(cache, GFP_KERNEL | __GFP_ZERO);
    migrate_enable();
    EXPECT(is_zero(object)); /* as the owner requested */
    prudence_cache_free(cache, object);
    EXPECT_EQ(prudence_cache_destroy(cache), 0);
}

void constructed_objects_keep_their_contents(void)
{
    contents(0, construct);
}

void type_safe_constructed_objects_keep_their_contents(void)
{
    contents(PRUDENCE_TYPESAFE, construct);
}
