/* SPDX-License-Identifier: MIT */
/*
 * The sampling profiler. For a fixed seed, sums are within the bounds of chance, for all sizes and
 * orders. Each view follows an object from allocation through deferral to the end of its grace
 * period, for every kind of cache. Sampled objects behave like others. Without memory, samples are
 * dropped and nothing else fails. The profile can begin late. The file can be written from
 * anywhere.
 *
 * ctest: inlined-too
 */
#define _GNU_SOURCE /* memfd_create */
#include "support/slab_test.h"

#include <fcntl.h>
#include <math.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "observe/profile.h"
#include "observe/profile_sites.h"
#include "guard/stack_depot.h"
#include "heap/cold.h"
#include "heap/malloc.h"
#include "os/posix/unwind.h"
#include "observe/option_file.h"
#include "support/gp_child.h"
#include "support/threads.h"

#define RATE     4096
#define HELD     6000
#define FUNCTION 1024 /* bytes of a function that a trace must contain */
/* Places stand in a section of their own, so that no caller of one is within FUNCTION bytes. */
#define PLACE __attribute__((noinline, section("places"), aligned(FUNCTION)))
#define LIBRARY                                                                                    \
    4 /* functions of the library that a trace may begin with; none if they jump to each other */

/* --------------------------------------------------------------------------------------
 * checking */

struct sums {
    const char *cache; /* add up sites of this cache, */
    enum site_role role;
    uintptr_t calls; /* with a call in the function at this address; 0: any */
    double objects_now, objects_ever, objects_over, bytes_now, bytes_ever, age;
};

static bool is_called_by(const struct profile_site *site, uintptr_t function)
{
    const struct trace *trace = stack_depot_trace(site->trace);

    for (unsigned i = 0; trace && i < trace->count; i++)
        if ((uintptr_t)trace->frames[i] - function < FUNCTION)
            return true;
    return false;
}

static void add_site(const struct profile_site *site, void *data)
{
    struct sums *sums = data;
    double age;

    if (site->role != sums->role || strcmp(site->cache, sums->cache) != 0 ||
        (sums->calls && !is_called_by(site, sums->calls)))
        return;
    memcpy(&age, &site->age, sizeof age);
    sums->age += age;
    sums->objects_now += (double)site->now.objects / (double)SAMPLING_UNIT;
    sums->objects_ever += (double)site->ever.objects / (double)SAMPLING_UNIT;
    sums->bytes_now += (double)site->now.bytes;
    sums->bytes_ever += (double)site->ever.bytes;
    for (unsigned i = 0; i < SITE_AGES; i++)
        sums->objects_over += (double)site->ages[i] / (double)SAMPLING_UNIT;
}

static struct sums sums_of(enum site_role role, const char *cache, uintptr_t calls)
{
    struct sums sums = {.cache = cache, .role = role, .calls = calls};

    profile_sites_visit(add_site, &sums);
    return sums;
}

/* Checks that an estimate from as many draws is `count` objects of `size` bytes, within four
 * standard deviations. */
static void assert_about(double estimate, double count, double size)
{
    double sampled = 1 - exp(-size / RATE);
    double deviation = sqrt(count * (1 - sampled) / sampled);

    if (fabs(estimate - count) > 4 * deviation + count * 0.001)
        fail_msg("%.1f objects of %.0f bytes, not about %.0f (deviation %.1f)", estimate, size,
                 count, deviation);
}

static void assert_equal(double a, double b)
{
    if (fabs(a - b) > 1e-6 * fabs(b))
        fail_msg("%f is not %f", a, b);
}

static void *held[HELD];

static void free_all_sizes(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        prudence_free(held[i]);
}

/* ------------------------------------------------------------------------------------- the sums */

TEST(weights_are_exact)
{
    assert_int_equal(sampling_weight(RATE), 6480);       /* 4096 / (1 - 1/e) = 6479.8 */
    assert_int_equal(sampling_weight(1), 16779264);      /* 4096 x 4096.5 */
    assert_int_equal(sampling_weight(RATE / 16), 67605); /* 4096 / 0.0605869 */
    assert_int_equal(sampling_weight(RATE * 3), 4311);   /* 4096 / 0.950213 */
    assert_int_equal(sampling_weight((size_t)1 << 40), 4096);
}

/* Samples every byte with the same chance, in any order of sizes. */
TEST(sums_are_unbiased)
{
    static const size_t sizes[] = {8, 40, 100, 700, 4000, 20000};
    enum { KINDS = sizeof sizes / sizeof sizes[0], MANY = 50000 };
    struct prudence_cache *caches[KINDS];
    char name[16];

    for (unsigned i = 0; i < KINDS; i++) {
        snprintf(name, sizeof name, "kind %zu", sizes[i]);
        caches[i] = prudence_cache_create(name, sizes[i], NULL);
    }
    for (unsigned n = 0; n < MANY; n++)
        for (unsigned i = 0; i < KINDS; i++)
            prudence_cache_free(caches[i], prudence_cache_alloc(caches[i]));
    for (unsigned i = 0; i < KINDS; i++) {
        struct sums sums;

        snprintf(name, sizeof name, "kind %zu", sizes[i]);
        sums = sums_of(SITE_ALLOCATES, name, 0);
        assert_about(sums.objects_ever, MANY, (double)sizes[i]);
        assert_about(sums.bytes_ever / (double)sizes[i], MANY, (double)sizes[i]);
        assert_equal(sums.objects_over, sums.objects_ever);
        assert_true(sums.objects_now == 0 && sums.bytes_now == 0);
        check_books(caches[i]);
        assert_int_equal(prudence_cache_destroy(caches[i]), 0);
    }
}

/* The profile has the requested sizes, not the sizes of classes. */
TEST(sizes_are_those_asked_for)
{
    enum { MANY = 20000 };
    struct sums before = sums_of(SITE_ALLOCATES, "size-640", 0), after;

    for (unsigned n = 0; n < MANY; n++)
        prudence_free(prudence_malloc(600));
    after = sums_of(SITE_ALLOCATES, "size-640", 0);
    assert_about(after.objects_ever - before.objects_ever, MANY, 600);
    assert_about((after.bytes_ever - before.bytes_ever) / 600, MANY, 600);
}

/* Sizes without a cache pass every place that counts bytes, with the CPU's stack full or empty. */
TEST(sizes_of_every_path_are_unbiased)
{
    static const size_t sizes[] = {24, 1020, 1030, 5000, 30000};
    static const char *const classes[] = {"size-32", "size-1024", "size-1152", "size-5120",
                                          "size-30720"};
    enum { MANY = 12000, AT_ONCE = 300 };

    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct sums before = sums_of(SITE_ALLOCATES, classes[i], 0), after;

        for (unsigned n = 0; n < MANY / AT_ONCE; n++) {
            for (unsigned k = 0; k < AT_ONCE; k++)
                held[k] = k % 2 ? malloc_counted_zeroed(sizes[i], size_place(sizes[i]))
                                : prudence_malloc(sizes[i]);
            free_all_sizes(AT_ONCE);
        }
        after = sums_of(SITE_ALLOCATES, classes[i], 0);
        assert_about(after.objects_ever - before.objects_ever, MANY, (double)sizes[i]);
    }
}

/* Counts must be exact, with or without an object on the CPU's stack, and with or without a
 * class. */
TEST(each_byte_is_counted_once)
{
    const int64_t far = (int64_t)1 << 40;
    unsigned count = 0;

    for (size_t size = 1; size < 2 * OBJECT_SIZE_MAX; size += 1 + size / 50) {
        for (unsigned n = 0; n < 4; n++) {
            sampling_left = far;
            held[count] =
                n % 2 ? malloc_counted_zeroed(size, size_place(size)) : prudence_malloc(size);
            assert_int_equal(far - sampling_left, size);
            assert_non_null(held[count++]);
        }
    }
    assert_true(count < HELD);
    free_all_sizes(count);
    sampling_left = far;
    assert_null(prudence_malloc(SIZE_MAX / 2 + 1));
    assert_null(prudence_malloc(SIZE_MAX));
    assert_int_equal(sampling_left, far);
    sampling_left = 1; /* the next allocation is sampled */
}

/* While bytes are counted, no fast path is tried without success, and the lines it would have used
 * serve. */
TEST(classes_are_counted_and_not_open)
{
    for (size_t size = 1; size <= OBJECT_SIZE_MAX; size += 1 + size / 50) {
        size_t place = size_place(size);

        prudence_free(prudence_malloc(size));
        assert_null(size_class_open(place));
        if (size_class_ready(size)) /* absent with annotations */
            assert_ptr_equal(size_tables.counted[place], size_class_ready(size)->body->slab_percpu);
    }
    assert_null(size_class_open(size_place(OBJECT_SIZE_MAX + 1)));
    assert_ptr_equal(size_tables.counted[size_place(OBJECT_SIZE_MAX + 1)], os_percpu_owned_lines);
    assert_ptr_equal(size_tables.counted[size_place(0)], os_percpu_owned_lines);
}

/* ----------------------------------------------------------------------------------- the places */

static void count_site(const struct profile_site *site, void *count)
{
    ++*(unsigned *)count;
}

static unsigned sites(void)
{
    unsigned count = 0;

    profile_sites_visit(count_site, &count);
    return count;
}

static PLACE void *allocate_here(struct prudence_cache *cache)
{
    void *object;

    sampling_left = 1;
    object = prudence_cache_alloc(cache);
    compiler_barrier();
    return object;
}

/* Sets *found if a trace has the library's caller near its beginning, so that calls inside the
 * library were not unwound. */
static void find_caller(const struct profile_site *site, void *found)
{
    const struct trace *trace = stack_depot_trace(site->trace);

    for (unsigned i = 0; trace && i < trace->count && i <= LIBRARY; i++)
        if ((uintptr_t)trace->frames[i] - (uintptr_t)allocate_here < FUNCTION)
            *(bool *)found = true;
}

/* A place makes one site for each cache, however often it is sampled. */
TEST(places_are_told_apart)
{
    struct prudence_cache *caches[2] = {prudence_cache_create("here", 100, NULL),
                                        prudence_cache_create("there", 100, NULL)};
    unsigned before = sites();
    bool found = false;

    for (unsigned i = 0; i < 20; i++)
        prudence_cache_free(caches[i % 2], allocate_here(caches[i % 2]));
    assert_int_equal(sites(), before + 2);
    assert_true(sums_of(SITE_ALLOCATES, "here", (uintptr_t)allocate_here).objects_ever > 0);
    assert_true(sums_of(SITE_ALLOCATES, "there", (uintptr_t)allocate_here).objects_ever > 0);
    profile_sites_visit(find_caller, &found);
    if (UNWIND_BY_RULES)
        assert_true(found);
    assert_null(object_entry);
    for (unsigned i = 0; i < 2; i++)
        destroy_empty(caches[i]);
}

/* ------------------------------------------------------------------------------------ the views */

static PLACE void defer_here(struct prudence_cache *cache, void **objects, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        prudence_cache_free_deferred(cache, objects[i]);
    compiler_barrier();
}

static PLACE void defer_there(struct prudence_cache *cache, void **objects, unsigned count)
{
    for (unsigned i = count; i-- > 0;)
        prudence_cache_free_deferred(cache, objects[i]);
    compiler_barrier();
}

static void touch(void *object, void *context)
{
    memset(object, 1, 8);
}

enum kind { PLAIN, CONSTRUCTED, DESTRUCTED, TYPESAFE, KINDS };

static struct prudence_cache *cache_of_kind(enum kind kind)
{
    static const char *const names[] = {"plain", "constructed", "destructed", "typesafe"};
    struct prudence_cache_attr attr = {.size = sizeof attr};

    attr.constructor = kind == CONSTRUCTED ? touch : NULL;
    attr.destructor = kind == DESTRUCTED ? touch : NULL;
    attr.flags = kind == TYPESAFE ? PRUDENCE_CACHE_TYPESAFE : 0;
    attr.domain = kind == DESTRUCTED ? NULL : manual_domain();
    return prudence_cache_create(names[kind], 1000, &attr);
}

static void end_grace_periods(struct prudence_cache *cache)
{
    if (cache->domain != prudence_default_domain())
        for (unsigned i = 0; i < 3; i++) {
            prudence_manual_advance(cache->domain);
            prudence_cache_shrink(cache);
        }
    else
        prudence_cache_barrier(cache);
    prudence_cache_shrink(cache);
}

/* A reader keeps the destructed objects latent, because their domain cannot be manual. */
static void view_of_kind(enum kind kind)
{
    struct prudence_cache *cache = cache_of_kind(kind);
    const char *name = cache->name;
    struct sums in_use, latent, there;
    double began, sampled;

    allocate_all(cache, held, HELD);
    in_use = sums_of(SITE_ALLOCATES, name, 0);
    assert_about(in_use.objects_now, HELD, 1000);
    assert_true(in_use.objects_over == 0);
    sampled = in_use.objects_now;
    check_books(cache);
    for (unsigned i = 0; i < HELD; i++)
        fill_pattern(held[i], 1000);
    prudence_read_lock();
    began = (double)os_clock_ns();
    defer_here(cache, held, HELD / 3);
    defer_there(cache, held + HELD / 3, HELD / 3);
    in_use = sums_of(SITE_ALLOCATES, name, 0);
    latent = sums_of(SITE_DEFERS, name, (uintptr_t)defer_here);
    there = sums_of(SITE_DEFERS, name, (uintptr_t)defer_there);
    assert_about(latent.objects_now, HELD / 3, 1000);
    assert_about(there.bytes_now / 1000, HELD / 3, 1000);
    assert_equal(in_use.objects_now + latent.objects_now + there.objects_now, sampled);
    assert_equal(in_use.objects_over, latent.objects_now + there.objects_now);
    assert_true(latent.objects_over == 0);
    for (unsigned i = 0; i < HELD; i++)
        assert_true(has_pattern(held[i], 1000));
    prudence_read_unlock();
    end_grace_periods(cache);
    latent = sums_of(SITE_DEFERS, name, 0);
    assert_true(latent.objects_now == 0 && latent.bytes_now == 0);
    assert_equal(latent.objects_over, latent.objects_ever);
    assert_true(latent.age <= latent.objects_ever * ((double)os_clock_ns() - began));
    for (unsigned i = HELD * 2 / 3; i < HELD; i++)
        prudence_cache_free(cache, held[i]);
    in_use = sums_of(SITE_ALLOCATES, name, 0);
    assert_true(in_use.objects_now == 0 && in_use.bytes_now == 0);
    assert_equal(in_use.objects_over, sampled);
    destroy_empty(cache);
}

TEST(views_of_all_kinds)
{
    for (enum kind kind = 0; kind < KINDS; kind++)
        view_of_kind(kind);
}

/* A reallocated object changes the bytes in use, as a large block and as an object that stays in
 * its class. */
TEST(reallocations_are_followed)
{
    struct sums before = sums_of(SITE_ALLOCATES, "large", 0), after;
    char *block = prudence_malloc(200000);

    after = sums_of(SITE_ALLOCATES, "large", 0);
    assert_equal(after.bytes_now - before.bytes_now, 200000);
    block = prudence_realloc(block, 700000);
    after = sums_of(SITE_ALLOCATES, "large", 0);
    assert_equal(after.bytes_now - before.bytes_now, 700000);
    block = prudence_realloc(block, 150000);
    after = sums_of(SITE_ALLOCATES, "large", 0);
    assert_equal(after.bytes_now - before.bytes_now, 150000);
    prudence_free_deferred(block);
    assert_equal(sums_of(SITE_ALLOCATES, "large", 0).bytes_now, before.bytes_now);
    before = sums_of(SITE_ALLOCATES, "size-1024", 0);
    for (unsigned i = 0; i < HELD; i++)
        held[i] = prudence_malloc(1000);
    for (unsigned i = 0; i < HELD; i++) {
        void *kept = prudence_realloc(held[i], 600);

        assert_ptr_equal(kept, held[i]);
    }
    after = sums_of(SITE_ALLOCATES, "size-1024", 0);
    assert_about(after.objects_now - before.objects_now, HELD, 1000);
    assert_about((after.bytes_now - before.bytes_now) / 600, HELD, 1000);
    for (unsigned i = 0; i < HELD; i++)
        prudence_free(held[i]);
    assert_equal(sums_of(SITE_ALLOCATES, "size-1024", 0).bytes_now, before.bytes_now);
}

/* ------------------------------------------------------------------------------------ no memory */

/* When any one call for memory fails, every allocation succeeds, because none depends on a
 * sample. */
TEST(without_memory_samples_are_dropped)
{
    struct prudence_cache *cache = fixed_cache(3000, 16, manual_domain());
    uint64_t dropped = profile_dropped();
    void *object;

    allocate_all(cache, held, 100); /* makes slabs */
    free_all(cache, held, 100);
    for (unsigned first = 0; first < 8; first++) {
        for (unsigned n = 0; n < 20; n++) {
            memory_fail(first, 1);
            object = prudence_cache_alloc(cache);
            memory_succeed();
            assert_non_null(object);
            memory_fail(first, 1);
            prudence_cache_free_deferred(cache, object);
            memory_succeed();
            prudence_manual_advance(cache->domain);
        }
    }
    assert_true(profile_dropped() > dropped);
    end_grace_periods(cache);
    assert_true(sums_of(SITE_ALLOCATES, cache->name, 0).objects_now == 0);
    assert_true(sums_of(SITE_DEFERS, cache->name, 0).objects_now == 0);
    destroy_empty(cache);
}

/* Without memory for a slab's table, the slab's samples are dropped. Later slabs have tables. */
TEST(without_memory_for_tables)
{
    for (unsigned first = 0; first < 12; first++) {
        struct prudence_cache *cache = cache_of_kind(CONSTRUCTED);
        unsigned count = 0;

        memory_fail(first, 1);
        for (unsigned i = 0; i < 200; i++) {
            held[count] = prudence_cache_alloc(cache);
            count += held[count] != NULL;
        }
        memory_succeed();
        assert_true(count >= 199);
        defer_all(cache, held, count);
        end_grace_periods(cache);
        assert_true(sums_of(SITE_ALLOCATES, cache->name, 0).objects_now == 0);
        assert_true(sums_of(SITE_DEFERS, cache->name, 0).objects_now == 0);
        destroy_empty(cache);
    }
}

/* ------------------------------------------------------------------------------------- the file */

static char text[1 << 20];

/* A file in memory, which programs that this one executes inherit. */
#define MEMORY_FILE "/proc/self/fd/99"

static void make_file(void)
{
    int fd = memfd_create("profile", 0);

    assert_int_equal(dup2(fd, 99), 99);
    close(fd);
}

static void take_file(void)
{
    ssize_t length = pread(99, text, sizeof text - 1, 0);

    text[length > 0 ? length : 0] = '\0';
    close(99);
}

static void write_file(void)
{
    make_file();
    errno = 77;
    assert_int_equal(prudence_profile_dump(MEMORY_FILE), 0);
    assert_int_equal(errno, 77);
    take_file();
}

static void assert_whole(void)
{
    assert_int_equal(strncmp(text, "prudence profile 1\nversion " PRUDENCE_VERSION "\n", 27), 0);
    assert_non_null(strstr(text, "\nrate 4096\n"));
    assert_non_null(strstr(text, "\nmappings\n"));
    assert_string_equal(text + strlen(text) - 5, "\nend\n");
}

TEST(errors_are_told)
{
    assert_int_equal(prudence_profile_dump(NULL), EINVAL);
    assert_int_equal(prudence_profile_dump("/nowhere/at/all"), ENOENT);
    assert_int_equal(prudence_profile_dump("/dev/full"), ENOSPC);
    write_file();
    assert_whole();
    assert_non_null(strstr(text, "allocates "));
    assert_non_null(strstr(text, "\"typesafe\"\nages "));
}

/* Another thread may write to a standard descriptor's number that the program has closed. */
static int open_without_standard_descriptors(void *ignored)
{
    for (int fd = 0; fd < 3; fd++)
        close(fd);
    for (unsigned i = 0; i < 4; i++)
        if (option_file_open_path("/dev/null", OPTION_FILE_OVERWRITE) < 3)
            return 1;
    return fcntl(0, F_GETFD) == -1 ? 42 : 2;
}

TEST(no_file_is_a_standard_descriptor)
{
    assert_child(open_without_standard_descriptors, NULL);
}

/* Another thread forks while a profile is written. The child keeps the file open as long as it
 * lives. */
TEST(a_child_keeps_no_profile_from_being_written)
{
    pid_t child;
    int fd;

    make_file();
    fd = option_file_open_path(MEMORY_FILE, OPTION_FILE_OVERWRITE);
    assert_true(fd >= 0);
    assert_int_equal(prudence_profile_dump(MEMORY_FILE), EWOULDBLOCK);
    child = fork();
    while (child == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0)
        pause();
    option_file_close(fd);
    assert_int_equal(prudence_profile_dump(MEMORY_FILE), 0);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    take_file();
    assert_whole();
}

static struct prudence_cache *stormy;
static uint32_t storm_ends;

static void *storm(void *ignored)
{
    void *objects[50];

    while (!load_relaxed(&storm_ends)) {
        allocate_all(stormy, objects, 50);
        defer_here(stormy, objects, 25);
        free_all(stormy, objects + 25, 25);
    }
    return ignored;
}

static void on_signal(int number)
{
    prudence_profile_dump("/dev/null");
}

/* Profiles are written while threads allocate, and in a handler that interrupts them anywhere. */
TEST(a_profile_is_written_while_all_runs)
{
    pthread_t threads[2];

    stormy = prudence_cache_create("storm", 2000, NULL);
    signal(SIGUSR1, on_signal);
    threads_start(threads, 2, storm);
    for (unsigned n = 0; n < 100; n++) {
        pthread_kill(threads[n % 2], SIGUSR1);
        write_file();
        assert_whole();
    }
    store_relaxed(&storm_ends, 1u);
    threads_join(threads, 2);
    signal(SIGUSR1, SIG_DFL);
    prudence_cache_barrier(stormy);
    prudence_cache_shrink(stormy);
    assert_true(sums_of(SITE_ALLOCATES, "storm", 0).objects_now == 0);
    assert_true(sums_of(SITE_DEFERS, "storm", 0).objects_now == 0);
    destroy_empty(stormy);
}

/* ---------------------------------------------------------------------------------- the process */

/* A child inherits the memory, and so the profile; its frees affect only its own. */
static int use_in_child(void *cache)
{
    double before = sums_of(SITE_ALLOCATES, "inherited", 0).objects_now;

    free_all(cache, held, 1000);
    if (before < 900 || sums_of(SITE_ALLOCATES, "inherited", 0).objects_now != 0)
        return 1;
    allocate_all(cache, held, 1000);
    return sums_of(SITE_ALLOCATES, "inherited", 0).objects_now > 900 ? 42 : 2;
}

TEST(a_child_has_it_all)
{
    struct prudence_cache *cache = prudence_cache_create("inherited", 4096, NULL);
    double before;

    allocate_all(cache, held, 1000);
    before = sums_of(SITE_ALLOCATES, "inherited", 0).objects_now;
    assert_child(use_in_child, cache);
    assert_equal(sums_of(SITE_ALLOCATES, "inherited", 0).objects_now, before);
    free_all(cache, held, 1000);
    destroy_empty(cache);
}

static void add_bytes(const struct profile_site *site, void *sum)
{
    *(int64_t *)sum += (int64_t)site->now.bytes;
}

/* Allocates, grows, shrinks, and frees or defers every size. Afterwards no more is in use or latent
 * than before. */
static int use_all_sizes(void)
{
    int64_t before = 0, after = 0;
    char *large = prudence_malloc(204790); /* the block has 204800, so its red zone is short */

    large = prudence_realloc(large, 300000);
    large = prudence_realloc(large, 160000);
    prudence_free(large);
    profile_sites_visit(add_bytes, &before);
    for (size_t size = 1; size < 400000; size += 1 + size / 7) {
        char *object = prudence_malloc(size);

        for (size_t next = size / 3; next < 4 * size; next += 1 + size / 2) {
            object = prudence_realloc(object, next + 1);
            memset(object, 1, next + 1);
        }
        if (size % 2)
            prudence_free(object);
        else
            prudence_free_deferred(object);
    }
    prudence_synchronize();
    prudence_trim();
    prudence_trim(); /* resting blocks may have been deferred */
    profile_sites_visit(add_bytes, &after);
    return before == after ? 42 : 1;
}

/* A growing block moves or stays; each of its sizes counts as one allocation. */
static int grow_a_block(void)
{
    struct sums before = sums_of(SITE_ALLOCATES, "large", 0), after;
    char *block = prudence_malloc(150000);
    double bytes = 150000;

    for (size_t size = 200000; size <= 1000000; size += 100000) {
        block = prudence_realloc(block, size);
        bytes += (double)size;
    }
    after = sums_of(SITE_ALLOCATES, "large", 0);
    assert_equal(after.objects_ever - before.objects_ever, 10);
    assert_equal(after.bytes_ever - before.bytes_ever, bytes);
    assert_equal(after.bytes_now - before.bytes_now, 1000000);
    prudence_free(block);
    return 42;
}

/* --------------------------------------------------------------------------- a late beginning */

enum { LATE_OBJECTS = 1000, LATE_BLOCKS = 10, LATE_BLOCK = 200000 };

static uint32_t late_ends; /* atomic */

static void *late_allocates(void *unused)
{
    while (!load_relaxed(&late_ends)) {
        prudence_free(prudence_malloc(100));
        prudence_free_deferred(prudence_malloc(LATE_BLOCK));
    }
    return unused;
}

static void late_construct(void *object, void *context)
{
    (void)context;
    memset(object, 1, RATE);
}

static struct prudence_cache *late_cache(const char *name, void (*constructor)(void *, void *))
{
    struct prudence_cache_attr attr = {.size = sizeof attr, .constructor = constructor};

    return prudence_cache_create(name, RATE, &attr);
}

/* Of 1000 objects that are allocated now, about as many are in the profile; and none when they were
 * freed and deferred. */
static void late_is_sampled(struct prudence_cache *cache, const char *name)
{
    allocate_all(cache, held, LATE_OBJECTS);
    assert_about(sums_of(SITE_ALLOCATES, name, 0).objects_now, LATE_OBJECTS, RATE);
    free_all(cache, held, LATE_OBJECTS / 2);
    for (unsigned i = LATE_OBJECTS / 2; i < LATE_OBJECTS; i++)
        prudence_cache_free_deferred(cache, held[i]);
    assert_about(sums_of(SITE_DEFERS, name, 0).objects_ever, LATE_OBJECTS / 2, RATE);
    assert_true(sums_of(SITE_ALLOCATES, name, 0).objects_now == 0);
}

static void late_blocks_are_sampled(void)
{
    void *blocks[LATE_BLOCKS];
    double before = sums_of(SITE_ALLOCATES, "large", 0).objects_now;

    for (unsigned i = 0; i < LATE_BLOCKS; i++)
        blocks[i] = prudence_malloc(LATE_BLOCK);
    assert_equal(sums_of(SITE_ALLOCATES, "large", 0).objects_now - before, LATE_BLOCKS);
    for (unsigned i = 0; i < LATE_BLOCKS; i++)
        prudence_free(blocks[i]);
    assert_equal(sums_of(SITE_ALLOCATES, "large", 0).objects_now, before);
}

static void late_sizes_are_sampled(void)
{
    for (unsigned i = 0; i < LATE_OBJECTS; i++)
        held[i] = prudence_malloc(2048);
    assert_about(sums_of(SITE_ALLOCATES, "size-2048", 0).objects_now, LATE_OBJECTS, 2048);
    free_all_sizes(LATE_OBJECTS);
    assert_true(sums_of(SITE_ALLOCATES, "size-2048", 0).objects_now == 0);
}

/* Slabs that exist are not sampled in place, so of this cache's objects some are missing. */
static void late_constructed_are_sampled(struct prudence_cache *cache, void *old)
{
    allocate_all(cache, held, LATE_OBJECTS);
    assert_true(sums_of(SITE_ALLOCATES, "constructed", 0).objects_now > LATE_OBJECTS / 2);
    free_all(cache, held, LATE_OBJECTS / 2);
    for (unsigned i = LATE_OBJECTS / 2; i < LATE_OBJECTS; i++)
        prudence_free(held[i]); /* by the slab's path, not the cache's */
    prudence_cache_free(cache, old);
    assert_true(sums_of(SITE_ALLOCATES, "constructed", 0).objects_now == 0);
}

/* A cold cache is sampled as soon as it is warm. */
static void late_warm_is_sampled(struct prudence_cache *cold)
{
    for (unsigned i = 0; i < HELD && cache_is_cold(cold); i++)
        prudence_cache_free(cold, prudence_cache_alloc(cold));
    assert_false(cache_is_cold(cold));
    for (unsigned i = 0; i < 10000; i++)
        prudence_cache_free(cold, prudence_cache_alloc(cold));
    assert_true(sums_of(SITE_ALLOCATES, "cold", 0).objects_ever > 0);
}

/* The profile is switched on in a program that has caches, objects and threads. */
static int begin_late(void)
{
    struct prudence_cache *early = late_cache("early", NULL), *cold, *constructed;
    void *old[] = {prudence_malloc(2048), prudence_cache_alloc(early), prudence_malloc(LATE_BLOCK)};
    void *old_constructed;
    pthread_t thread = thread_start(late_allocates, NULL);

    constructed = late_cache("constructed", late_construct);
    old_constructed = prudence_cache_alloc(constructed);
    cold_after = 0;
    cold = prudence_cache_create("cold", 64, NULL);
    assert_true(cache_is_cold(cold) || check_wanted || slab_redzone);
    assert_int_equal(prudence_option_set("profile", "4Q"), EINVAL);
    assert_int_equal(prudence_option_set("check", "1"), EBUSY);
    assert_int_equal(prudence_option_set("profile", "4K"), 0);
    assert_int_equal(prudence_option_set("profile", "8K"), EBUSY);
    assert_int_equal(prudence_option_set("profile", "0"), EBUSY);
    prudence_free(old[0]);
    prudence_cache_free_deferred(early, old[1]);
    prudence_free(old[2]);
    late_sizes_are_sampled();
    late_is_sampled(early, "early");
    late_is_sampled(late_cache("later", NULL), "later");
    late_constructed_are_sampled(constructed, old_constructed);
    store_relaxed(&late_ends, 1u);
    pthread_join(thread, NULL);
    late_warm_is_sampled(cold);
    late_blocks_are_sampled();
    return prudence_profile_dump("/dev/null") == 0 ? 42 : 1;
}

/* Acts as another program, in which nothing is sampled, or the file cannot be written. */
static int role(const char *name)
{
    if (strcmp(name, "sizes") == 0)
        return use_all_sizes();
    if (strcmp(name, "grown") == 0)
        return grow_a_block();
    if (strcmp(name, "late") == 0)
        return begin_late();
    prudence_free(prudence_malloc(100));
    if (strcmp(name, "off") == 0)
        return prudence_profile_dump("/dev/null") == ENODATA ? 42 : 1;
    return raise(SIGUSR2) ? 1 : 42;
}

TEST(options_are_obeyed)
{
    struct child_result result;

    expect_again(42, "off", NULL, "");
    expect_again(42, "signal", "profile=1,profile_signal=SIGUSR2,profile_file=/nowhere/%p", "");
    /* at the signal, and at exit */
    assert_int_equal(said("option 'profile_file': the profile cannot be written"), 2);
    make_file();
    child_again("signal", "profile=4K,profile_signal=SIGUSR2,profile_file=" MEMORY_FILE, &result);
    take_file();
    assert_child_result(&result);
    assert_whole();
    make_file();
    child_again("signal", "profile_signal=SIGUSR2,profile_file=" MEMORY_FILE, &result);
    take_file();
    assert_child_result(&result);
    assert_string_equal(text, "");
    child_again("off", "profile=1Q", &result);
    assert_true(child_said(&result, "option 'profile': bad value '1Q'"));
}

static void child_is_content(const char *what, const char *options)
{
    struct child_result result;

    child_again(what, options, &result);
    if (!child_exited_with(&result, 42))
        fail_msg("%s: status %#x: %s", options, (unsigned)result.status, result.output);
}

TEST(other_options_with_it)
{
    static const char *const options[] = {
        "",         "check=1",       "red_zones=1", "red_zones=1,zero_on_free=1",
        "guard=10", "quarantine=1M", "shuffle=1",   "hardened=1,check=1,quarantine=64K,guard=10",
        "rseq=0",   "limit=8M"};
    char all[128];

    for (unsigned i = 0; i < sizeof options / sizeof options[0]; i++) {
        snprintf(all, sizeof all, "profile=4K,trace=4,%s", options[i]);
        child_is_content("sizes", all);
    }
}

TEST(it_begins_late)
{
    static const char *const options[] = {"stats=0", "rseq=0", "trace=0", "check=1"};

    for (unsigned i = 0; i < sizeof options / sizeof options[0]; i++)
        child_is_content("late", options[i]);
}

TEST(a_block_that_moves_counts_once)
{
    static const char *const options[] = {"", ",guard_large=1", ",hardened=1", ",limit=4M"};
    char all[64];

    for (unsigned i = 0; i < sizeof options / sizeof options[0]; i++) {
        snprintf(all, sizeof all, "profile=4K%s", options[i]);
        child_is_content("grown", all);
    }
}

int main(int count, char **arguments)
{
    sampling_seed = 4711;
    if (count > 1)
        return role(arguments[1]);
    assert_int_equal(prudence_option_set("profile", "4K"), 0);
    return suite_run(NULL, NULL);
}
