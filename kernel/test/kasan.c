// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* KASAN must accept uses before the end of the grace period and report those after. */
#include <linux/kasan.h>
#include <linux/rcupdate.h>

#include "test.h"

static noinline void use_after_the_grace_period(const char *object)
{
    READ_ONCE(*object);
}

static u8 shadow_of(const void *object)
{
    return *(const u8 *)kasan_mem_to_shadow(object);
}

void kasan_knows_deferred_objects(void)
{
    struct prudence_cache *cache = cache_of(SIZE);
    unsigned int i;

    EXPECT_EQ(fill(cache, 256), 256);
    EXPECT_EQ(shadow_of(objects[7]), 0);
    reader_enters();
    defer(cache, 200);
    prudence_cache_shrink(cache);
    EXPECT_EQ(shadow_of(objects[7]), 0);
    EXPECT(is_untouched(objects[7]));
    reader_leaves();
    synchronize_rcu();
    prudence_cache_shrink(cache);
    EXPECT(shadow_of(objects[7]) != 0);
    pr_info("provoked: begin\n");
    use_after_the_grace_period(objects[7]);
    pr_info("provoked: end\n");
    prudence_cache_free(cache, objects[255]);
    EXPECT(shadow_of(objects[255]) != 0);
    objects[255] = prudence_cache_alloc(cache, GFP_KERNEL);
    EXPECT_EQ(shadow_of(objects[255]), 0);
    for (i = 200; i < 256; i++)
        prudence_cache_free(cache, objects[i]);
    EXPECT_EQ(prudence_cache_destroy(cache), 0);
}
