/* SPDX-License-Identifier: MIT */
/*
 * The bytes of the input are a sequence of calls of the public interface by one thread. A model
 * knows every live block, and every block that was deferred in the read-side section that still
 * runs. The target checks contents (each block has a different pattern), alignment, that the usable
 * bytes of blocks do not overlap, that deferred blocks do not change before the section ends,
 * results and errno of calls, and at the end that no object remains.
 *
 * Memory is bounded by BLOCKS blocks and LIVE_MAX bytes. All larger sizes must fail; half of them
 * are close to sizes at which arithmetic wraps.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include <prudence/prudence.h>
#include <prudence/rcu.h>
#include <prudence/stats.h>

#include "fuzz/fuzz.h"
#include "os_page_map.h"
#include "support/boundary_sizes.h"

#define BLOCKS    64
#define DEFERRED  256
#define CACHES    4
#define BULK      24
#define DEPTH_MAX 3
#define CALLS_MAX 2000
#define LIVE_MAX  ((size_t)8 << 20)
#define DENSE     2048 /* bytes at each end of a block that are all checked */
#define SPARSE    1021 /* distance between the other checked bytes */

/* Size of a process's address space, so larger blocks must fail. */
#define ADDRESS_MAX ((size_t)1 << PAGE_MAP_ADDRESS_BITS)

struct block {
    unsigned char *at; /* NULL: an unused slot */
    size_t size;       /* requested */
    size_t usable;
    size_t alignment;
    uint64_t seed; /* selects the pattern; 0: the constructor's contents */
    int cache;     /* number of the cache; -1: not of one of `caches` */
};

struct cache {
    struct prudence_cache *cache; /* NULL: an unused slot */
    size_t size;
    size_t alignment;
    bool constructed;
};

/* The model. */
static struct block blocks[BLOCKS];     /* live */
static struct block deferred[DEFERRED]; /* deferred in the section that runs */
static unsigned deferred_count;
static struct cache caches[CACHES];
static unsigned depth;  /* number of nested sections */
static bool limited;    /* the option limit is set */
static size_t live;     /* bytes */
static uint64_t serial; /* number of patterns so far */

/* The input. */
static const uint8_t *input, *input_end;

static unsigned next8(void)
{
    return input < input_end ? *input++ : 0;
}

static unsigned next16(void)
{
    unsigned high = next8();

    return high << 8 | next8();
}

/* -------------------------------------------------------------------------------- patterns */

static unsigned char pattern(uint64_t seed, size_t i)
{
    if (!seed)
        return 0x5c;
    return (unsigned char)((seed + i) * UINT64_C(0x9e3779b97f4a7c15) >> 56);
}

static size_t step(size_t i, size_t size)
{
    return i < DENSE || i + DENSE >= size ? 1
           : size - DENSE - i < SPARSE    ? size - DENSE - i
                                          : SPARSE;
}

static void fill(struct block *block)
{
    block->seed = ++serial * 4099 ^ (uintptr_t)block->at;
    for (size_t i = 0; i < block->usable; i += step(i, block->usable))
        block->at[i] = pattern(block->seed, i);
}

/* Checks the first `size` bytes of a block that fill() wrote when the block had `usable` bytes. */
static void check_bytes(const struct block *block, size_t size, const char *what)
{
    for (size_t i = 0; i < size; i += step(i, block->usable))
        EXPECT(block->at[i] == pattern(block->seed, i), "%s: byte %zu of %zu (asked for: %zu)",
               what, i, block->usable, block->size);
}

static void check(const struct block *block, const char *what)
{
    check_bytes(block, block->usable, what);
}

static void construct(void *object, void *context)
{
    memset(object, 0x5c, (size_t)(uintptr_t)context);
}

static bool is_constructed(const struct block *block)
{
    return block->cache >= 0 && caches[block->cache].constructed;
}

/* Prepares a block to be freed. An object of a cache with a constructor is constructed again. */
static void check_out(struct block *block)
{
    check(block, "live");
    if (!is_constructed(block))
        return;
    construct(block->at, (void *)(uintptr_t)block->size);
    block->seed = 0;
}

/* ------------------------------------------------------------------------------- the model */

static bool apart(const struct block *a, const struct block *b)
{
    size_t a_bytes = a->usable ? a->usable : 1, b_bytes = b->usable ? b->usable : 1;

    return !b->at || a == b || a->at + a_bytes <= b->at || b->at + b_bytes <= a->at;
}

static void check_apart(const struct block *block)
{
    for (unsigned i = 0; i < BLOCKS; i++)
        EXPECT(apart(block, &blocks[i]), "%p overlaps the live %p", (void *)block->at,
               (void *)blocks[i].at);
    for (unsigned i = 0; i < deferred_count; i++)
        EXPECT(apart(block, &deferred[i]), "%p overlaps the deferred %p", (void *)block->at,
               (void *)deferred[i].at);
}

static void check_bounds(struct block *block)
{
    block->usable = prudence_usable_size(block->at);
    EXPECT(block->usable >= block->size, "%zu of %zu bytes are usable", block->usable, block->size);
    EXPECT((uintptr_t)block->at % block->alignment == 0, "%p is not aligned to %zu",
           (void *)block->at, block->alignment);
    check_apart(block);
}

static struct block *empty_slot(void)
{
    for (unsigned i = 0; i < BLOCKS; i++)
        if (!blocks[i].at)
            return &blocks[i];
    return NULL;
}

/* Returns the live block of `cache` (-2: of any) that the input names, or NULL if there is none. */
static struct block *pick(int cache)
{
    unsigned first = next8();

    for (unsigned i = 0; i < BLOCKS; i++) {
        struct block *block = &blocks[(first + i) % BLOCKS];

        if (block->at && (cache == -2 || block->cache == cache))
            return block;
    }
    return NULL;
}

static struct cache *pick_cache(void)
{
    unsigned first = next8();

    for (unsigned i = 0; i < CACHES; i++)
        if (caches[(first + i) % CACHES].cache)
            return &caches[(first + i) % CACHES];
    return NULL;
}

static int number(const struct cache *cache)
{
    return (int)(cache - caches);
}

/* Checks a new block and enters it in the model. */
static void enter(void *at, size_t size, size_t alignment, int cache)
{
    struct block *block = empty_slot();

    *block = (struct block){.at = at, .size = size, .alignment = alignment, .cache = cache};
    check_bounds(block);
    if (is_constructed(block))
        for (size_t i = 0; i < size; i++)
            EXPECT(block->at[i] == 0x5c, "byte %zu of %zu is not as constructed", i, size);
    fill(block);
    live += block->usable;
}

static void leave(struct block *block)
{
    live -= block->usable;
    *block = (struct block){0};
}

static void leave_sections(void)
{
    for (unsigned i = 0; i < deferred_count; i++)
        check(&deferred[i], "deferred");
    deferred_count = 0;
    while (depth) {
        prudence_read_unlock();
        depth--;
    }
}

static void leave_deferred(struct block *block)
{
    if (depth) {
        struct block *kept = &deferred[deferred_count++];

        *kept = *block;
        if (!kept->seed)
            kept->usable = kept->size; /* the bytes that the constructor wrote */
    }
    leave(block);
}

static bool has_room_to_defer(unsigned count)
{
    return deferred_count + count <= DEFERRED;
}

/* ------------------------------------------------------------------------------------ sizes */

/* Returns a size within 128 bytes of one at which arithmetic may go wrong
 * (support/boundary_sizes.h). If that size could be allocated, returns a small one instead, because
 * of LIVE_MAX. */
static size_t boundary(unsigned which)
{
    size_t size = boundary_sizes[which % (sizeof boundary_sizes / sizeof boundary_sizes[0])];

    size += next8();
    size -= 128;
    return size < ADDRESS_MAX ? size % 70000 : size;
}

static size_t huge_size(void)
{
    unsigned kind = next8();

    if (kind >= 128)
        return boundary(kind - 128);
    switch (kind % 4) {
    case 0:
        return SIZE_MAX - next16();
    case 1:
        return (size_t)PTRDIFF_MAX - 128 + next8();
    case 2:
        return (ADDRESS_MAX << next8() % (64 - PAGE_MAP_ADDRESS_BITS)) + next16();
    default:
        return -(size_t)4096 * next8() - 1 - next8();
    }
}

/* Returns a size that is mostly small, sometimes large, rarely too large to be allocated. */
static size_t some_size(void)
{
    unsigned kind = next8();
    size_t size;

    if (kind < 150)
        return next8();
    if (kind < 215)
        size = next16() % 9000;
    else if (kind < 235)
        size = (size_t)next16() * 33;
    else
        return huge_size();
    return live + size <= LIVE_MAX ? size : size & 255;
}

/* Checks the result and errno of an allocation. Returns true if there is a block. */
static bool got(const void *at, size_t size)
{
    if (size >= ADDRESS_MAX)
        EXPECT(!at, "%zu bytes at %p", size, at);
    if (at)
        return true;
    EXPECT(errno == ENOMEM, "no memory, with errno %d", errno);
    EXPECT(size >= ADDRESS_MAX || limited, "no memory for %zu bytes", size);
    return false;
}

/* ------------------------------------------------------------------------------------ calls */

static void call_malloc(void)
{
    size_t size = some_size();
    void *at;

    if (!empty_slot())
        return;
    errno = 0;
    at = prudence_malloc(size);
    if (got(at, size))
        enter(at, size, 16, -1);
}

static void call_calloc(void)
{
    size_t count = next8() % 4 ? next8() % 16 : some_size(), size = some_size(), bytes;
    unsigned char *at;

    if (__builtin_mul_overflow(count, size, &bytes))
        bytes = SIZE_MAX;
    if (!empty_slot() || (bytes < ADDRESS_MAX && live + bytes > LIVE_MAX))
        return;
    errno = 0;
    at = prudence_calloc(count, size);
    if (!got(at, bytes))
        return;
    for (size_t i = 0; i < bytes; i++)
        EXPECT(!at[i], "byte %zu of %zu is not 0", i, bytes);
    enter(at, bytes, 16, -1);
}

static void call_aligned_alloc(void)
{
    unsigned kind = next8();
    size_t size = some_size(), alignment = (size_t)1 << kind % 17;
    void *at;

    if (!empty_slot())
        return;
    if (kind >= 240) { /* most of these alignments are no powers of two */
        alignment = next16();
        if (alignment > 65536)
            return;
    }
    errno = 0;
    at = prudence_aligned_alloc(alignment, size);
    if (!alignment || alignment & (alignment - 1)) {
        EXPECT(!at && errno == EINVAL, "alignment %zu gives %p, errno %d", alignment, at, errno);
        return;
    }
    if (got(at, size))
        enter(at, size, alignment, -1);
}

static void call_realloc(void)
{
    struct block *block = pick(-1), old;
    size_t size = some_size();
    unsigned char *at;

    if (!block) {
        call_malloc();
        return;
    }
    if (size < ADDRESS_MAX && live - block->usable + size > LIVE_MAX)
        return;
    old = *block;
    check(&old, "before realloc");
    errno = 0;
    at = prudence_realloc(old.at, size);
    if (!got(at, size)) {
        EXPECT(prudence_usable_size(old.at) == old.usable, "a failed realloc changed the block");
        check(&old, "after a failed realloc");
        return;
    }
    live -= old.usable;
    block->at = old.at = at;
    block->size = size;
    block->alignment = 16;
    check_bounds(block);
    check_bytes(&old, size < old.usable ? size : old.usable, "after realloc");
    fill(block);
    live += block->usable;
}

/* Frees a block. Calls that free keep errno. */
static void call_free(void)
{
    struct block *block = pick(-2);
    void *at = block ? block->at : NULL;

    if (block) {
        check_out(block);
        leave(block);
    }
    errno = EXFULL;
    prudence_free(at);
    EXPECT(errno == EXFULL, "errno is %d", errno);
}

static void call_free_sized(void)
{
    struct block *block = pick(-1);
    void *at = block ? block->at : NULL;
    size_t size = block ? block->size : 0;

    if (block) {
        check_out(block);
        leave(block);
    }
    errno = EXFULL;
    prudence_free_sized(at, size);
    EXPECT(errno == EXFULL, "errno is %d", errno);
}

static void call_free_deferred(void)
{
    struct block *block = pick(-2);
    void *at = block ? block->at : NULL;

    if (!has_room_to_defer(1))
        leave_sections();
    if (block) {
        check_out(block);
        leave_deferred(block);
    }
    errno = EXFULL;
    prudence_free_deferred(at);
    EXPECT(errno == EXFULL, "errno is %d", errno);
}

static void call_cache_create(void)
{
    static const char *const names[] = {"a", "fuzz",
                                        "a name that is longer than what is kept of it", ""};
    unsigned kind = next8(), slot = next8() % CACHES;
    const char *name = names[kind & 3];
    struct prudence_cache_attr attr = {.size = sizeof attr};
    size_t size = kind & 4 ? next16() : next8() + 1;
    bool valid = *name && size && size <= 32768;
    struct prudence_cache *cache;

    if (caches[slot].cache)
        return;
    if (kind & 8) {
        attr.alignment = (size_t)1 << next8() % 13;
        if (next8() > 250) {
            attr.alignment = next16();
            valid = valid && attr.alignment <= 4096 && !(attr.alignment & (attr.alignment - 1));
        }
    }
    if (kind & 16)
        attr.flags = PRUDENCE_CACHE_TYPESAFE;
    if (kind & 32) {
        attr.constructor = construct;
        attr.context = (void *)(uintptr_t)size;
    }
    if (kind & 64)
        attr.object_cache_bytes = next16();
    if (kind == 255) {
        attr.reserved = 1;
        valid = false;
    }
    errno = 0;
    cache = prudence_cache_create(name, size, kind & 128 && !(kind & 0x78) ? NULL : &attr);
    if (kind & 128 && !(kind & 0x78))
        attr.constructor = NULL;
    if (!valid)
        EXPECT(!cache && errno == EINVAL, "a bad cache is %p, errno %d", (void *)cache, errno);
    if (!cache) {
        EXPECT(!valid || (limited && errno == ENOMEM), "no cache, errno %d", errno);
        return;
    }
    caches[slot] = (struct cache){
        .cache = cache,
        .size = size,
        .alignment = attr.alignment ? attr.alignment
                     : size < 16    ? 8
                                    : 16,
        .constructed = attr.constructor,
    };
}

static void call_cache_alloc(void)
{
    struct cache *cache = pick_cache();
    void *at;

    if (!cache || !empty_slot() || live + cache->size > LIVE_MAX)
        return;
    errno = 0;
    at = prudence_cache_alloc(cache->cache);
    if (got(at, cache->size))
        enter(at, cache->size, cache->alignment, number(cache));
}

static void call_cache_free(void)
{
    struct cache *cache = pick_cache();
    struct block *block = cache ? pick(number(cache)) : NULL;
    void *at = block ? block->at : NULL;

    if (!cache)
        return;
    if (block) {
        check_out(block);
        leave(block);
    }
    prudence_cache_free(cache->cache, at);
}

static void call_cache_free_deferred(void)
{
    struct cache *cache = pick_cache();
    struct block *block = cache ? pick(number(cache)) : NULL;
    void *at = block ? block->at : NULL;

    if (!cache)
        return;
    if (!has_room_to_defer(1))
        leave_sections();
    if (block) {
        check_out(block);
        leave_deferred(block);
    }
    prudence_cache_free_deferred(cache->cache, at);
}

/* Replaces a live object of the cache, or NULL. */
static void call_cache_replace(void)
{
    struct cache *cache = pick_cache();
    struct block *block = cache ? pick(number(cache)) : NULL;
    void *at = block ? block->at : NULL;

    if (!cache || !empty_slot() || live + cache->size > LIVE_MAX)
        return;
    if (!has_room_to_defer(1))
        leave_sections();
    if (block) {
        check_out(block);
        leave_deferred(block);
    }
    errno = 0;
    at = prudence_cache_replace(cache->cache, at);
    if (got(at, cache->size))
        enter(at, cache->size, cache->alignment, number(cache));
}

static void call_alloc_bulk(void)
{
    struct cache *cache = pick_cache();
    size_t count = next8() % (BULK + 1), done, slots = 0;
    void *objects[BULK];

    for (unsigned i = 0; i < BLOCKS; i++)
        slots += !blocks[i].at;
    if (!cache || slots < count || live + count * cache->size > LIVE_MAX)
        return;
    errno = 0;
    done = prudence_cache_alloc_bulk(cache->cache, count, objects);
    EXPECT(done <= count, "%zu of %zu objects", done, count);
    if (done < count)
        EXPECT(limited && errno == ENOMEM, "%zu of %zu objects, errno %d", done, count, errno);
    for (size_t i = 0; i < done; i++)
        enter(objects[i], cache->size, cache->alignment, number(cache));
}

/* Collects up to BULK objects of `cache` and some NULLs, and returns their number. */
static size_t collect(const struct cache *cache, void **objects, bool defer)
{
    size_t count = next8() % (BULK + 1);

    for (size_t i = 0; i < count; i++) {
        struct block *block = i % 5 == 4 ? NULL : pick(number(cache));

        objects[i] = block ? block->at : NULL;
        if (!block)
            continue;
        check_out(block);
        if (defer)
            leave_deferred(block);
        else
            leave(block);
    }
    return count;
}

static void call_free_bulk(void)
{
    struct cache *cache = pick_cache();
    void *objects[BULK];
    size_t count;

    if (!cache)
        return;
    count = collect(cache, objects, false);
    prudence_cache_free_bulk(cache->cache, count, objects);
}

static void call_free_deferred_bulk(void)
{
    struct cache *cache = pick_cache();
    void *objects[BULK];
    size_t count;

    if (!cache)
        return;
    if (!has_room_to_defer(BULK))
        leave_sections();
    count = collect(cache, objects, true);
    prudence_cache_free_deferred_bulk(cache->cache, count, objects);
}

static void call_cache_shrink(void)
{
    struct cache *cache = pick_cache();

    if (cache)
        prudence_cache_shrink(cache->cache);
}

/* Destroys a cache. Inside a section the library refuses with a message, which goes to
 * /dev/null. */
static int destroy(struct prudence_cache *cache)
{
    int saved, nowhere, error;

    if (!depth)
        return prudence_cache_destroy(cache);
    saved = dup(STDERR_FILENO);
    nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(nowhere, STDERR_FILENO);
    error = prudence_cache_destroy(cache);
    dup2(saved, STDERR_FILENO);
    close(nowhere);
    close(saved);
    return error;
}

static void call_cache_destroy(void)
{
    struct cache *cache = pick_cache();
    bool used = false;
    int error;

    if (!cache)
        return;
    for (unsigned i = 0; i < BLOCKS; i++)
        used |= blocks[i].at && blocks[i].cache == number(cache);
    error = destroy(cache->cache);
    EXPECT(error == (depth  ? EDEADLK
                     : used ? EBUSY
                            : 0),
           "error %d, depth %u, used %d", error, depth, used);
    if (!error)
        *cache = (struct cache){0};
}

static void call_read_lock(void)
{
    if (depth == DEPTH_MAX)
        return;
    prudence_read_lock();
    depth++;
    EXPECT(prudence_read_lock_held(), "a section is not held");
}

static void call_read_unlock(void)
{
    if (depth > 1) {
        prudence_read_unlock();
        depth--;
        return;
    }
    leave_sections();
    EXPECT(!prudence_read_lock_held(), "a section is held");
}

static void call_synchronize(void)
{
    if (depth)
        return;
    if (next8() & 1)
        prudence_synchronize();
    else
        prudence_synchronize_expedited();
}

static void call_trim(void)
{
    prudence_trim();
}

static void option(const char *name, const char *value)
{
    int error = prudence_option_set(name, value);

    EXPECT(!error, "%s=%s gives error %d", name, value, error);
}

static void call_limit(void)
{
    static const char *const values[] = {"0", "0", "1", "64K", "256K", "1M", "2M", "5M"};
    unsigned which = next8() % 8;

    option("limit", values[which]);
    limited = which > 1;
}

static void call_option(void)
{
    static const char *const options[][2] = {
        {"latent_limit", "0"},  {"latent_limit", "1"},   {"latent_limit", "20K"},
        {"latent_limit", "1M"}, {"latent_limit", "32M"}, {"decay", "0"},
        {"decay", "100ms"},     {"retain", "0"},         {"retain", "2M"},
    };
    unsigned which = next8() % (sizeof options / sizeof options[0]);

    option(options[which][0], options[which][1]);
}

static void call_check(void)
{
    for (unsigned i = 0; i < BLOCKS; i++) {
        if (!blocks[i].at)
            continue;
        check(&blocks[i], "live");
        EXPECT(prudence_usable_size(blocks[i].at) == blocks[i].usable, "usable bytes changed");
    }
    for (unsigned i = 0; i < deferred_count; i++)
        check(&deferred[i], "deferred");
    EXPECT(prudence_usable_size(NULL) == 0, "NULL has bytes");
}

/* The common calls are listed more than once. Add new calls at the end, because inputs of the
 * corpus select calls by number. */
static void (*const calls[])(void) = {
    call_malloc,        call_malloc,        call_calloc,
    call_aligned_alloc, call_realloc,       call_realloc,
    call_free,          call_free_sized,    call_free_deferred,
    call_free_deferred, call_cache_create,  call_cache_alloc,
    call_cache_alloc,   call_cache_free,    call_cache_free_deferred,
    call_alloc_bulk,    call_free_bulk,     call_free_deferred_bulk,
    call_cache_shrink,  call_cache_destroy, call_read_lock,
    call_read_unlock,   call_synchronize,   call_trim,
    call_limit,         call_option,        call_check,
    call_cache_replace,
};

/* Frees everything, so that the next input starts from nearly nothing. */
static void clean_up(void)
{
    struct prudence_stats stats;

    call_check();
    leave_sections();
    for (unsigned i = 0; i < BLOCKS; i++) {
        if (!blocks[i].at)
            continue;
        check_out(&blocks[i]);
        prudence_free(blocks[i].at);
        leave(&blocks[i]);
    }
    for (unsigned i = 0; i < CACHES; i++) {
        if (!caches[i].cache)
            continue;
        EXPECT(!prudence_cache_destroy(caches[i].cache), "a cache without objects stays");
        caches[i] = (struct cache){0};
    }
    option("limit", "0");
    option("latent_limit", "32M");
    option("decay", "100ms");
    option("retain", "2M");
    limited = false;
    prudence_trim();
    EXPECT(!prudence_stats(&stats), "no statistics");
    EXPECT(!stats.objects_live, "%llu objects are left", (unsigned long long)stats.objects_live);
    EXPECT(!live, "%zu bytes remain in the model", live);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input = data;
    input_end = data + size;
    serial = 0;
    for (unsigned i = 0; i < CALLS_MAX && input < input_end; i++)
        calls[next8() % (sizeof calls / sizeof calls[0])]();
    clean_up();
    return 0;
}
