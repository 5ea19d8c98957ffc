/* SPDX-License-Identifier: MIT */
/* See slab_test.h. */
#define _GNU_SOURCE /* sched_setaffinity */
#include <errno.h>  /* program_invocation_short_name */
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gp/user/domain.h"
#include "heap/background.h"
#include "heap/heap.h"
#include "posix.h"
#include "slab/latent_cache.h"
#include "slab/reclaim/decay.h"
#include "slab/start.h"
#include "support/slab_test.h"

/* ------------------------------------------------------------------------- where the test runs */

/* Disables work that time triggers, because it would change the counts. Tortures keep it; other
 * tests may enable it. */
__attribute__((constructor)) static void nothing_by_time(void)
{
    process_start();
    decay_enabled = strncmp(program_invocation_short_name, "torture", 7) == 0;
    background_set(decay_enabled);
}

unsigned pin_thread(void)
{
    cpu_set_t allowed, one;
    unsigned cpu = 0;

    assert_int_equal(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    while (!CPU_ISSET(cpu, &allowed))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    return cpu;
}

unsigned injected_cpu;

static unsigned current_injected(void)
{
    return injected_cpu;
}

void inject_topology(void)
{
    posix_topology_inject(64, 4, current_injected);
    assert_true(slab_start()); /* the arrays with an entry per CPU were sized for the real CPUs */
}

/* ----------------------------------------------------------------------------- domains, caches */

struct prudence_domain *manual_domain(void)
{
    struct prudence_domain *domain = prudence_domain_create("manual", PRUDENCE_DOMAIN_MANUAL, NULL);

    assert_non_null(domain);
    return domain;
}

void all_readers_leave(struct prudence_domain *domain)
{
    for (unsigned i = 0; i < 4; i++) {
        prudence_trim();
        prudence_manual_advance(domain);
    }
    prudence_trim();
}

/* Returns the bytes from one object to the next; some sizes get an extra cache line (ADR 3). */
static size_t stride_of(size_t object_size)
{
    size_t stride = round_up(object_size, object_size < 16 ? 8 : 16);

    return stride + (stride % 512 == 0 && stride >= 1024 && stride < 8192 ? CACHE_LINE : 0);
}

struct prudence_cache *fixed_cache(size_t object_size, unsigned objects,
                                   struct prudence_domain *domain)
{
    struct prudence_cache_attr attr = {.size = sizeof attr, .domain = domain};
    struct prudence_cache *cache;

    attr.object_cache_bytes = objects * stride_of(object_size);
    cache = prudence_cache_create("test", object_size, &attr);
    assert_non_null(cache);
    cache->body->quiet_checked_at = INT64_MAX; /* tests that drain quiet CPUs set it to 0 */
    if (objects) {
        assert_int_equal(cache->body->size_min, objects);
        assert_int_equal(cache->body->size_max, objects);
    }
    return cache;
}

struct cpu_cache *cpu_here(struct prudence_cache *cache)
{
    return cpu_cache_of(cache, os_cpu_current());
}

void allocate_all(struct prudence_cache *cache, void **objects, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        objects[i] = prudence_cache_alloc(cache);
        assert_non_null(objects[i]);
    }
}

void defer_all(struct prudence_cache *cache, void **objects, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        prudence_cache_free_deferred(cache, objects[i]);
}

void free_all(struct prudence_cache *cache, void **objects, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        prudence_cache_free(cache, objects[i]);
}

void node_take_all(struct prudence_cache *cache, struct slab_node *node, void **objects,
                   unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(node_take(cache, node, objects + i, 1), 1);
}

struct prudence_cache_stats stats_of(struct prudence_cache *cache)
{
    struct prudence_cache_stats stats;

    assert_int_equal(prudence_cache_stats(cache, &stats), 0);
    return stats;
}

bool contains(void *const *objects, unsigned count, const void *object)
{
    for (unsigned i = 0; i < count; i++)
        if (objects[i] == object)
            return true;
    return false;
}

/* ------------------------------------------------------------------------------------- balance */

static unsigned ones(const uint64_t *bits, unsigned words)
{
    unsigned count = 0;

    for (unsigned w = 0; w < words; w++)
        count += (unsigned)__builtin_popcountll(bits[w]);
    return count;
}

static void check_slab(struct slab *slab, unsigned list)
{
    unsigned words = bits_words(slab->capacity), capacity = slab->capacity;
    unsigned waiting = ones(slab_waiting_bits(slab), words);
    unsigned next = ones(slab_next_bits(slab), words);

    assert_int_equal(slab->list, list);
    assert_int_equal(ones(slab_free_bits(slab), words), slab->free);
    assert_int_equal(waiting + next, slab->latent);
    assert_true(waiting > 0 || next == 0);
    assert_int_equal(waiting > 0, !list_is_empty(&slab->waiting_link));
    for (unsigned w = 0; w < words; w++) {
        assert_int_equal(slab_free_bits(slab)[w] & slab_waiting_bits(slab)[w], 0);
        assert_int_equal(slab_free_bits(slab)[w] & slab_next_bits(slab)[w], 0);
        assert_int_equal(slab_waiting_bits(slab)[w] & slab_next_bits(slab)[w], 0);
    }
    if (slab->free == capacity)
        assert_int_equal(list, SLAB_FREE);
    else if (slab->free + slab->latent == capacity)
        assert_int_equal(list, SLAB_DRAINING);
    else if (slab->free + slab->latent > 0)
        assert_int_equal(list, slab->free && slab->hollowed ? SLAB_HOLLOW : SLAB_PARTIAL);
    else
        assert_int_equal(list, SLAB_FULL);
}

/* Checks the node's slabs and lists. Returns how many objects these slabs have handed out. */
static uint64_t check_node(struct slab_node *node, unsigned *slabs)
{
    uint64_t allocated = 0;
    unsigned here = 0;

    for (unsigned list = 0; list < SLAB_LISTS; list++) {
        struct list *item;
        unsigned count = 0;
        bool beyond_free_ones = false;

        list_for_each(item, &node->lists[list])
        {
            struct slab *slab = list_entry(item, struct slab, link);

            check_slab(slab, list);
            assert_false(beyond_free_ones && slab->free);
            beyond_free_ones = slab->free == 0;
            allocated += slab->capacity - slab->free - slab->latent;
            count++;
        }
        if (list == SLAB_FREE)
            assert_int_equal(count, node->free_slabs);
        here += count;
    }
    assert_int_equal(here, node->slabs);
    *slabs += here;
    return allocated;
}

void check_books(struct prudence_cache *cache)
{
    struct prudence_cache_stats stats = stats_of(cache); /* also receives transfer batches */
    uint64_t allocated = 0, in_rings = 0, on_stacks = 0;
    unsigned slabs = 0;

    for (unsigned i = 0; i < os_cpu_count(); i++) {
        struct cpu_cache *cpu = cpu_cache_of(cache, i);

        assert_int_equal(cpu->line.owner, 0);
        assert_true(stack_count(&cpu->line) <= cpu->size);
        assert_true(latent_cache_count(cpu) <= cpu->size);
        in_rings += latent_cache_count(cpu);
        on_stacks += stack_count(&cpu->line);
    }
    for (unsigned i = 0; i < os_node_count(); i++)
        allocated += check_node(&cache->body->nodes[i], &slabs);
    assert_int_equal(slabs, stats.slabs_now);
    assert_int_equal(stats.grows - stats.shrinks, stats.slabs_now);
    assert_int_equal(stats.objects_live, stats.allocations - stats.frees - stats.deferred_frees);
    assert_int_equal(allocated, stats.objects_live + on_stacks + in_rings);
    assert_in_range(stats.objects_cached, on_stacks,
                    on_stacks + in_rings); /* safe objects in rings count as cached */
}

void destroy_empty(struct prudence_cache *cache)
{
    struct prudence_domain *domain = cache->domain;

    for (int i = 0; i < 4; i++) {
        prudence_cache_shrink(cache);
        if (domain->kind == PRUDENCE_DOMAIN_MANUAL)
            prudence_manual_advance(domain);
        else
            assert_int_equal(prudence_domain_synchronize(domain), 0);
    }
    prudence_cache_shrink(cache);
    check_books(cache);
    assert_int_equal(stats_of(cache).objects_live, 0);
    assert_int_equal(stats_of(cache).objects_latent, 0);
    assert_int_equal(stats_of(cache).slabs_now, 0);
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

/* ------------------------------------------------------------------------------------ patterns */

#define PATTERN_WHOLE 65536 /* bytes filled completely; beyond, some bytes of each page */
#define PATTERN_STEP  61

static size_t pattern_next(size_t i)
{
    return i + (i < PATTERN_WHOLE ? 1 : PATTERN_STEP);
}

static unsigned char pattern_at(const void *object, size_t i)
{
    return (unsigned char)(((uintptr_t)object >> 4) * 31 + i * 7 + 1);
}

void fill_pattern(void *object, size_t size)
{
    for (size_t i = 0; i < size; i = pattern_next(i))
        ((unsigned char *)object)[i] = pattern_at(object, i);
}

bool has_pattern(const void *object, size_t size)
{
    for (size_t i = 0; i < size; i = pattern_next(i))
        if (((const unsigned char *)object)[i] != pattern_at(object, i))
            return false;
    return true;
}

/* ------------------------------------------------------------------------ memory that runs out */

unsigned memory_calls;
static unsigned failing_first, failing_count;

static bool fails(void)
{
    unsigned call = memory_calls++;

    return call >= failing_first && call - failing_first < failing_count;
}

void memory_fail(unsigned first, unsigned count)
{
    memory_calls = 0;
    failing_first = first;
    failing_count = count;
    os_memory_fails = fails;
}

void memory_succeed(void)
{
    os_memory_fails = NULL;
}

/* -------------------------------------------------------------------------------------- deaths */

void expect_text(const char *output, const char *text)
{
    if (!strstr(output, text))
        fail_msg("expected '%s' in the message, got: %s", text, output);
}

void expect_life(void (*act)(void *), void *argument, char *output, size_t size)
{
    expect_exit(0, (act(argument), 0), "");
    snprintf(output, size, "%s", last_child.output);
}
