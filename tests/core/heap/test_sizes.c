/* SPDX-License-Identifier: MIT */
/* Objects of any size whose readers are in a domain: size classes, waits for that domain, one cache
 * a class, destruction, lack of memory. */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include <prudence/prudence.h>
#include <prudence/rcu.h>
#include <prudence/stats.h>

#include "slab/cache_type.h"
#include "support/gp_child.h"
#include "support/gp_reader.h"
#include "support/slab_test.h"

static struct prudence_domain *domain;
static struct prudence_sizes *sizes;

static int set_up(void **unused)
{
    (void)unused;
    domain = prudence_domain_create("own", PRUDENCE_DOMAIN_MANUAL, NULL);
    sizes = prudence_sizes_create("any", domain);
    return sizes ? 0 : -1;
}

/* The domain can be destroyed only if no cache remains. */
static int take_down(void **unused)
{
    (void)unused;
    prudence_manual_advance(domain);
    return prudence_sizes_destroy(sizes) || prudence_domain_destroy(domain);
}

static uint64_t latent(void)
{
    struct prudence_stats stats;

    prudence_stats(&stats);
    return stats.objects_latent;
}

TEST(objects_are_as_large_as_those_of_prudence_malloc, set_up, take_down)
{
    static const size_t bytes[] = {
        0, 1, 16, 17, 128, 129, 1000, 4096, 20000, 32769, 131072, 131073, (size_t)5 << 20};

    for (size_t i = 0; i < sizeof bytes / sizeof bytes[0]; i++) {
        void *object = prudence_sizes_alloc(sizes, bytes[i]),
             *other = prudence_malloc(max_size(bytes[i], 1));

        assert_non_null(object);
        assert_int_equal((uintptr_t)object % 16, 0);
        assert_int_equal(prudence_usable_size(object), prudence_usable_size(other));
        memset(object, 1, bytes[i]);
        prudence_free(object);
        prudence_free(other);
    }
}

TEST(they_wait_for_readers_of_their_domain_alone, set_up, take_down)
{
    prudence_free_deferred(prudence_sizes_alloc(sizes, 100));
    prudence_free_deferred(prudence_sizes_alloc(sizes, 200000));
    prudence_synchronize(); /* of the default domain */
    prudence_trim();
    assert_int_equal(latent(), 2);
    for (unsigned i = 0; i < 3; i++) {
        prudence_manual_advance(domain);
        prudence_trim();
    }
    assert_int_equal(latent(), 0);
}

/* Returns the number of caches with this name. */
static unsigned caches_named(const char *name)
{
    struct prudence_walk walk = PRUDENCE_WALK_INIT;
    struct prudence_cache_stats stats;
    unsigned found = 0;

    while (prudence_next_cache(&walk, &stats) == 0)
        found += !strcmp(stats.name, name);
    return found;
}

#define THREADS  4
#define FAMILIES 2

static pthread_barrier_t together;

/* Making a cache takes long, so others find none. */
static bool takes_long(void)
{
    pause_ms(1);
    return false;
}

static void *allocate_each_class(void *family)
{
    for (size_t size = 16; size <= 32768; size *= 2) {
        pthread_barrier_wait(&together);
        prudence_free(prudence_sizes_alloc(family, size));
    }
    return NULL;
}

static void allocate_together(struct prudence_sizes *family)
{
    pthread_t threads[THREADS];

    pthread_barrier_init(&together, NULL, THREADS);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, allocate_each_class, family), 0);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&together);
}

TEST(threads_make_one_cache_of_a_class, set_up, take_down)
{
    struct prudence_sizes *families[FAMILIES];

    for (unsigned i = 0; i < FAMILIES; i++) {
        families[i] = prudence_sizes_create("shared", domain);
        os_memory_fails = takes_long;
        allocate_together(families[i]);
        os_memory_fails = NULL;
    }
    assert_int_equal(caches_named("shared"), FAMILIES); /* of blocks */
    assert_int_equal(caches_named("shared-48"), 0);
    for (size_t size = 16; size <= 32768; size *= 2) {
        char name[32];

        snprintf(name, sizeof name, "shared-%zu", size);
        assert_int_equal(caches_named(name), FAMILIES);
    }
    for (unsigned i = 0; i < FAMILIES; i++)
        assert_int_equal(prudence_sizes_destroy(families[i]), 0);
}

TEST(a_long_name_is_cut, set_up, take_down)
{
    struct prudence_sizes *named =
        prudence_sizes_create("twenty-four-bytes-are-kept-and-no-more", domain);

    prudence_free(prudence_sizes_alloc(named, 131072));
    assert_int_equal(caches_named("twenty-four-bytes-are-ke-131072"), 1);
    assert_int_equal(prudence_sizes_destroy(named), 0);
}

static int destroy_with_live_objects(void *object)
{
    int error = prudence_sizes_destroy(sizes);

    return error == EBUSY && prudence_sizes_alloc(sizes, 50) && prudence_sizes_alloc(sizes, 170000)
               ? 42
               : 1;
}

TEST(with_live_objects_a_family_stays_usable, set_up, take_down)
{
    void *object = prudence_sizes_alloc(sizes, 1000);

    prudence_free(prudence_sizes_alloc(sizes, 50)); /* this class can be destroyed */
    expect_exit(42, destroy_with_live_objects(object), "prudence_sizes_destroy, called from",
                "cache 'any-1024' has 1 live object");
    prudence_free(object);
}

/* ---------------------------------------------------------------------- use after the end */

static struct prudence_sizes *ended_family(void)
{
    struct prudence_sizes *family = prudence_sizes_create("ended", domain);

    prudence_free(prudence_sizes_alloc(family, 50));
    prudence_sizes_destroy(family);
    return family;
}

TEST(a_family_that_is_used_after_its_end_is_reported, set_up, take_down)
{
    static const size_t bytes[] = {0, 50, 1000, 170000};

    for (unsigned i = 0; i < sizeof bytes / sizeof *bytes; i++)
        expect_death(discard(prudence_sizes_alloc(ended_family(), bytes[i])),
                     "prudence_sizes_alloc: the family 'ended'", "was destroyed");
    expect_death(prudence_sizes_destroy(ended_family()),
                 "prudence_sizes_destroy: the family 'ended'", "was destroyed");
}

TEST(without_memory_nothing_is_made, set_up, take_down)
{
    memory_fail(0, UINT32_MAX);
    errno = 0;
    assert_null(prudence_sizes_create("none", domain));
    assert_int_equal(errno, ENOMEM);
    errno = 0;
    assert_null(prudence_sizes_alloc(sizes, 3000));
    assert_int_equal(errno, ENOMEM);
    memory_succeed();
    errno = 0;
    assert_null(prudence_sizes_alloc(sizes, SIZE_MAX));
    assert_int_equal(errno, ENOMEM);
    prudence_free(prudence_sizes_alloc(sizes, 3000));
}

static int create_without_a_name(void)
{
    return prudence_sizes_create(NULL, NULL) ? 1 : 42;
}

TEST(bad_arguments_are_refused)
{
    expect_exit(42, create_without_a_name(), "prudence_sizes_create: the name is NULL");
    errno = 0;
    assert_null(prudence_sizes_create(NULL, NULL));
    assert_int_equal(errno, EINVAL);
    errno = 0;
    assert_null(prudence_sizes_create("", NULL));
    assert_int_equal(errno, EINVAL);
    assert_int_equal(prudence_sizes_destroy(NULL), EINVAL);
}

SUITE()
