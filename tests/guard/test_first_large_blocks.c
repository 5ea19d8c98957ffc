/* SPDX-License-Identifier: MIT */
/*
 * The first large blocks of a process, without any option: accesses next to them and after their
 * free fault, the report of a double free names the block, and readers of a deferred block are
 * undisturbed. Exactly `FIRST` blocks are guarded. A block that grows loses its margins. Statistics
 * stay right, nothing is lost when the system refuses, and under memory pressure all memory comes
 * back. Margins of deferred blocks do not count as garbage.
 *
 * ctest: not-with sanitizers (they see the faults themselves; one thread)
 */
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guard/annotate.h"
#include "guard/large_guard.h"
#include "slab/extension.h"
#include "support/lockable.h"
#include "support/slab_test.h"
#include "support/threads.h"
#include "support/stats.h"

#define LARGE  ((size_t)132 << 10)
#define FIRST  8 /* default of the option */
#define CLOSED 2 /* freed blocks of that size that stay closed */

static uint64_t used(void)
{
    struct os_pages_stats stats;

    os_pages_stats(&stats);
    return stats.used;
}

static char *large(void)
{
    char *block = prudence_malloc(LARGE);

    assert_non_null(block);
    memset(block, 1, LARGE);
    return block;
}

static bool has_margins(const void *block)
{
    return os_page_owner((const char *)block - 1) &&
           slab_back_margin(slab_of(block)) == os_page_size;
}

/* ---------------------------------------------------------------------------------- reports */

static void after_its_free(char *block)
{
    prudence_free(block);
    block[LARGE - 1] = 1;
}

/* Frees a block without margins, which was not among the first blocks made. */
static void after_the_first_free(void)
{
    char *block = NULL;

    for (unsigned i = 0; i <= FIRST; i++)
        block = large();
    assert_false(has_margins(block));
    prudence_free(block);
    block[0] = 1;
}

static void after_its_move(void)
{
    char *block = large(), *next = large();

    assert_ptr_not_equal(prudence_realloc(block, 4 * LARGE), block);
    prudence_free(next);
    block[0] = 1;
}

static void after_its_grace_period(void)
{
    char *block = large();

    prudence_read_lock();
    prudence_free_deferred(block);
    prudence_trim();
    memset(block, 2, LARGE); /* allowed for readers */
    prudence_read_unlock();
    prudence_synchronize();
    prudence_trim();
    block[0] = 1;
}

TEST(accesses_fault)
{
    expect_fault(large()[-1] = 1, "");
    expect_fault(large()[-(ptrdiff_t)os_page_size] = 1, "");
    expect_fault(large()[LARGE] = 1, "");
    expect_fault(after_its_free(large()), "");
    expect_fault(after_the_first_free(), "");
    expect_fault(after_its_move(), "");
    expect_fault(after_its_grace_period(), "");
}

static void free_twice(char *block)
{
    prudence_free(block);
    prudence_free(block);
}

/* The block's addresses must not be reused. */
static void free_twice_around_others(void)
{
    char *block = large();

    prudence_free(block);
    for (unsigned i = 0; i < 3 * FIRST; i++)
        prudence_free(large());
    prudence_free(block);
}

TEST(wrong_frees_are_reported)
{
    const char *freed = "it lies in a large block of 135168 bytes at 0x";

    expect_death(free_twice(large()), "prudence_free: foreign pointer", freed, "that was freed");
    expect_death(free_twice_around_others(), freed, "that was freed");
    expect_death(prudence_free(large() + LARGE), "135168 bytes after its start");
}

/* -------------------------------------------------------------------------------- the first
 * blocks */

/* Counts the freed blocks that cannot be accessed. A child reads each. */
static unsigned closed(char **blocks, unsigned count)
{
    unsigned faults = 0;

    for (unsigned i = 0; i < count; i++) {
        int status;
        pid_t child = fork();

        if (!child)
            _exit(*(volatile char *)blocks[i] & 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        faults += WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
    }
    return faults;
}

static void so_many_and_no_more(void *unused)
{
    char *blocks[3 * FIRST];
    uint64_t at_first = used();
    char *aligned;

    aligned = prudence_aligned_alloc(2 * os_page_size,
                                     LARGE); /* a margin of two pages would precede it */
    assert_false(has_margins(aligned));
    prudence_free(prudence_malloc((1 << 20) + 1));
    for (unsigned i = 0; i < 3 * FIRST; i++) {
        blocks[i] = large();
        assert_int_equal(has_margins(blocks[i]), i < FIRST);
        assert_int_equal(prudence_usable_size(blocks[i]), LARGE);
    }
    for (unsigned i = 0; i < 3 * FIRST; i++)
        prudence_free(blocks[i]);
    prudence_free(aligned);
    for (unsigned i = 0; i < 3 * FIRST; i++)
        assert_null(os_page_owner(blocks[i]));
    assert_int_equal(used(), at_first); /* resting memory does not count */
    assert_int_equal(closed(blocks, 3 * FIRST), CLOSED);
}

static void none_if_an_option_says_so(void *unused)
{
    char *block;

    assert_int_equal(prudence_option_set("guard_first", "17"), EINVAL);
    assert_int_equal(prudence_option_set("guard_first", "0"), 0);
    block = large();
    assert_false(has_margins(block));
    prudence_free(block);
    assert_int_equal(*(volatile char *)block, 1); /* kept for reuse */
}

/* Small objects are not slowed down, and later large blocks have no extension. */
static void others_have_no_extension(void *unused)
{
    char *block = NULL;

    for (unsigned i = 0; i <= FIRST; i++)
        block = large();
    assert_int_equal(slab_of(block)->extensions, 0);
    assert_int_equal(slab_of(prudence_malloc(100))->extensions, 0);
}

/* Margins do not hold up a deferral that fits without them. */
static void margins_are_no_garbage(void *unused)
{
    char limit[24];
    char *block = large();
    uint64_t latent;

    prudence_synchronize();
    prudence_trim();
    latent = stats_now().bytes_latent;
    snprintf(limit, sizeof limit, "%llu", (unsigned long long)latent + LARGE);
    assert_int_equal(prudence_option_set("latent_limit", limit), 0);
    assert_true(has_margins(block));
    prudence_read_lock();
    prudence_free_deferred(block);
    assert_int_equal(stats_now().bytes_latent, latent + LARGE);
    assert_int_equal(stats_now().latent_overruns, 0);
    prudence_read_unlock();
    prudence_synchronize();
    prudence_trim();
    assert_int_equal(stats_now().bytes_latent, latent);
}

/* ------------------------------------------------------------------------------------- resizing */

static void a_growing_block_loses_its_margins(void *unused)
{
    char *block = large(), *grown;
    uint64_t with_margins = used();

    assert_true(has_margins(block));
    assert_ptr_equal(prudence_realloc(block, LARGE - 100), block); /* the same pages */
    assert_true(has_margins(block));
    grown = prudence_realloc(block, 2 * LARGE);
    assert_ptr_equal(grown, block);
    assert_int_equal(prudence_usable_size(grown), 2 * LARGE);
    assert_null(os_page_owner(grown - 1));
    assert_int_equal(used(), with_margins + LARGE - 2 * os_page_size);
    memset(grown, 2, 2 * LARGE);
    grown = prudence_realloc(grown, LARGE / 2);
    assert_ptr_equal(grown, block);
    for (size_t size = LARGE; size < 64 * LARGE; size *= 2) { /* finally moves */
        grown = prudence_realloc(grown, size);
        memset(grown, 3, size);
    }
    assert_int_equal(slab_of(grown)->margin_pages, 0);
    prudence_free(grown);
    assert_int_equal(used(), with_margins - LARGE - 2 * os_page_size);
}

/* A growing buffer would soon lose its margins. */
static void a_grown_block_has_no_margins(void *unused)
{
    char *grown = prudence_realloc(prudence_malloc(20000), LARGE);

    assert_false(has_margins(grown));
    assert_true(has_margins(large()));
    prudence_free(grown);
}

/* --------------------------------------------------------------------------- refusals of the
 * system */

/* Each call fails in turn. The block keeps its contents, moved or not, and the statistics stay
 * right. */
static void margins_that_cannot_be_dropped(void *unused)
{
    uint64_t at_first = used();

    for (unsigned i = 0; i < FIRST; i++) {
        char *block = large(), *grown;

        assert_true(has_margins(block));
        memory_fail(i, 1);
        grown = prudence_realloc(block, 2 * LARGE);
        memory_succeed();
        if (!grown)
            grown = block;
        for (size_t at = 0; at < LARGE; at++)
            assert_int_equal(grown[at], 1);
        assert_int_equal(slab_of(grown)->margin_pages > 0, has_margins(grown));
        assert_int_equal(os_page_owner(grown - 1) != NULL, has_margins(grown));
        prudence_free(grown);
    }
    assert_int_equal(used(), at_first);
}

static void under_a_limit(void *unused)
{
    char *block;

    prudence_free(prudence_malloc(1)); /* first metadata of the process */
    os_pages_set_limit(used() + LARGE);
    block = prudence_malloc(LARGE);
    assert_non_null(block);
    assert_false(has_margins(block));
    assert_null(prudence_malloc(LARGE));
    prudence_free(block);
    prudence_free(large());
}

static void pages_that_cannot_be_closed(void *unused)
{
    uint64_t at_first = used();
    char *block = large(), *again;

    memory_fail(0, UINT32_MAX);
    prudence_free(block);
    memory_succeed();
    assert_int_equal(used(), at_first);
    again = large();
    assert_false(has_margins(again)); /* closing is not tried again */
    prudence_free(again);
    assert_int_equal(*(volatile char *)again, 1);
}

static void locked_memory(void *future)
{
    char *block;

    assert_int_equal(mlockall(future ? MCL_CURRENT | MCL_FUTURE : MCL_CURRENT), 0);
    block = large();
    if (!future)
        assert_int_equal(mlockall(MCL_CURRENT | MCL_FUTURE), 0);
    prudence_free(block);
    assert_int_equal(*(volatile char *)block, 1);
    prudence_free(large());
}

TEST(memory_may_be_locked)
{
    if (!memory_is_lockable(64 << 20))
        skip();
    expect_survival(locked_memory("from the beginning"), "");
    expect_survival(locked_memory(NULL), "");
}

/* All resting memory is free again and usable. */
static void under_pressure_all_comes_back(void *unused)
{
    char *block = large();

    prudence_free(block);
    extensions_pressure();
    os_pages_trim();
    for (unsigned i = 0; i < 2 * FIRST; i++)
        large();
    assert_non_null(os_page_owner(block));
    memset(block, 1, LARGE);
}

static void freed_blocks_are_zeroed(void *unused)
{
    assert_int_equal(prudence_option_set("zero_on_free", "1"), 0);
    for (unsigned i = 0; i < 3 * FIRST; i++)
        prudence_free(large());
}

static void a_child_goes_on(void *unused)
{
    char *block = large(), *kept = large();
    pid_t child;

    prudence_free(block);
    child = fork();
    if (!child) {
        prudence_free(kept);
        for (unsigned i = 0; i < 2 * FIRST; i++)
            prudence_free(large());
        extensions_pressure();
        memset(large(), 1, LARGE);
        _exit(0);
    }
    assert_int_equal(status_of(child), 0);
    memset(kept, 2, LARGE);
    prudence_free(kept);
}

/* Each case has its own process, because only the first blocks of a process are guarded. */
TEST(others)
{
    static void (*const acts[])(void *) = {
        so_many_and_no_more,
        none_if_an_option_says_so,
        margins_are_no_garbage,
        others_have_no_extension,
        a_growing_block_loses_its_margins,
        a_grown_block_has_no_margins,
        margins_that_cannot_be_dropped,
        under_a_limit,
        pages_that_cannot_be_closed,
        under_pressure_all_comes_back,
        freed_blocks_are_zeroed,
        a_child_goes_on,
    };

    for (unsigned i = 0; i < sizeof acts / sizeof acts[0]; i++)
        expect_survival(acts[i](NULL), "");
}

int main(void)
{
    if (annotate_on)
        return 0;
    return suite_run(NULL, NULL);
}
