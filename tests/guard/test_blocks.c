/* SPDX-License-Identifier: MIT */
/* <prudence/structure.h>: caches of blocks, and what authors of structures may ask. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include <prudence/stats.h>
#include <prudence/structure.h>

static void blocks_have_sizes_of_their_own(void **state)
{
    static const size_t sizes[] = {0, 1, 4096, 5000, 100000, (size_t)5 << 20};
    struct prudence_cache *cache = prudence_cache_create_blocks("blocks", NULL);

    (void)state;
    assert_non_null(cache);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        bool zeroed;
        unsigned char *block = prudence_cache_alloc_block(cache, sizes[i], &zeroed);

        assert_non_null(block);
        assert_int_equal((uintptr_t)block % 4096, 0);
        assert_true(prudence_usable_size(block) >= sizes[i]);
        for (size_t at = 0; zeroed && at < sizes[i]; at++)
            assert_int_equal(block[at], 0);
        memset(block, 1, sizes[i]);
        if (i % 2)
            prudence_cache_free(cache, block);
        else
            prudence_cache_free_deferred(cache, block);
    }
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

static void blocks_wait_for_readers_of_their_domain(void **state)
{
    struct prudence_domain *domain = prudence_domain_create("own", PRUDENCE_DOMAIN_MEMB, NULL);
    struct prudence_cache *cache = prudence_cache_create_blocks("blocks", domain);
    struct prudence_cache_stats stats;

    (void)state;
    prudence_domain_read_lock(domain);
    prudence_cache_free_deferred(cache, prudence_cache_alloc_block(cache, 10000, NULL));
    prudence_cache_shrink(cache);
    assert_int_equal(prudence_cache_stats(cache, &stats), 0);
    assert_int_equal(stats.objects_latent, 1);
    prudence_domain_read_unlock(domain);
    assert_int_equal(prudence_cache_destroy(cache), 0);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

static void hopeless_sizes_are_refused(void **state)
{
    struct prudence_cache *cache = prudence_cache_create_blocks("blocks", NULL);

    (void)state;
    errno = 0;
    assert_null(prudence_cache_alloc_block(cache, SIZE_MAX, NULL));
    assert_int_equal(errno, ENOMEM);
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

static void caches_of_the_other_kind_are_refused(void **state)
{
    struct prudence_cache *blocks = prudence_cache_create_blocks("blocks", NULL);
    struct prudence_cache *equal = prudence_cache_create("equal", 64, NULL);
    void *object = prudence_cache_alloc_block(blocks, 100, NULL);

    (void)state;
    errno = 0;
    assert_null(prudence_cache_alloc(blocks));
    assert_int_equal(errno, EINVAL);
    errno = 0;
    assert_null(prudence_cache_alloc_block(equal, 64, NULL));
    assert_int_equal(errno, EINVAL);
    errno = 0;
    assert_null(prudence_cache_replace(blocks, object));
    assert_int_equal(errno, EINVAL);
    object = NULL;
    assert_int_equal(prudence_cache_alloc_bulk(blocks, 1, &object), 0);
    assert_null(object);
    assert_int_equal(prudence_cache_destroy(blocks), 0);
    assert_int_equal(prudence_cache_destroy(equal), 0);
}

static void names_are_required(void **state)
{
    (void)state;
    errno = 0;
    assert_null(prudence_cache_create_blocks(NULL, NULL));
    assert_int_equal(errno, EINVAL);
    errno = 0;
    assert_null(prudence_cache_create_blocks("", NULL));
    assert_int_equal(errno, EINVAL);
}

static void deferrals_fit_up_to_the_limit(void **state)
{
    (void)state;
    assert_int_equal(prudence_option_set("latent_limit", "1M"), 0);
    assert_true(prudence_latent_fits(0));
    assert_true(prudence_latent_fits(1 << 19));
    assert_false(prudence_latent_fits((1 << 20) + 1));
    assert_false(prudence_latent_fits(SIZE_MAX));
    assert_int_equal(prudence_option_set("latent_limit", "0"), 0);
    assert_true(prudence_latent_fits(SIZE_MAX));
}

static void kinds_of_domains(void **state)
{
    struct prudence_domain *srcu = prudence_domain_create("srcu", PRUDENCE_DOMAIN_SRCU, NULL);

    (void)state;
    assert_int_equal(prudence_domain_kind_of(NULL), PRUDENCE_DOMAIN_MEMB);
    assert_int_equal(prudence_domain_kind_of(srcu), PRUDENCE_DOMAIN_SRCU);
    assert_int_equal(prudence_domain_destroy(srcu), 0);
}

static void readers_may_not_wait(void **state)
{
    (void)state;
    assert_int_equal(prudence_domain_may_wait(NULL, NULL, NULL, NULL, NULL), 0);
    prudence_read_lock();
    assert_int_equal(prudence_domain_may_wait(NULL, NULL, NULL, NULL, NULL), EDEADLK);
    assert_int_equal(prudence_domain_may_wait(prudence_default_domain(), "destroy", "of table",
                                              "routes", __builtin_return_address(0)),
                     EDEADLK);
    prudence_read_unlock();
    assert_int_equal(prudence_domain_may_wait(NULL, "destroy", "of table", "routes", NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_have_sizes_of_their_own),
        cmocka_unit_test(blocks_wait_for_readers_of_their_domain),
        cmocka_unit_test(hopeless_sizes_are_refused),
        cmocka_unit_test(caches_of_the_other_kind_are_refused),
        cmocka_unit_test(names_are_required),
        cmocka_unit_test(deferrals_fit_up_to_the_limit),
        cmocka_unit_test(kinds_of_domains),
        cmocka_unit_test(readers_may_not_wait),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
