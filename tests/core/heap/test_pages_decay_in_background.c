/* SPDX-License-Identifier: MIT */
/* With background=1, free pages go back to the system although no thread calls the allocator any
 * more. */
#include "support/slab_test.h"

TEST(the_helper_gives_pages_back)
{
    struct os_pages_stats pages;
    void *block;

    assert_int_equal(prudence_option_set("background", "1"), 0);
    assert_int_equal(prudence_option_set("decay", "50ms"), 0);
    assert_int_equal(prudence_option_set("retain", "0"), 0);
    block = prudence_malloc(1 << 20);
    memset(block, 1, 1 << 20);
    prudence_free(block);
    for (unsigned i = 0; i < 1000; i++) {
        os_pages_stats(&pages); /* only checks */
        if (!pages.retained)
            return;
        os_sleep_ns(10000000);
    }
    fail_msg("%llu bytes are still there", (unsigned long long)pages.retained);
}

SUITE()
