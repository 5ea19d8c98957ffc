/* SPDX-License-Identifier: MIT */
/*
 * Valgrind's memcheck and AddressSanitizer see the accesses of a program to its objects. Each bug
 * below, in its own process, is reported as the right kind, and a correct program is not reported.
 * In particular, a deferred object is readable until its grace period is over, and not afterwards.
 *
 * The asan preset uses AddressSanitizer, and builds without sanitizers use Valgrind if available:
 * the release build runs one bug of each kind, with PRUDENCE_MODELS=deep (make test-long) all; a
 * build with internal checks runs only programs without bugs.
 *
 * ctest: not-with undefined (Valgrind reads builds without a sanitizer)
 * ctest: cost 35
 */
#include <sys/wait.h>
#include <unistd.h>

#include "guard/annotate.h"
#include "support/deep.h"
#include "support/slab_test.h"
#include "support/threads.h"

static volatile char seen;
static void *volatile kept;

static void say(const char *text)
{
    (void)!write(STDERR_FILENO, text, strlen(text));
}

/* Writes a byte, hidden from the optimizer. */
static __attribute__((noipa)) void set(char *byte)
{
    *byte = 1;
}

static __attribute__((noipa)) char *filled(size_t size)
{
    char *object = prudence_malloc(size);

    memset(object, 1, size);
    return object;
}

/* ----------------------------------------------------------------------------------------- bugs */

static void overflow(void)
{
    set(&filled(50)[50]);
}

static void overflow_of_a_full_class(void)
{
    char *object = filled(64), *neighbour = filled(64);

    set(&object[64]);
    prudence_free(neighbour);
    prudence_free(object);
}

static void overflow_of_a_cache(void)
{
    struct prudence_cache *cache = prudence_cache_create("objects", 48, NULL);
    char *objects[2] = {prudence_cache_alloc(cache), prudence_cache_alloc(cache)};

    set(&objects[0][48]);
    set(&objects[1][48]);
}

static void overflow_of_a_large_block(void)
{
    set(&filled(100000)[100000]);
}

static void underflow(void)
{
    kept = filled(50); /* the page before a slab's first object belongs to something else */
    set(&filled(50)[-1]);
}

static void use_after_free(void)
{
    char *object = filled(50);

    prudence_free(object);
    seen = object[7];
}

static void use_after_realloc(void)
{
    char *object = filled(50);

    kept = prudence_realloc(object, 60);
    set(&object[7]);
}

static void use_of_a_large_block_after_free(void)
{
    char *object = filled(200000), *other = filled(200000);

    prudence_free_deferred(object);
    prudence_free(other);
    seen = object[7]; /* may still be read */
    say("still readable\n");
    seen = other[7];
}

/* Closes the batches, then merges them and the objects of latent slabs. */
static void merge(void)
{
    for (int i = 0; i < 4; i++) {
        prudence_trim();
        prudence_synchronize();
    }
}

static void use_after_the_grace_period(void)
{
    char *object = filled(50);

    kept = filled(50); /* keeps the slab */
    prudence_read_lock();
    prudence_free_deferred(object);
    for (int i = 0; i < 1000; i++)
        prudence_free_deferred(filled(50));
    seen = object[7];
    if (object[7] != 1)
        abort();
    prudence_read_unlock();
    say("still readable\n");
    merge();
    seen = object[7];
}

static void use_after_quarantine_was_left(void)
{
    char *object = filled(50);

    prudence_free(object);
    for (int i = 0; i < 1000; i++) /* without reuse in between */
        prudence_free(filled(50));
    seen = object[7];
}

static void uninitialised(void)
{
    char *object = prudence_malloc(50);

    if (object[7])
        say("set\n");
    prudence_free(object);
}

static void leak(void)
{
    kept = filled(50); /* the slab refers to its first object */
    for (int i = 0; i < 3; i++)
        filled(50);
    kept = NULL;
}

/* ----------------------------------------------------------------------------- the good program */

static void deferred_and_not_safe_is_no_leak(void)
{
    struct prudence_cache *cache = prudence_cache_create("objects", 200, NULL);

    prudence_read_lock();
    for (int i = 0; i < 10000; i++) /* fills rings and latent slabs */
        prudence_cache_free_deferred(cache, prudence_cache_alloc(cache));
    prudence_free_deferred(filled(100000));
}

static void construct(void *object, void *context)
{
    memset(object, 7, 40);
}

static void what_is_allowed(void)
{
    struct prudence_cache_attr attr = {.size = sizeof attr, .constructor = construct};
    struct prudence_cache *cache = prudence_cache_create("constructed", 40, &attr);
    char *object = prudence_cache_alloc(cache), *moved;

    if (object[39] != 7)
        abort();
    prudence_cache_free(cache, object);
    object = prudence_cache_alloc(cache);
    if (object[39] != 7)
        abort();
    prudence_cache_free_deferred(cache, object);
    attr = (struct prudence_cache_attr){.size = sizeof attr, .flags = PRUDENCE_CACHE_TYPESAFE};
    cache = prudence_cache_create("type-safe", 40, &attr);
    object = prudence_cache_alloc(cache);
    memset(object, 1, 40);
    prudence_cache_free(cache, object);
    if (object[39] != 1)
        abort();
    for (size_t size = 1; size < 200000; size = size * 3 + 1) {
        object = filled(size);
        if (prudence_usable_size(object) != size)
            abort();
        moved = prudence_realloc(object, size / 2 + 1);
        moved = prudence_realloc(moved, 2 * size);
        if (moved[size / 2] != 1)
            abort();
        prudence_free_sized(moved, 2 * size);
        object = prudence_calloc(1, size);
        for (size_t i = 0; i < size; i++)
            if (object[i])
                abort();
        prudence_free_deferred(object);
    }
    merge();
    prudence_trim();
}

/* A libc block that only an object of this library refers to is no leak either. */
static void what_objects_point_to(void)
{
    void **objects[2] = {prudence_malloc(64), prudence_malloc(100000)};

    for (int i = 0; i < 2; i++)
        objects[i][3] = malloc(1000);
    objects[0][4] = objects[1];
    kept = objects[0];
}

static char *shared;
static int stop;

static void *read_shared(void *ignored)
{
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        prudence_read_lock();
        if (prudence_dereference(shared)[5] != 1)
            abort();
        prudence_read_unlock();
    }
    return ignored;
}

static void readers_and_a_writer(void)
{
    pthread_t readers[2];

    shared = filled(50);
    threads_start(readers, 2, read_shared);
    for (int i = 0; i < 3000; i++) {
        char *old = __atomic_exchange_n(&shared, filled(50), __ATOMIC_ACQ_REL);

        prudence_free_deferred(old);
        if (i % 100 == 0)
            usleep(1000);
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    threads_join(readers, 2);
}

/* -------------------------------------------------------------------------------------- reports */

#define STILL "still readable"
#define BLOCK "a block of size "

static const struct bug {
    const char *name;
    void (*run)(void);
    const char *options;
    const char *valgrind, *asan; /* expected report; NULL: none */
} bugs[] = {
#define BUG(name, ...)                                                                             \
    {                                                                                              \
#name, name, __VA_ARGS__                                                                   \
    }
    BUG(overflow, "", "0 bytes after " BLOCK "50 alloc'd", "use-after-poison"),
    BUG(overflow_of_a_full_class, "", "0 bytes after " BLOCK "64 alloc'd", "use-after-poison"),
    BUG(overflow_of_a_cache, "", "0 bytes after " BLOCK "48 alloc'd", "use-after-poison"),
    BUG(overflow_of_a_large_block, "", "0 bytes after " BLOCK "100,000 alloc'd",
        "use-after-poison"),
    BUG(underflow, "", "Invalid write of size 1", "use-after-poison"),
    BUG(use_after_free, "", "7 bytes inside " BLOCK "50 free'd", "use-after-poison"),
    BUG(use_after_realloc, "", "7 bytes inside " BLOCK "50 free'd", "use-after-poison"),
    BUG(use_of_a_large_block_after_free, "", "7 bytes inside " BLOCK "200,000 free'd", NULL),
    BUG(use_after_the_grace_period, "", "7 bytes inside " BLOCK "50 free'd", "use-after-poison"),
    BUG(use_after_quarantine_was_left, "quarantine=1M", "7 bytes inside " BLOCK "50 free'd",
        "use-after-poison"),
    BUG(uninitialised, "", "depends on uninitialised value", NULL),
    BUG(leak, "", "are definitely lost", NULL),
    BUG(deferred_and_not_safe_is_no_leak, "", NULL, NULL),
    BUG(what_is_allowed, "", NULL, NULL),
    BUG(what_is_allowed, "check=1,zero_on_free=1,quarantine=1M", NULL, NULL),
    BUG(what_is_allowed, "check=1,latent_limit=4K", NULL,
        NULL), /* deferrals that do not fit wait */
    BUG(what_objects_point_to, "", NULL, NULL),
    BUG(readers_and_a_writer, "", NULL, NULL),
};

#ifdef __SANITIZE_ADDRESS__
static bool under_valgrind = false;
#else
static bool under_valgrind = true;
#endif

#ifdef PRUDENCE_DEBUG
static bool checks_inside = true;
#else
static bool checks_inside = false;
#endif

/* Each kind of report once, and what must not be reported. */
static const char *const first[] = {
    "overflow", "use_after_free",  "use_after_the_grace_period",      "uninitialised",
    "leak",     "what_is_allowed", "deferred_and_not_safe_is_no_leak"};

static bool is_first(const struct bug *bug)
{
    for (unsigned i = 0; i < sizeof first / sizeof first[0]; i++)
        if (strcmp(bug->name, first[i]) == 0)
            return bug->options[0] == '\0';
    return false;
}

static char *program;

static int run(const struct bug *bug, char *output, size_t size)
{
    char *const valgrind[] = {"valgrind",
                              "-q",
                              "--leak-check=full",
                              "--error-exitcode=9",
                              program,
                              (char *)(uintptr_t)bug->name,
                              NULL};
    char *const *command = under_valgrind ? valgrind : valgrind + 4;
    int ends[2], status;
    size_t length = 0;
    ssize_t got;
    pid_t child;

    assert_int_equal(pipe(ends), 0);
    child = fork();
    if (child == 0) {
        setenv("PRUDENCE_OPTIONS", bug->options, 1);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        execvp(command[0], command);
        _exit(127);
    }
    close(ends[1]);
    while ((got = read(ends[0], output + length, size - 1 - length)) > 0)
        length += (size_t)got;
    output[length] = '\0';
    close(ends[0]);
    waitpid(child, &status, 0);
    return status;
}

static void expect_report(const struct bug *bug)
{
    const char *expected = under_valgrind ? bug->valgrind : bug->asan;
    static char output[1 << 18];
    int status = run(bug, output, sizeof output);

    if (expected ? !strstr(output, expected) || status == 0 : status != 0)
        fail_msg("%s: expected %s, got status %#x: %s", bug->name,
                 expected ? expected : "no report", (unsigned)status, output);
    /* Allowed accesses must come first. */
    if (expected && strstr(output, STILL) && strstr(output, expected) < strstr(output, STILL))
        fail_msg("%s: reported too early: %s", bug->name, output);
}

static bool there_is_valgrind(void)
{
#ifdef PRUDENCE_VALGRIND
    return WEXITSTATUS(system("valgrind --version >/dev/null 2>&1")) == 0;
#else
    return false;
#endif
}

TEST(each_bug)
{
#ifdef __SANITIZE_THREAD__
    skip();
#endif
    if (under_valgrind && !there_is_valgrind())
        skip();
    for (unsigned i = 0; i < sizeof bugs / sizeof bugs[0]; i++)
        if (!under_valgrind ||
            ((is_first(&bugs[i]) || deep_stride(2) == 1) && (!bugs[i].valgrind || !checks_inside)))
            expect_report(&bugs[i]);
}

int main(int argc, char **argv)
{
    program = argv[0];
    if (argc == 1)
        return suite_run(NULL, NULL);
    for (unsigned i = 0; i < sizeof bugs / sizeof bugs[0]; i++) {
        if (strcmp(argv[1], bugs[i].name) == 0) {
            bugs[i].run();
            return 0;
        }
    }
    fprintf(stderr, "no such bug: %s\n", argv[1]);
    return 1;
}
