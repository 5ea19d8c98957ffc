/* SPDX-License-Identifier: MIT */
/*
 * Faults in the use of memory, one at a time (test_faults.py): `program_faults` lists them, `program_faults NUMBER` commits
 * one. The allocator is the one that is preloaded. It has caught the fault if it ends the process by a signal. Otherwise
 * the exit status says what became of it: the fault had no effect, or it was missed, or this allocator has no such
 * function.
 *
 * Every fault is committed in the plainest way: a few blocks of the same size around the one that is misused, and
 * after it some allocations and frees of that size, in which an allocator may notice what happened. Compiled without
 * optimization, because a compiler leaves out what it knows to be undefined.
 */
#include <dlfcn.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include <new>

namespace
{

enum { NO_EFFECT = 10, MISSED = 11, NO_SUCH_FUNCTION = 12 };

typedef unsigned char byte;

const size_t LARGE = 256 << 10;
const byte SECRET = 0xa7;

char static_bytes[256];

[[noreturn]] void ends(int status)
{
    _Exit(status);
}

/* Ends as a program does: functions at exit may still notice the fault. */
[[noreturn]] void exits_missed()
{
    exit(MISSED);
}

byte *opaque(void *pointer)
{
    static void *volatile kept;

    kept = pointer;
    return static_cast<byte *>(kept);
}

byte *block(size_t size)
{
    return opaque(malloc(size));
}

/* One between others. */
byte *middle_block(size_t size)
{
    byte *object = nullptr;

    for (int i = 0; i < 9; i++) {
        byte *made = block(size);

        if (i == 4)
            object = made;
    }
    return object;
}

/* In these an allocator may notice what was done to free memory of this size. */
void use_the_size(size_t size)
{
    static void *made[400];
    const int count = size < LARGE / 4 ? 400 : 5;

    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < count; i++)
            made[i] = malloc(size);
        for (int i = 0; i < count; i++)
            free(made[i]);
    }
}

bool has_secret(const byte *object, size_t size)
{
    size_t found = 0;

    for (size_t i = 0; i < size; i++)
        found += object[i] == SECRET;
    return found >= size / 2;
}

[[noreturn]] void ends_by(const byte *object, size_t size)
{
    ends(has_secret(object, size) ? MISSED : NO_EFFECT);
}

template <typename Function> Function *of_prudence(const char *name)
{
    void *found = dlsym(RTLD_DEFAULT, name);

    if (!found)
        ends(NO_SUCH_FUNCTION);
    return reinterpret_cast<Function *>(found);
}

/* ------------------------------------------------------------------------------------ double frees */

void twice(size_t size, size_t)
{
    byte *object = middle_block(size);

    free(object);
    free(object);
    use_the_size(size);
}

void twice_around_another(size_t size, size_t)
{
    byte *object = middle_block(size), *other = block(size);

    free(object);
    free(other);
    free(object);
    use_the_size(size);
}

void twice_around_many(size_t size, size_t)
{
    byte *object = middle_block(size), *others[40];

    for (byte *&other : others)
        other = block(size);
    free(object);
    for (byte *other : others)
        free(other);
    free(object);
    use_the_size(size);
}

void twice_around_allocations(size_t size, size_t)
{
    byte *object = middle_block(size);

    free(object);
    for (int i = 0; i < 3; i++)
        block(size);
    free(object);
    use_the_size(size);
}

void aligned_twice(size_t size, size_t alignment)
{
    byte *object = opaque(aligned_alloc(alignment, size));

    free(object);
    free(object);
    use_the_size(size);
}

void calloc_twice(size_t size, size_t)
{
    byte *object = opaque(calloc(1, size));

    free(object);
    free(object);
    use_the_size(size);
}

void delete_twice(size_t size, size_t)
{
    byte *object = opaque(::operator new(size));

    ::operator delete(object);
    ::operator delete(object);
    use_the_size(size);
}

void delete_array_twice(size_t size, size_t)
{
    byte *object = opaque(::operator new[](size));

    ::operator delete[](object);
    ::operator delete[](object);
    use_the_size(size);
}

void delete_and_free(size_t size, size_t)
{
    byte *object = opaque(::operator new(size));

    ::operator delete(object);
    free(object);
    use_the_size(size);
}

void free_what_realloc_moved(size_t size, size_t)
{
    byte *object = middle_block(size), *moved = opaque(realloc(object, size * 8));

    if (moved == object)
        ends(NO_EFFECT);
    free(object);
    use_the_size(size);
}

/* ------------------------------------------------------------------------------------ invalid frees */

void free_interior(size_t size, size_t offset)
{
    byte *object = middle_block(size);

    free(object + offset);
    use_the_size(size);
}

void free_before(size_t size, size_t offset)
{
    byte *object = middle_block(size);

    free(object - offset);
    use_the_size(size);
}

void free_end(size_t size, size_t)
{
    byte *object = middle_block(size);

    free(object + size);
    use_the_size(size);
}

void free_stack(size_t, size_t offset)
{
    alignas(16) byte room[256] = {0};

    free(opaque(room) + offset);
    use_the_size(64);
}

void free_static(size_t, size_t)
{
    free(opaque(static_bytes) + 16);
    use_the_size(64);
}

void free_code(size_t, size_t)
{
    free(opaque(reinterpret_cast<void *>(&use_the_size)));
}

void free_number(size_t number, size_t)
{
    free(opaque(reinterpret_cast<void *>(number)));
}

void free_mapping(size_t size, size_t offset)
{
    byte *mapped = static_cast<byte *>(
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));

    free(opaque(mapped) + offset);
    use_the_size(64);
}

/* ---------------------------------------------------------------------------- writes past either end */

void overflow(size_t size, size_t count)
{
    byte *object = middle_block(size);

    memset(object + size, 1, count);
    free(object);
}

void overflow_calloc(size_t size, size_t count)
{
    byte *object = opaque(calloc(1, size));

    memset(object + size, 1, count);
    free(object);
}

void overflow_aligned(size_t size, size_t alignment)
{
    byte *object = opaque(aligned_alloc(alignment, size));

    object[size] = 1;
    free(object);
}

void overflow_grown(size_t size, size_t count)
{
    byte *object = opaque(realloc(middle_block(size / 2), size));

    memset(object + size, 1, count);
    free(object);
}

void overflow_shrunk(size_t size, size_t smaller)
{
    byte *object = opaque(realloc(middle_block(size), smaller));

    object[smaller] = 1;
    free(object);
}

void overflow_new(size_t size, size_t count)
{
    byte *object = opaque(::operator new(size));

    memset(object + size, 1, count);
    ::operator delete(object);
}

void overflow_new_array(size_t size, size_t count)
{
    byte *object = opaque(new byte[size]);

    memset(object + size, 1, count);
    delete[] object;
}

void overflow_string(size_t size, size_t)
{
    char *object = reinterpret_cast<char *>(middle_block(size));

    memset(object, 'x', size);
    object[size] = 0;
    free(object);
}

void overflow_at(size_t size, size_t distance)
{
    byte *object = middle_block(size);

    object[size + distance] = 1;
    free(object);
}

void underflow(size_t size, size_t count)
{
    byte *object = middle_block(size);

    memset(object - count, 1, count);
    free(object);
}

void underflow_array(size_t size, size_t count)
{
    byte *object = nullptr;

    for (int i = 0; i < 5; i++)
        object = opaque(new byte[size]);
    memset(object - count, 1, count);
    delete[] object;
}

/* ----------------------------------------------------------------------------- writes to free memory */

void write_after_free(size_t size, size_t offset)
{
    byte *object = middle_block(size);

    free(object);
    object[offset] = 1;
    use_the_size(size);
}

void write_after_free_at_exit(size_t size, size_t offset)
{
    byte *object = middle_block(size);

    free(object);
    object[offset] = 1;
    exits_missed();
}

void write_after_free_of_all(size_t size, size_t)
{
    byte *objects[30];

    for (byte *&object : objects)
        object = block(size);
    for (byte *object : objects)
        free(object);
    for (byte *object : objects)
        memset(object, 1, size);
    use_the_size(size);
}

void write_after_delete(size_t size, size_t offset)
{
    byte *object = opaque(::operator new(size));

    ::operator delete(object);
    object[offset] = 1;
    use_the_size(size);
}

void write_after_realloc(size_t size, size_t offset)
{
    byte *object = middle_block(size);

    if (realloc(object, size * 8) == object)
        ends(NO_EFFECT);
    object[offset] = 1;
    use_the_size(size);
}

void write_after_aligned_free(size_t size, size_t alignment)
{
    byte *object = opaque(aligned_alloc(alignment, size));

    free(object);
    object[size / 2] = 1;
    for (int i = 0; i < 400; i++)
        opaque(aligned_alloc(alignment, size));
}

/* The last owner's pointer writes into what is the next owner's. */
void write_after_reuse(size_t size, size_t)
{
    byte *object = middle_block(size), *next;

    free(object);
    next = block(size);
    memset(next, 0, size);
    memset(object, SECRET, size);
    if (!has_secret(next, size))
        use_the_size(size);
}

/* ------------------------------------------------------------------------- reads of others' contents */

void read_after_free(size_t size, size_t)
{
    byte *object = middle_block(size);

    memset(object, SECRET, size);
    free(object);
    ends_by(object, size);
}

void read_new_block(size_t size, size_t)
{
    byte *object = middle_block(size);

    memset(object, SECRET, size);
    free(object);
    ends_by(block(size), size);
}

void read_new_aligned(size_t size, size_t alignment)
{
    byte *object = opaque(aligned_alloc(alignment, size));

    memset(object, SECRET, size);
    free(object);
    ends_by(opaque(aligned_alloc(alignment, size)), size);
}

void read_new_object(size_t size, size_t)
{
    byte *object = opaque(::operator new(size));

    memset(object, SECRET, size);
    ::operator delete(object);
    ends_by(opaque(::operator new(size)), size);
}

void read_after_realloc(size_t size, size_t)
{
    byte *object = middle_block(size);

    memset(object, SECRET, size);
    if (realloc(object, size * 8) == object)
        ends(NO_EFFECT);
    ends_by(object, size);
}

void read_what_shrinking_left(size_t size, size_t smaller)
{
    byte *object = middle_block(size);

    memset(object, SECRET, size);
    object = opaque(realloc(object, smaller));
    ends_by(object + smaller, size - smaller);
}

void read_past_end(size_t size, size_t distance)
{
    byte *object = middle_block(size);

    for (int i = 0; i < 9; i++)
        memset(block(size), SECRET, size);
    ends(object[size + distance] == SECRET ? MISSED : NO_EFFECT);
}

/* -------------------------------------------------------------------------------- blocks of no bytes */

void nothing_written(size_t offset, size_t)
{
    block(0)[offset] = 1;
    use_the_size(0);
}

void nothing_read(size_t offset, size_t)
{
    byte *object = block(0);
    volatile byte seen = object[offset];

    (void)seen;
}

void nothing_of_calloc_written(size_t, size_t)
{
    opaque(calloc(0, 8))[0] = 1;
    use_the_size(0);
}

void nothing_of_new_written(size_t, size_t)
{
    opaque(::operator new(0))[0] = 1;
    use_the_size(0);
}

void nothing_twice(size_t, size_t)
{
    byte *object = block(0);

    free(object);
    free(object);
    use_the_size(0);
}

/* ---------------------------------------------------------------------------------- sized delete */

void sized_delete(size_t size, size_t said)
{
    byte *object = opaque(::operator new(size));

    ::operator delete(object, said);
    use_the_size(size);
    use_the_size(said);
}

void sized_delete_array(size_t size, size_t said)
{
    byte *object = opaque(::operator new[](size));

    ::operator delete[](object, said);
    use_the_size(size);
    use_the_size(said);
}

void sized_delete_twice(size_t size, size_t)
{
    byte *object = opaque(::operator new(size));

    ::operator delete(object, size);
    ::operator delete(object, size);
    use_the_size(size);
}

/* ------------------------------------------------------------------------- questions about no block */

void size_of_freed(size_t size, size_t)
{
    byte *object = middle_block(size);

    free(object);
    if (!malloc_usable_size(object))
        ends(NO_EFFECT);
}

void size_of_interior(size_t size, size_t offset)
{
    if (!malloc_usable_size(middle_block(size) + offset))
        ends(NO_EFFECT);
}

void size_of_stack(size_t, size_t)
{
    alignas(16) byte room[64] = {0};

    if (!malloc_usable_size(opaque(room) + 16))
        ends(NO_EFFECT);
}

void realloc_freed(size_t size, size_t wanted)
{
    byte *object = middle_block(size);

    free(object);
    opaque(realloc(object, wanted));
    use_the_size(size);
}

void realloc_interior(size_t size, size_t offset)
{
    opaque(realloc(middle_block(size) + offset, size * 2));
    use_the_size(size);
}

void realloc_stack(size_t size, size_t)
{
    alignas(16) byte room[256] = {0};

    opaque(realloc(opaque(room) + 16, size));
    use_the_size(size);
}

/* ------------------------------------------------------------------------------- impossible sizes */

[[noreturn]] void refused_is_right(const void *object)
{
    ends(object ? MISSED : NO_EFFECT);
}

void size_impossible(size_t size, size_t)
{
    refused_is_right(malloc(opaque(nullptr) ? 0 : size));
}

void calloc_impossible(size_t count, size_t size)
{
    refused_is_right(calloc(count, size));
}

void realloc_impossible(size_t size, size_t)
{
    refused_is_right(realloc(block(100), size));
}

void reallocarray_impossible(size_t count, size_t size)
{
    refused_is_right(reallocarray(block(100), count, size));
}

void aligned_impossible(size_t alignment, size_t size)
{
    refused_is_right(aligned_alloc(alignment, size));
}

void new_impossible(size_t size, size_t)
{
    refused_is_right(::operator new(size, std::nothrow));
}

/* --------------------------------------------------------------------- deferred objects, and caches */

typedef void frees(void *);
typedef void waits();
typedef struct prudence_cache *creates(const char *, size_t, const void *);
typedef void *allocates(struct prudence_cache *);
typedef void frees_to(struct prudence_cache *, void *);

void defer(byte *object)
{
    of_prudence<frees>("prudence_free_deferred")(object);
}

/* Now all that was deferred is safe, and merged where its slab is used. */
void grace_period(size_t size)
{
    of_prudence<waits>("prudence_synchronize")();
    use_the_size(size);
    of_prudence<size_t()>("prudence_trim")();
}

void defer_twice(size_t size, size_t)
{
    byte *object = middle_block(size);

    defer(object);
    defer(object);
    grace_period(size);
}

void defer_twice_around_grace_period(size_t size, size_t)
{
    byte *object = middle_block(size);

    defer(object);
    of_prudence<waits>("prudence_synchronize")();
    defer(object);
    grace_period(size);
}

void free_then_defer(size_t size, size_t)
{
    byte *object = middle_block(size);

    free(object);
    defer(object);
    grace_period(size);
}

void defer_then_free(size_t size, size_t)
{
    byte *object = middle_block(size);

    defer(object);
    free(object);
    grace_period(size);
}

void defer_interior(size_t size, size_t offset)
{
    defer(middle_block(size) + offset);
    grace_period(size);
}

void defer_stack(size_t, size_t)
{
    alignas(16) byte room[64] = {0};

    defer(opaque(room) + 16);
}

void write_after_grace_period(size_t size, size_t offset)
{
    byte *object = middle_block(size);

    defer(object);
    grace_period(size);
    object[offset] = 1;
    grace_period(size);
}

void overflow_then_defer(size_t size, size_t count)
{
    byte *object = middle_block(size);

    memset(object + size, 1, count);
    defer(object);
    grace_period(size);
}

void realloc_deferred(size_t size, size_t wanted)
{
    byte *object = middle_block(size);

    defer(object);
    opaque(realloc(object, wanted));
    grace_period(size);
}

void size_of_deferred(size_t size, size_t)
{
    byte *object = middle_block(size);

    defer(object);
    malloc_usable_size(object);
}

void read_after_grace_period(size_t size, size_t)
{
    byte *object = middle_block(size);

    memset(object, SECRET, size);
    defer(object);
    of_prudence<waits>("prudence_synchronize")();
    ends_by(block(size), size);
}

struct prudence_cache *cache(const char *name, size_t size)
{
    return of_prudence<creates>("prudence_cache_create")(name, size, nullptr);
}

byte *of_cache(struct prudence_cache *cache)
{
    byte *object = nullptr;

    for (int i = 0; i < 5; i++)
        object = opaque(of_prudence<allocates>("prudence_cache_alloc")(cache));
    return object;
}

void put(struct prudence_cache *cache, byte *object)
{
    of_prudence<frees_to>("prudence_cache_free")(cache, object);
}

void wrong_cache(size_t size, size_t other)
{
    put(cache("second", other), of_cache(cache("first", size)));
}

void wrong_cache_deferred(size_t size, size_t other)
{
    struct prudence_cache *second = cache("second", other);

    of_prudence<frees_to>("prudence_cache_free_deferred")(second, of_cache(cache("first", size)));
}

void cache_twice(size_t size, size_t)
{
    struct prudence_cache *one = cache("one", size);
    byte *object = of_cache(one);

    put(one, object);
    put(one, object);
}

void cache_overflow(size_t size, size_t count)
{
    struct prudence_cache *one = cache("one", size);
    byte *object = of_cache(one);

    memset(object + size, 1, count);
    put(one, object);
}

void cache_underflow(size_t size, size_t count)
{
    struct prudence_cache *one = cache("one", size);
    byte *object = of_cache(one);

    memset(object - count, 1, count);
    put(one, object);
}

void cache_write_after_free(size_t size, size_t offset)
{
    struct prudence_cache *one = cache("one", size);
    byte *object = of_cache(one);

    put(one, object);
    object[offset] = 1;
    for (int i = 0; i < 100; i++)
        of_cache(one);
}

/* -------------------------------------------------------------------------------------- the table */

struct fault {
    const char *name;
    void (*commit)(size_t, size_t);
    size_t first, second;
    bool of_prudence;
};

/* One row for each size. */
#define SIZES(what, function, second)                                                              \
    {what ", 16 bytes", function, 16, second, false},                                              \
        {what ", 100 bytes", function, 100, second, false},                                        \
        {what ", 1000 bytes", function, 1000, second, false},                                      \
        {what ", 20000 bytes", function, 20000, second, false},                                    \
    {                                                                                              \
        what ", 256 KB", function, LARGE, second, false                                            \
    }
#define THREE_SIZES(what, function, second)                                                        \
    {what ", 24 bytes", function, 24, second, false},                                              \
        {what ", 1000 bytes", function, 1000, second, false},                                      \
    {                                                                                              \
        what ", 256 KB", function, LARGE, second, false                                            \
    }
#define ONE(what, function, first, second)                                                         \
    {                                                                                              \
        what, function, first, second, false                                                       \
    }
#define DEFERRED(what, function, first, second)                                                    \
    {                                                                                              \
        what, function, first, second, true                                                        \
    }

const fault faults[] = {
    SIZES("double free at once", twice, 0),
    SIZES("double free around another free", twice_around_another, 0),
    THREE_SIZES("double free around 40 frees", twice_around_many, 0),
    THREE_SIZES("double free around 3 allocations", twice_around_allocations, 0),
    ONE("double free, aligned to 64", aligned_twice, 192, 64),
    ONE("double free, aligned to 4096", aligned_twice, 8192, 4096),
    ONE("double free, aligned to 1 MB", aligned_twice, 1 << 20, 1 << 20),
    ONE("double free, calloc", calloc_twice, 200, 0),
    ONE("double delete, 40 bytes", delete_twice, 40, 0),
    ONE("double delete, 256 KB", delete_twice, LARGE, 0),
    ONE("double delete[]", delete_array_twice, 400, 0),
    ONE("delete, then free", delete_and_free, 40, 0),
    ONE("sized delete twice", sized_delete_twice, 40, 0),
    THREE_SIZES("free of what realloc has moved", free_what_realloc_moved, 0),
    ONE("double free, no bytes", nothing_twice, 0, 0),

    ONE("free 16 bytes behind the start, 100 bytes", free_interior, 100, 16),
    ONE("free 8 bytes behind the start, 100 bytes", free_interior, 100, 8),
    ONE("free 1 byte behind the start, 100 bytes", free_interior, 100, 1),
    ONE("free 16 bytes behind the start, 20000 bytes", free_interior, 20000, 16),
    ONE("free 16 bytes behind the start, 256 KB", free_interior, LARGE, 16),
    ONE("free a page behind the start, 256 KB", free_interior, LARGE, 4096),
    ONE("free 64 KB behind the start, 256 KB", free_interior, LARGE, 65536),
    ONE("free 16 bytes before the start, 100 bytes", free_before, 100, 16),
    ONE("free 16 bytes before the start, 256 KB", free_before, LARGE, 16),
    ONE("free of the end, 104 bytes", free_end, 104, 0),
    ONE("free of the end, 256 KB", free_end, LARGE, 0),
    ONE("free of the stack", free_stack, 0, 16),
    ONE("free of the stack, unaligned", free_stack, 0, 17),
    ONE("free of a static variable", free_static, 0, 0),
    ONE("free of a function", free_code, 0, 0),
    ONE("free of the number 1", free_number, 1, 0),
    ONE("free of a page nobody mapped", free_number, 0x10000, 0),
    ONE("free of an address that cannot be", free_number, 0x7f00000000000000, 0),
    ONE("free of a mapping", free_mapping, 1 << 20, 0),
    ONE("free inside a mapping", free_mapping, 1 << 20, 4112),

    SIZES("overflow by 1 byte", overflow, 1),
    SIZES("overflow by 8 bytes", overflow, 8),
    SIZES("overflow by 64 bytes", overflow, 64),
    ONE("overflow by 1 byte, 24 bytes", overflow, 24, 1),
    ONE("overflow by 1 byte, 8 bytes", overflow, 8, 1),
    ONE("overflow by a page, 256 KB", overflow, LARGE, 4096),
    ONE("overflow by 1 byte, 256 KB and 1", overflow, LARGE + 1, 1),
    ONE("overflow by 8 bytes, 100000 bytes", overflow, 100000, 8),
    ONE("overflow by 1 byte, calloc, 100 bytes", overflow_calloc, 100, 1),
    ONE("overflow by 1 byte, calloc, 256 KB", overflow_calloc, LARGE, 1),
    ONE("overflow by 1 byte, aligned to 64", overflow_aligned, 192, 64),
    ONE("overflow by 1 byte, aligned to 4096", overflow_aligned, 8192, 4096),
    ONE("overflow by 1 byte, grown to 100", overflow_grown, 100, 1),
    ONE("overflow by 8 bytes, grown to 2000", overflow_grown, 2000, 8),
    ONE("overflow by 1 byte, grown to 256 KB", overflow_grown, LARGE, 1),
    ONE("overflow by 1 byte, shrunk to 800", overflow_shrunk, 1000, 800),
    ONE("overflow by 1 byte, shrunk to 20", overflow_shrunk, 1000, 20),
    ONE("overflow by 1 byte, new", overflow_new, 40, 1),
    ONE("overflow by 8 bytes, new[]", overflow_new_array, 100, 8),
    ONE("overflow by 1 byte, new[] of 256 KB", overflow_new_array, LARGE, 1),
    ONE("overflow by the zero of a string, 24 bytes", overflow_string, 24, 0),
    ONE("overflow by the zero of a string, 256 KB", overflow_string, LARGE, 0),
    ONE("write 30 bytes behind the end, 300 bytes", overflow_at, 300, 30),
    ONE("write 2000 bytes behind the end, 256 KB", overflow_at, LARGE, 2000),
    ONE("underflow by 1 byte, 24 bytes", underflow, 24, 1),
    ONE("underflow by 8 bytes, 100 bytes", underflow, 100, 8),
    ONE("underflow by 16 bytes, 1000 bytes", underflow, 1000, 16),
    ONE("underflow by 1 byte, 20000 bytes", underflow, 20000, 1),
    ONE("underflow by 1 byte, 256 KB", underflow, LARGE, 1),
    ONE("underflow by a page, 256 KB", underflow, LARGE, 4096),
    ONE("underflow by 8 bytes, new[]", underflow_array, 100, 8),

    SIZES("write after free, first byte", write_after_free, 0),
    ONE("write after free, last byte, 100 bytes", write_after_free, 100, 99),
    ONE("write after free, in the middle, 20000 bytes", write_after_free, 20000, 10000),
    ONE("write after free, last byte, 256 KB", write_after_free, LARGE, LARGE - 1),
    ONE("write after free, then exit, 24 bytes", write_after_free_at_exit, 24, 20),
    ONE("write after free, then exit, 1000 bytes", write_after_free_at_exit, 1000, 500),
    ONE("write after free, then exit, 256 KB", write_after_free_at_exit, LARGE, 70000),
    ONE("write after free of 30 blocks", write_after_free_of_all, 100, 0),
    ONE("write after delete, 40 bytes", write_after_delete, 40, 8),
    ONE("write after delete, 256 KB", write_after_delete, LARGE, 8),
    ONE("write to what realloc has moved, 100 bytes", write_after_realloc, 100, 50),
    ONE("write to what realloc has moved, 256 KB", write_after_realloc, LARGE, 50),
    ONE("write after free, aligned to 64", write_after_aligned_free, 192, 64),
    ONE("write after free and reuse, 16 bytes", write_after_reuse, 16, 0),
    ONE("write after free and reuse, 1000 bytes", write_after_reuse, 1000, 0),
    ONE("write after free and reuse, 256 KB", write_after_reuse, LARGE, 0),

    SIZES("read after free", read_after_free, 0),
    SIZES("read of a new block", read_new_block, 0),
    ONE("read of a new block, aligned to 64", read_new_aligned, 192, 64),
    ONE("read of a new block, aligned to 4096", read_new_aligned, 8192, 4096),
    ONE("read of a new object", read_new_object, 40, 0),
    ONE("read of what realloc has moved", read_after_realloc, 1000, 0),
    ONE("read of what shrinking has left", read_what_shrinking_left, 1000, 600),
    ONE("read behind the end, 96 bytes", read_past_end, 96, 16),
    ONE("read behind the end, 256 KB", read_past_end, LARGE, 16),

    ONE("write to no bytes", nothing_written, 0, 0),
    ONE("write 8 bytes behind no bytes", nothing_written, 8, 0),
    ONE("read of no bytes", nothing_read, 0, 0),
    ONE("read 15 bytes behind no bytes", nothing_read, 15, 0),
    ONE("write to no bytes of calloc", nothing_of_calloc_written, 0, 0),
    ONE("write to no bytes of new", nothing_of_new_written, 0, 0),

    ONE("sized delete, smaller, 200 as 100", sized_delete, 200, 100),
    ONE("sized delete, larger, 40 as 80", sized_delete, 40, 80),
    ONE("sized delete, larger, 16 as 1", sized_delete, 16, 1),
    ONE("sized delete, 100 as 101", sized_delete, 100, 101),
    ONE("sized delete, small as 256 KB", sized_delete, 100, LARGE),
    ONE("sized delete, 256 KB as small", sized_delete, LARGE, 100),
    ONE("sized delete, 256 KB as 512 KB", sized_delete, LARGE, 2 * LARGE),
    ONE("sized delete, 256 KB as 128 KB", sized_delete, LARGE, LARGE / 2),
    ONE("sized delete[], smaller", sized_delete_array, 1000, 400),

    THREE_SIZES("malloc_usable_size of a freed block", size_of_freed, 0),
    ONE("malloc_usable_size behind the start", size_of_interior, 100, 16),
    ONE("malloc_usable_size behind the start, 256 KB", size_of_interior, LARGE, 4096),
    ONE("malloc_usable_size of the stack", size_of_stack, 0, 0),
    ONE("realloc of a freed block, larger, 24 bytes", realloc_freed, 24, 200),
    ONE("realloc of a freed block, smaller, 1000 bytes", realloc_freed, 1000, 100),
    ONE("realloc of a freed block, the same, 100 bytes", realloc_freed, 100, 100),
    ONE("realloc of a freed block, 256 KB", realloc_freed, LARGE, 2 * LARGE),
    ONE("realloc behind the start, 100 bytes", realloc_interior, 100, 16),
    ONE("realloc behind the start, 256 KB", realloc_interior, LARGE, 4096),
    ONE("realloc of the stack", realloc_stack, 300, 0),

    ONE("malloc of -1 bytes", size_impossible, SIZE_MAX, 0),
    ONE("malloc of -100 bytes", size_impossible, SIZE_MAX - 99, 0),
    ONE("malloc of half of all addresses", size_impossible, SIZE_MAX / 2 + 1, 0),
    ONE("calloc that wraps to 0", calloc_impossible, SIZE_MAX / 2 + 1, 2),
    ONE("calloc that wraps to little", calloc_impossible, SIZE_MAX / 4 + 2, 4),
    ONE("realloc to -1 bytes", realloc_impossible, SIZE_MAX, 0),
    ONE("reallocarray that wraps", reallocarray_impossible, SIZE_MAX / 8 + 2, 8),
    ONE("aligned_alloc of -1 bytes", aligned_impossible, 64, SIZE_MAX - 10),
    ONE("new of -8 bytes", new_impossible, SIZE_MAX - 7, 0),

    DEFERRED("deferred twice, 100 bytes", defer_twice, 100, 0),
    DEFERRED("deferred twice, 256 KB", defer_twice, LARGE, 0),
    DEFERRED("deferred twice, around a grace period", defer_twice_around_grace_period, 100, 0),
    DEFERRED("deferred twice, around a grace period, 256 KB", defer_twice_around_grace_period,
             LARGE, 0),
    DEFERRED("freed, then deferred, 100 bytes", free_then_defer, 100, 0),
    DEFERRED("freed, then deferred, 256 KB", free_then_defer, LARGE, 0),
    DEFERRED("deferred, then freed, 100 bytes", defer_then_free, 100, 0),
    DEFERRED("deferred, then freed, 256 KB", defer_then_free, LARGE, 0),
    DEFERRED("deferred 16 bytes behind the start", defer_interior, 100, 16),
    DEFERRED("the stack is deferred", defer_stack, 0, 0),
    DEFERRED("write after the grace period, 100 bytes", write_after_grace_period, 100, 50),
    DEFERRED("write after the grace period, 256 KB", write_after_grace_period, LARGE, 50),
    DEFERRED("overflow by 1 byte, then deferred, 100 bytes", overflow_then_defer, 100, 1),
    DEFERRED("overflow by 1 byte, then deferred, 256 KB", overflow_then_defer, LARGE, 1),
    DEFERRED("overflow by 8 bytes, then deferred, 1000 bytes", overflow_then_defer, 1000, 8),
    DEFERRED("realloc of a deferred block", realloc_deferred, 100, 300),
    DEFERRED("malloc_usable_size of a deferred block", size_of_deferred, 100, 0),
    DEFERRED("read of a new block that was deferred", read_after_grace_period, 100, 0),
    DEFERRED("free to a wrong cache", wrong_cache, 64, 128),
    DEFERRED("free to a wrong cache of the same size", wrong_cache, 64, 64),
    DEFERRED("deferred to a wrong cache", wrong_cache_deferred, 64, 64),
    DEFERRED("double free to a cache", cache_twice, 64, 0),
    DEFERRED("overflow by 1 byte, of a cache", cache_overflow, 64, 1),
    DEFERRED("underflow by 8 bytes, of a cache", cache_underflow, 64, 8),
    DEFERRED("write after free, of a cache", cache_write_after_free, 64, 32),
};

} // namespace

int main(int argc, char **argv)
{
    const size_t count = sizeof faults / sizeof faults[0];
    size_t number = argc == 2 ? strtoul(argv[1], nullptr, 10) : 0;

    if (argc < 2) {
        for (const fault &one : faults)
            printf("%c %s\n", one.of_prudence ? 'p' : 'm', one.name);
        return 0;
    }
    if (argc > 2 || number >= count) {
        fprintf(stderr, "usage: program_faults [NUMBER below %zu]\n", count);
        return 2;
    }
    prctl(PR_SET_DUMPABLE, 0); /* no core files */
    faults[number].commit(faults[number].first, faults[number].second);
    exits_missed();
}
