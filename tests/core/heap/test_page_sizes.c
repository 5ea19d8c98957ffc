/* SPDX-License-Identifier: MIT */
/*
 * Systems with pages of 16 or 64 KiB, as aarch64 has them. The program runs itself on a fake
 * system, where the library's calls of mmap() and its relatives reach functions of this file. Like
 * a kernel, these refuse an address that is no page's, and round lengths up to whole pages, so that
 * bytes after the range are also unmapped, purged or closed. Live blocks must keep their contents,
 * zeroed memory must be zero, and every call must be for whole pages.
 *
 * The same runs with the option page_size on the real system. Systems with other page sizes are
 * refused, and so are parts of pages.
 *
 * ctest: not-with thread (ThreadSanitizer would not see the mappings)
 * ctest: cost 5
 */
#define _GNU_SOURCE /* mremap */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/random.h"
#include "heap/heap.h"
#include "mapping.h"
#include "support/self.h"
#include "support/slab_test.h"

#define VARIABLE "TEST_PAGE_SIZE"

/* ------------------------------------------------------------------------------ the fake system */

static unsigned long calls, not_whole;
static const char *first_not_whole = "none";

/* Returns the fake page size; 0 means the real system. */
static size_t page_size(void)
{
    static size_t size;
    const char *text;

    if (!size && environ) { /* AddressSanitizer maps before there is an environment */
        text = getenv(VARIABLE);
        size = text ? strtoull(text, NULL, 10) : SIZE_MAX;
    }
    return size == SIZE_MAX ? 0 : size;
}

unsigned long getauxval(unsigned long type)
{
    static unsigned long words[2 * 64];
    long fd, bytes = 0;

    if (type == AT_PAGESZ && page_size())
        return page_size();
    fd = syscall(SYS_openat, AT_FDCWD, "/proc/self/auxv", 0);
    if (fd >= 0) {
        bytes = syscall(SYS_read, fd, words, sizeof words);
        syscall(SYS_close, fd);
    }
    for (long i = 0; i + 1 < bytes / (long)sizeof *words; i += 2)
        if (words[i] == type)
            return words[i + 1];
    return 0;
}

/* Returns the page size required in calls, which is the fake one or the option's. */
static size_t held_to(void)
{
    return page_size() ? page_size() : os_page_size;
}

static void look(const char *name, const void *address, size_t bytes)
{
    calls++;
    if ((((uintptr_t)address | bytes) & (held_to() - 1)) == 0)
        return;
    if (!not_whole++)
        first_not_whole = name;
}

static bool is_no_page(const void *address)
{
    if (!page_size() || ((uintptr_t)address & (page_size() - 1)) == 0)
        return false;
    errno = EINVAL;
    return true;
}

static size_t whole(size_t bytes)
{
    return page_size() ? round_up(bytes, page_size()) : bytes;
}

static void *ask(void *wish, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    return (void *)syscall(SYS_mmap, wish, bytes, protection, flags, fd, offset);
}

/* Maps at any aligned address. */
static void *ask_aligned(size_t bytes, int protection, int flags, int fd, off_t offset)
{
    size_t size = page_size();
    char *room =
        ask(NULL, bytes + size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    char *pages = (char *)round_up((uintptr_t)room, size);

    if (room == MAP_FAILED)
        return room;
    syscall(SYS_munmap, room, (size_t)(pages - room));
    syscall(SYS_munmap, pages + bytes, size - (size_t)(pages - room));
    return ask(pages, bytes, protection, flags | MAP_FIXED, fd, offset);
}

void *mmap(void *wish, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    void *pages;

    if (!page_size())
        return ask(wish, bytes, protection, flags, fd, offset);
    if (flags & MAP_ANONYMOUS)
        look("mmap", wish, bytes);
    bytes = whole(bytes);
    pages = wish ? ask(wish, bytes, protection, flags, fd, offset) : MAP_FAILED;
    if (pages != MAP_FAILED && ((uintptr_t)pages & (page_size() - 1)) == 0)
        return pages;
    if (pages != MAP_FAILED)
        syscall(SYS_munmap, pages, bytes);
    return ask_aligned(bytes, protection, flags, fd, offset);
}

int munmap(void *pages, size_t bytes)
{
    if (page_size())
        look("munmap", pages, bytes);
    return is_no_page(pages) ? -1 : (int)syscall(SYS_munmap, pages, whole(bytes));
}

int mprotect(void *pages, size_t bytes, int protection)
{
    look("mprotect", pages, bytes);
    return is_no_page(pages) ? -1 : (int)syscall(SYS_mprotect, pages, whole(bytes), protection);
}

int madvise(void *pages, size_t bytes, int advice)
{
    look("madvise", pages, bytes);
    return is_no_page(pages) ? -1 : (int)syscall(SYS_madvise, pages, whole(bytes), advice);
}

int mincore(void *pages, size_t bytes, unsigned char *resident)
{
    unsigned char all[65536 / 4096];
    int error;

    look("mincore", pages, bytes);
    if (is_no_page(pages) || whole(bytes) > sizeof all * 4096)
        return -1;
    error = (int)syscall(SYS_mincore, pages, whole(bytes), all);
    *resident = all[0];
    return error;
}

void *mremap(void *pages, size_t bytes, size_t wanted, int flags, ...)
{
    void *target = NULL;
    va_list rest;

    if (flags & MREMAP_FIXED) {
        va_start(rest, flags);
        target = va_arg(rest, void *);
        va_end(rest);
    }
    look("mremap", pages, bytes | wanted | (uintptr_t)target);
    if (is_no_page(pages) || is_no_page(target))
        return MAP_FAILED;
    return (void *)syscall(SYS_mremap, pages, whole(bytes), whole(wanted), flags, target);
}

/* --------------------------------------------------------------------------------- the workload */

#define BLOCKS 400
#define ROUNDS 3000

static struct block {
    unsigned char *bytes;
    size_t size;
    unsigned char tag;
} blocks[BLOCKS];

static struct prudence_cache *cache;
static unsigned char *objects[BLOCKS]; /* from the cache */
static uint64_t randomness = 1;

static size_t below(size_t end)
{
    randomness = random_behind(randomness);
    return (size_t)(randomness >> 16) % end;
}

static size_t some_size(void)
{
    size_t dice = below(100);

    if (dice < 60)
        return 1 + below(9000);
    return dice < 97 ? 4096 * (1 + below(40)) - below(100) : 1 + below((size_t)5 << 20);
}

static void changed(const char *what, const struct block *block, size_t at)
{
    fprintf(stderr, "%s: byte %zu of %zu at %p\n", what, at, block->size, (void *)block->bytes);
    exit(1);
}

/* Checks one byte of each line. */
static void check(const struct block *block, size_t size, unsigned char tag, const char *what)
{
    for (size_t at = 0; at < size; at += 64)
        if (block->bytes[at] != tag)
            changed(what, block, at);
}

static void fill(struct block *block)
{
    block->tag = (unsigned char)(1 + below(255));
    memset(block->bytes, block->tag, block->size);
}

static void begin(struct block *block)
{
    size_t alignment = (size_t)1 << below(19);
    bool zeroed = below(4) == 0;

    block->size = some_size();
    block->bytes = zeroed          ? prudence_calloc(1, block->size)
                   : below(8) == 0 ? prudence_aligned_alloc(alignment, block->size)
                                   : prudence_malloc(block->size);
    if (!block->bytes)
        abort();
    if (zeroed)
        check(block, block->size, 0, "zeroed memory is not zero");
    fill(block);
}

static void end(struct block *block)
{
    check(block, block->size, block->tag, "a live block has changed");
    if (below(3) == 0)
        prudence_free_deferred(block->bytes);
    else
        prudence_free(block->bytes);
    block->bytes = NULL;
}

static void resize(struct block *block)
{
    size_t size = below(3) ? some_size() : block->size + below(300000);
    unsigned char *bytes = prudence_realloc(block->bytes, size);

    if (!bytes)
        abort();
    block->bytes = bytes;
    check(block, min_size(block->size, size), block->tag,
          "a block has changed when it was resized");
    block->size = size;
    fill(block);
}

static void cached(unsigned char **object)
{
    if (!*object) {
        *object = prudence_cache_alloc(cache);
        memset(*object, 7, 24);
    } else if ((*object)[0] != 7 || (*object)[23] != 7) {
        fprintf(stderr, "an object of the cache has changed\n");
        exit(1);
    } else {
        prudence_cache_free(cache, *object);
        *object = NULL;
    }
}

static void step(unsigned round)
{
    struct block *block = &blocks[below(BLOCKS)];

    if (!block->bytes)
        begin(block);
    else if (below(4) == 0)
        resize(block);
    else
        end(block);
    cached(&objects[below(BLOCKS)]);
    if (round % 300 == 0)
        prudence_trim();
}

/* Arrays of CPUs share a page when pages are large. Freeing one must not touch its neighbours. */
static void arrays(void)
{
    struct block some[20];

    for (unsigned i = 0; i < 20; i++) {
        some[i].size = 2 * OS_PAGE_SIZE + 64;
        some[i].bytes = os_arrays_alloc(some[i].size);
        check(&some[i], some[i].size, 0, "arrays are not zero");
        fill(&some[i]);
    }
    for (unsigned i = 0; i < 20; i += 2)
        os_arrays_free(some[i].bytes, some[i].size);
    for (unsigned i = 1; i < 20; i += 2)
        check(&some[i], some[i].size, some[i].tag, "arrays have changed");
}

static int run(void)
{
    cache = prudence_cache_create("pages", 24, NULL);
    for (unsigned round = 0; round < ROUNDS; round++)
        step(round);
    for (unsigned i = 0; i < BLOCKS; i++)
        if (blocks[i].bytes)
            end(&blocks[i]);
    arrays();
    prudence_trim();
    fprintf(stderr, "page size %zu, %s, not whole: %lu (%s)\n", os_page_size,
            calls > 50 ? "many calls" : "few calls", not_whole, first_not_whole);
    return not_whole != 0;
}

/* ---------------------------------------------------------------------------------------- cases */

struct system {
    const char *size, *options;
};

static void run_self(void *argument)
{
    const struct system *system = argument;

    if (system->size)
        setenv(VARIABLE, system->size, 1);
    else
        unsetenv(VARIABLE);
    setenv("PRUDENCE_OPTIONS", system->options, 1);
    self_exec((char *[]){"self", "run", NULL});
    abort();
}

static void expect(const char *size, const char *options, const char *text)
{
    struct system system = {size, options};

    if (size && strtoul(size, NULL, 10) < (unsigned long)sysconf(_SC_PAGESIZE))
        return; /* this system's pages are larger, which cannot be hidden */
    expect_survival(run_self(&system), text);
}

TEST(whole_pages_of_16_and_64_kib)
{
    expect("4096", "", "page size 4096, many calls, not whole: 0");
    expect("16384", "", "page size 16384, many calls, not whole: 0");
    expect("65536", "", "page size 65536, many calls, not whole: 0");
}

TEST(at_once)
{
    expect("16384", "decay=0,retain=0", "page size 16384, many calls, not whole: 0");
    expect("65536", "decay=0,retain=0,rseq=0", "page size 65536, many calls, not whole: 0");
}

/* Some free memory stays, and its size is no multiple of a page. */
TEST(but_a_part)
{
    expect("16384", "decay=0,retain=1000001", "page size 16384, many calls, not whole: 0");
    expect("65536", "decay=0,retain=1000001", "page size 65536, many calls, not whole: 0");
}

/* Uses guard pages, closed blocks, and pages of single objects. */
TEST(with_options_that_look_for_bugs)
{
    expect("16384", "hardened=1", "page size 16384, many calls, not whole: 0");
    expect("65536", "hardened=1", "page size 65536, many calls, not whole: 0");
    expect("65536", "guard=50,check=1,profile=64K", "page size 65536, many calls, not whole: 0");
    expect("16384", "guard_first=16,guard=20,quarantine=1M",
           "page size 16384, many calls, not whole: 0");
}

TEST(by_the_option)
{
    if (sysconf(_SC_PAGESIZE) > 16384)
        skip();
    expect(NULL, "page_size=16K", "page size 16384, many calls, not whole: 0");
    expect(NULL, "page_size=64K,hardened=1", "page size 65536, many calls, not whole: 0");
}

TEST(the_option_takes_no_other_sizes)
{
    static const char expected[] =
        "(expected: a power of two, from the size of the system's pages to 64K)";

    expect("16384", "page_size=4K", "option 'page_size': bad value '4K'");
    expect("16384", "page_size=8192", expected);
    expect("16384", "page_size=24K", expected);
    expect("16384", "page_size=128K", expected);
    expect("16384", "page_size=0", "page size 16384, many calls, not whole: 0");
    expect("16384", "page_size=64K", "page size 65536, many calls, not whole: 0");
    assert_int_equal(prudence_option_set("page_size", "64K"), EBUSY);
}

TEST(other_systems_are_refused)
{
    static const char *const sizes[] = {"131072", "2048", "24576"};

    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
        expect_death(run_self((struct system[]){{sizes[i], ""}}),
                     "the library supports 4096 to 65536 bytes");
}

/* The system would also affect neighbouring bytes, so all builds refuse. */
TEST(parts_of_pages_are_refused)
{
    char *pages = mapping_make(2 * os_page_size, os_page_size);

    expect_death(mapping_purge(pages, os_page_size / 2), "are not whole pages of ");
    expect_death(mapping_purge(pages + 64, os_page_size), "are not whole pages of ");
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "run") == 0)
        return run();
    return suite_run(NULL, NULL);
}
