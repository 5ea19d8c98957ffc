/* SPDX-License-Identifier: MIT */
/*
 * guard=1: every object that can be guarded is alone between closed pages. Overflow, underflow and
 * use after free end the process by SIGSEGV, after a report of the access, the place and the
 * object. A deferred object is readable until its grace period is over, and not afterwards.
 * Everything else works as usual.
 *
 * ctest: inlined-too
 * ctest: not-with thread (ThreadSanitizer: no threads in forked children)
 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <unistd.h>

#include "guard/guard.h"
#include "mapping.h"
#include "pages/pages.h"
#include "support/fork_matrix.h"
#include "support/patience.h"
#include "support/slab_test.h"

/* The program's handler is in front again after cmocka's. The next guarded object puts ours in
 * front. */
static char *guarded(size_t size)
{
    char *object;

    prudence_free(prudence_malloc(1));
    object = prudence_malloc(size);
    assert_true(guard_has(object));
    return object;
}

static bool is_right(const char *object, size_t size)
{
    return ((uintptr_t)object + round_up(size, 16)) % OS_PAGE_SIZE == 0;
}

/* Returns an object of this size at that side of its page. */
static char *at_side(size_t size, bool right)
{
    char *object = guarded(size);

    while (is_right(object, size) != right)
        object = prudence_malloc(size);
    return object;
}

static volatile char seen;

/* ------------------------------------------------------------------------------------- accesses */

static void use_after_free(char *object)
{
    prudence_free(object);
    seen = object[99];
}

/* Another object is behind the closed page. */
static void overflow_before_another(void)
{
    char *object = at_side(48, true), *other = guarded(48);

    while ((uintptr_t)other / os_page_size - (uintptr_t)object / os_page_size != 2)
        other = guarded(48);
    object[50] = 1;
}

TEST(are_reported)
{
    expect_fault(at_side(48, true)[48] = 1, "overflow: write of",
                 "is 0 bytes after the 48-byte object", "of cache 'size-48'",
                 "accessed by:\nprudence:     #0 ", "allocated by:\nprudence:     #0 ");
    expect_fault(seen = at_side(48, true)[50], "overflow: read of",
                 "is 2 bytes after the 48-byte object");
    expect_fault(at_side(48, false)[-1] = 1, "underflow: write of",
                 "is 1 bytes before the 48-byte object");
    expect_fault(use_after_free(guarded(100)), "use after free: read of",
                 "is byte 99 of the freed 100-byte object", "freed by:\nprudence:     #0 ");
    expect_fault(at_side(48, true)[300] = 1, "is 252 bytes after the 48-byte object");
    expect_fault(overflow_before_another(), "is 2 bytes after the 48-byte object");
}

/* Writes too close for a fault are found in the pattern around the object. */
static void small_overflow(void (*end)(void *))
{
    char *object = at_side(49, true);

    object[49] = 0;
    end(object);
    prudence_synchronize();
    prudence_trim();
}

static void behind_a_left_one(void)
{
    char *object = at_side(49, false);

    object[1000] = 0;
    prudence_free(object);
}

TEST(damage_is_reported)
{
    expect_death(small_overflow(prudence_free), "overflow: write of",
                 "is 0 bytes after the freed 49-byte object", "freed by:");
    expect_death(small_overflow(prudence_free_deferred), "overflow: write of",
                 "is 0 bytes after the freed 49-byte object", "deferred, and safe now, by:");
    expect_death(behind_a_left_one(), "is 951 bytes after the freed 49-byte object");
}

TEST(misuse_is_reported)
{
    char *object = guarded(100);

    expect_death((prudence_free(object), prudence_free(object)), "is already free",
                 "of cache 'size-112'", "freed by:");
    expect_death((prudence_read_lock(), prudence_free_deferred(object), prudence_free(object)),
                 "already deferred and not yet safe", "of cache 'size-112'", "deferred by:");
    expect_death(
        (prudence_read_lock(), prudence_free_deferred(object), prudence_free_deferred(object)),
        "already deferred and not yet safe", "allocated by:");
    expect_death((prudence_free(object), prudence_free_deferred(object)), "is already free",
                 "freed by:");
    expect_death(prudence_free(object + 16), "16 bytes after its start",
                 "is byte 16 of the 100-byte object");
    expect_death(prudence_free_sized(object, 101), "has 100 bytes, and the size 101 is wrong");
    prudence_free(object);
}

/* ------------------------------------------------------------------------------------- deferral */

static struct prudence_cache *cache;

static void read_it(const char *object)
{
    prudence_free(prudence_malloc(1));
    seen = *object;
}

TEST(deferred_objects_stay_readable)
{
    char *object;

    cache = fixed_cache(100, 16, manual_domain());
    object = prudence_cache_alloc(cache);
    assert_true(guard_has(object));
    fill_pattern(object, 100);
    prudence_cache_free_deferred(cache, object);
    for (int i = 0; i < 20; i++)
        prudence_cache_free(cache, prudence_cache_alloc(cache));
    prudence_cache_shrink(cache);
    assert_true(has_pattern(object, 100));
    assert_int_equal(stats_of(cache).objects_latent, 1);
    assert_int_equal(prudence_cache_destroy(fixed_cache(50, 16, manual_domain())), 0);
    prudence_manual_advance(cache->domain);
    prudence_cache_free(cache, prudence_cache_alloc(cache)); /* visits the node */
    assert_int_equal(stats_of(cache).objects_latent, 0);
    expect_fault(read_it(object), "use after free: read of", "deferred, and safe now, by:");
    check_books(cache);
    destroy_empty(cache);
}

/* The deferral itself drives the grace period. */
TEST(a_deferral_without_readers)
{
    char *object = guarded(30);

    prudence_free_deferred(object);
    expect_fault(read_it(object), "use after free");
}

TEST(a_reader_keeps_it)
{
    char *object = guarded(30);

    object[5] = 77;
    prudence_read_lock();
    prudence_free_deferred(object);
    for (int i = 0; i < 2000; i++)
        prudence_free_deferred(prudence_malloc(30)); /* more than there are pages */
    assert_int_equal(object[5], 77);
    prudence_read_unlock();
    prudence_synchronize();
    prudence_trim();
    prudence_trim();
    object = prudence_malloc(30);
    assert_true(guard_has(object)); /* pages are back */
    prudence_free(object);
}

/* ----------------------------------------------------------------------------- the good program */

/* Tries both ends of a page, and sizes whose own class is aligned only in its slabs. */
static void aligned_as_asked_for(size_t alignment)
{
    static const size_t sizes[] = {40, 520, 1040, 2100};

    for (unsigned i = 0; i < 8; i++) {
        size_t size = sizes[i / 2];
        char *object = prudence_aligned_alloc(alignment, size);

        assert_int_equal((uintptr_t)object % alignment, 0);
        memset(object, 1, size);
        prudence_free(object);
    }
}

TEST(sizes_are_exact)
{
    char *object = guarded(100), *moved;

    assert_int_equal(prudence_usable_size(object), 100);
    fill_pattern(object, 100);
    moved = prudence_realloc(object, 150);
    assert_ptr_not_equal(moved, object);
    assert_int_equal(prudence_usable_size(moved), 150);
    assert_memory_equal(moved, "", 0);
    moved = prudence_realloc(moved, 140);
    assert_int_equal(prudence_usable_size(moved), 140);
    prudence_free_sized(moved, 140);
    object = prudence_calloc(7, 7);
    for (int i = 0; i < 49; i++)
        assert_int_equal(object[i], 0);
    prudence_free(object);
    for (size_t alignment = 16; alignment <= 4096; alignment *= 2)
        aligned_as_asked_for(alignment);
    object = prudence_malloc(0);
    assert_non_null(object);
    prudence_free(object);
    object = prudence_malloc(os_page_size + 1000); /* fits no page */
    assert_false(guard_has(object));
    prudence_free(object);
}

static void construct(void *object, void *context)
{
    *(int *)object = *(int *)context;
}

TEST(some_are_never_guarded)
{
    int seven = 7;
    struct prudence_cache_attr attr = {
        .size = sizeof attr, .constructor = construct, .context = &seven};
    int *object;

    cache = prudence_cache_create("constructed", 64, &attr);
    object = prudence_cache_alloc(cache);
    assert_int_equal(*object, 7);
    assert_false(guard_has(object));
    prudence_cache_free(cache, object);
    assert_int_equal(prudence_cache_destroy(cache), 0);
    attr = (struct prudence_cache_attr){.size = sizeof attr, .flags = PRUDENCE_CACHE_TYPESAFE};
    cache = prudence_cache_create("type-safe", 64, &attr);
    object = prudence_cache_alloc(cache);
    assert_false(guard_has(object));
    prudence_cache_free(cache, object);
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

TEST(the_pool_is_bounded)
{
    static void *objects[GUARD_SLOTS + 100];
    unsigned inside = 0;

    prudence_trim();
    cache = fixed_cache(64, 16, manual_domain());
    allocate_all(cache, objects, GUARD_SLOTS + 100);
    for (unsigned i = 0; i < GUARD_SLOTS + 100; i++) {
        inside += guard_has(objects[i]);
        fill_pattern(objects[i], 64);
    }
    assert_int_equal(inside, GUARD_SLOTS);
    for (unsigned i = 0; i < GUARD_SLOTS + 100; i++)
        assert_true(has_pattern(objects[i], 64));
    assert_int_equal(stats_of(cache).objects_live, GUARD_SLOTS + 100);
    check_books(cache);
    prudence_cache_free_bulk(cache, GUARD_SLOTS + 100, objects);
    assert_int_equal(prudence_cache_alloc_bulk(cache, 10, objects), 10);
    for (unsigned i = 0; i < 10; i++)
        assert_true(guard_has(objects[i]));
    assert_int_equal(prudence_cache_destroy(cache), EBUSY);
    prudence_cache_free_deferred_bulk(cache, 10, objects);
    destroy_empty(cache);
}

/* The page that has rested longest is reused first, so this one is reused as late as possible. */
TEST(the_oldest_page_is_used_first)
{
    char *object = guarded(64);

    prudence_free(object);
    for (unsigned i = 0; i < GUARD_SLOTS - 1; i++) {
        char *other = prudence_malloc(64);

        assert_true(((uintptr_t)other ^ (uintptr_t)object) / os_page_size);
        prudence_free(other);
    }
    expect_fault(read_it(object), "use after free"); /* with one allocation */
}

/* ------------------------------------------------------------------------ the program's handler */

static void on_fault(int number, siginfo_t *info, void *context)
{
    static const char text[] = "the program's handler\n";

    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    _exit(number == SIGSEGV ? 0 : 1);
}

static void with_a_handler(bool wild)
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    char *object;

    sigaction(SIGSEGV, &action, NULL);
    object = guarded(64); /* puts our handler in front */
    prudence_free(object);
    if (wild)
        object = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *object = 1;
}

static struct sigaction next;

static void on_fault_chained(int number, siginfo_t *info, void *context)
{
    static const char text[] = "chained\n";

    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    if (next.sa_flags & SA_SIGINFO)
        next.sa_sigaction(number, info, context);
    else
        signal(number, SIG_DFL);
}

/* The program's later handler calls ours. */
static void with_a_chained_handler(void)
{
    struct sigaction action = {.sa_sigaction = on_fault_chained, .sa_flags = SA_SIGINFO};
    char *object = guarded(64);

    sigaction(SIGSEGV, &action, &next);
    prudence_free(guarded(64));
    prudence_free(object);
    *object = 1;
}

static void on_fault_removed(int number)
{
    static const char text[] = "its handler of before\n";

    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    signal(number, SIG_DFL);
}

/* The program removes its handler each time, the last time after we stepped in front. */
static void with_a_removed_handler(void)
{
    struct sigaction action = {.sa_handler = on_fault_removed}, before;
    char *object = guarded(64);

    for (unsigned i = 0; i < 20; i++) {
        sigaction(SIGSEGV, &action, &before);
        prudence_free(guarded(64)); /* puts our handler in front */
        sigaction(SIGSEGV, &before, NULL);
    }
    prudence_free(object);
    *object = 1;
}

static void on_fault_below(int number)
{
    static const char text[] = "the one below\n";

    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    signal(number, SIG_DFL);
}

static struct sigaction instead_of(struct sigaction action)
{
    struct sigaction before;

    sigaction(SIGSEGV, &action, &before);
    prudence_free(guarded(64)); /* puts our handler in front */
    return before;
}

/* A handler is installed twice, and each is removed as it was installed. */
static void with_a_handler_twice(void)
{
    struct sigaction removed = {.sa_handler = on_fault_removed},
                     below = {.sa_handler = on_fault_below};
    struct sigaction other = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    struct sigaction before_other, before_removed;
    char *object = guarded(64);

    instead_of(removed);
    instead_of(below);
    before_removed = instead_of(removed);
    before_other = instead_of(other);
    instead_of(before_other);
    instead_of(before_removed);
    prudence_free(object);
    *object = 1;
}

#define HANDLERS 12
#define KEPT     8 /* and the first, which is cmocka's */

static struct sigaction older[HANDLERS];
static unsigned handlers_left = HANDLERS;

/* Stands for as many handlers, each of which calls the one before it. */
static void on_fault_older(int number, siginfo_t *info, void *context)
{
    static const char text[] = "one of many\n";

    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    if (--handlers_left > HANDLERS - KEPT && older[handlers_left].sa_flags & SA_SIGINFO)
        older[handlers_left].sa_sigaction(number, info, context);
    else
        signal(number, SIG_DFL);
}

/* More handlers than we keep. Their flags differ, because each is another one. */
static void with_many_handlers(void)
{
    struct sigaction action = {.sa_sigaction = on_fault_older};
    static const int flags[] = {SA_NODEFER, SA_RESTART, SA_ONSTACK, SA_NOCLDSTOP};
    char *object = guarded(64);

    for (unsigned i = 0; i < HANDLERS; i++) {
        action.sa_flags = SA_SIGINFO;
        for (unsigned flag = 0; flag < 4; flag++)
            action.sa_flags |= i >> flag & 1 ? flags[flag] : 0;
        sigaction(SIGSEGV, &action, &older[i]);
        prudence_free(guarded(64));
    }
    prudence_free(object);
    *object = 1;
}

static sigjmp_buf back;

static void on_fault_leaving(int number)
{
    siglongjmp(back, 1);
}

/* A program that probes addresses; each fault is reported. */
static void with_a_leaving_handler(void)
{
    char *object;

    signal(SIGSEGV, on_fault_leaving);
    object = guarded(64);
    prudence_free(object);
    for (volatile int i = 0; i < 5; i++)
        if (sigsetjmp(back, 1) == 0)
            *object = 1;
}

static char pages[2][4096] __attribute__((aligned(4096)));

/* Two faults with one context, on an alternate stack. The handler leaves at the first one; at the
 * second it is called by a newer one, and leaves again. */
static void with_a_leaving_handler_below(void)
{
    struct sigaction leaving = {.sa_handler = on_fault_leaving, .sa_flags = SA_ONSTACK};
    struct sigaction newer = {.sa_sigaction = on_fault_chained,
                              .sa_flags = SA_SIGINFO | SA_ONSTACK};
    stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};

    sigaltstack(&stack, NULL);
    mprotect(pages, sizeof pages, PROT_NONE);
    sigaction(SIGSEGV, &leaving, NULL);
    prudence_free(guarded(64)); /* puts our handler in front */
    if (sigsetjmp(back, 1) == 0)
        *(volatile char *)pages[0] = 1;
    sigaction(SIGSEGV, &newer, &next);
    if (sigsetjmp(back, 1) == 0)
        *(volatile char *)pages[1] = 1;
}

static void on_fault_once(int number)
{
    static const char text[] = "its one time\n"; /* no path to this program contains it */

    (void)!write(STDERR_FILENO, text, sizeof text - 1);
}

/* The handler serves one signal. The faulting instruction, run again, ends the process. */
static void with_a_handler_for_once(void)
{
    struct sigaction action = {.sa_handler = on_fault_once, .sa_flags = (int)SA_RESETHAND};
    char *object;

    alarm(patience(30));
    sigaction(SIGSEGV, &action, NULL);
    object = guarded(64);
    prudence_free(object);
    *object = 1;
}

/* Ignores the signal with flags of a handler. */
static void sent_and_ignored(void)
{
    struct sigaction action = {.sa_flags = SA_SIGINFO};

    action.sa_handler = SIG_IGN;
    sigaction(SIGSEGV, &action, NULL);
    guarded(64);
    raise(SIGSEGV);
}

TEST(handlers_are_chained)
{
    expect_survival(with_a_handler(false), "use after free: write of", "the program's handler");
    expect_survival(with_a_handler(true), "the program's handler");
    assert_false(said("prudence"));
    expect_fault(with_a_chained_handler(), "use after free: write of");
    assert_int_equal(said("chained\n"), 1);
    assert_int_equal(said("write of"), 1);
    expect_fault(with_a_removed_handler(), "use after free: write of");
    assert_false(said("its handler of before"));
    expect_fault(with_a_handler_twice(), "use after free: write of");
    assert_int_equal(said("the one below"), 1);
    expect_fault(with_many_handlers(), "use after free: write of");
    assert_int_equal(said("write of"), 1);
    assert_int_equal(said("one of many"), KEPT);
    expect_survival(with_a_leaving_handler(), "");
    assert_int_equal(said("write of"), 5);
    expect_survival(with_a_leaving_handler_below(), "chained");
    expect_fault(with_a_handler_for_once(), "");
    assert_int_equal(said("its one time"), 1);
    expect_fault((guarded(64), raise(SIGSEGV)), "");
    assert_false(said("prudence"));
    expect_survival(sent_and_ignored(), "");
}

/* ----------------------------------------------------------------------------------------- fork */

static void child(char *object)
{
    assert_int_equal(object[10], 9);
    prudence_free(object);
    prudence_free(guarded(50));
}

TEST(works_after_fork)
{
    char *object = guarded(64);

    object[10] = 9;
    expect_survival(child(object), "");
    assert_int_equal(object[10], 9); /* the parent's own copy */
    prudence_free(object);
}

static int stop_at;      /* which request for memory of the thread */
static bool has_stopped; /* atomic */
static __thread int requests_left = -1;

static bool stop_in_request(void)
{
    if (requests_left >= 0 && requests_left-- == 0) {
        store_relaxed(&has_stopped, true);
        fork_reach_with_lock();
    }
    return false;
}

static void *make_first_object(void *unused)
{
    requests_left = stop_at;
    prudence_free(prudence_malloc(48));
    requests_left = -1;
    if (!load_relaxed(&has_stopped))
        sem_post(&fork_reached);
    return unused;
}

static int gets_guarded(void *unused)
{
    (void)unused;
    os_memory_fails = NULL;
    for (unsigned i = 0; i < 10; i++)
        if (guard_has(prudence_malloc(50)))
            return 42;
    return 1;
}

/* Runs in a child, which has no pool yet. Returns 42 if the thread stopped, and 43 if it has fewer
 * requests. */
static int fork_while_the_first_is_made(void *unused)
{
    struct child_result result;

    (void)unused;
    os_memory_fails = stop_in_request;
    fork_while(make_first_object, fork, gets_guarded, NULL, &result);
    if (!child_exited_with(&result, 42))
        return 1;
    return has_stopped ? 42 : 43;
}

TEST_FIRST(a_child_makes_the_pool_that_another_thread_was_making)
{
    struct child_result result;

    do {
        child_run(fork_while_the_first_is_made, NULL, &result);
        assert_true(child_exited_with(&result, 42) || child_exited_with(&result, 43));
        stop_at++;
    } while (child_exited_with(&result, 42));
    assert_true(stop_at > 1);
}

static int reads_seven(void *object)
{
    return *(char *)object == 7 ? 42 : 1;
}

/* The preloaded library notes advice about pages in the same way. */
TEST(advice_of_the_program_ends_with_its_object)
{
    static const struct {
        int advice;
        unsigned kind;
    } lasting[] = {{MADV_DONTFORK, MAPPING_DONTFORK}, {MADV_WIPEONFORK, MAPPING_WIPEONFORK}};
    struct child_result result;

    for (unsigned i = 0; i < 2; i++) {
        char *object;

        for (unsigned slot = 0; slot < GUARD_SLOTS; slot++) {
            char *page = prudence_malloc(os_page_size);

            assert_true(guard_has(page));
            assert_int_equal(madvise(page, os_page_size, lasting[i].advice), 0);
            pages_note_advice(page, page, os_page_size, lasting[i].kind);
            prudence_free(page);
        }
        object = prudence_malloc(100);
        *object = 7;
        child_run(reads_seven, object, &result);
        assert_true(child_exited_with(&result, 42));
        prudence_free(object);
    }
}

static int guard_on(void **state)
{
    return prudence_option_set("guard", "1");
}

SUITE_BETWEEN(guard_on, NULL, pin_thread())
