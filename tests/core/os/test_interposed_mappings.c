/* SPDX-License-Identifier: MIT */
/*
 * A program whose own mmap(), munmap(), madvise(), mremap() and mprotect() replace the C library's
 * and allocate, without regard to reentrance. The library must never call them again inside. They
 * take a lock of the program, and use the heap under that lock.
 *
 * ctest: not-with sanitizers (they have functions of their own in that place)
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "support/slab_test.h"
#include "support/threads.h"

#define RANGES 4096

static bool started; /* mappings before main() are ignored; atomic */
static __thread unsigned depth;
static unsigned deepest; /* atomic */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Mapped ranges that the program was notified of, guarded by `lock`. */
static struct {
    uintptr_t base, end;
} ranges[RANGES];
static unsigned count;

static void note(void)
{
    void *objects[20];

    if (!load_acquire(&started))
        return;
    if (++depth > load_relaxed(&deepest))
        store_relaxed(&deepest, depth);
    for (unsigned i = 0; i < 20; i++)
        objects[i] = prudence_malloc(i * 100 + 10);
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < 20; i++)
        prudence_free(objects[i]);
    prudence_free(prudence_malloc(50000));
    prudence_free_deferred(prudence_malloc(500));
    pthread_mutex_unlock(&lock);
    depth--;
}

static void note_range(uintptr_t base, size_t bytes)
{
    pthread_mutex_lock(&lock);
    assert_true(count < RANGES);
    ranges[count].base = base;
    ranges[count++].end = base + bytes;
    pthread_mutex_unlock(&lock);
}

static bool was_told(const void *pointer)
{
    bool told = false;

    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < count; i++)
        told |= (uintptr_t)pointer >= ranges[i].base && (uintptr_t)pointer < ranges[i].end;
    pthread_mutex_unlock(&lock);
    return told;
}

void *mmap(void *wish, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    void *pages;

    note();
    pages = (void *)syscall(SYS_mmap, wish, bytes, protection, flags, fd, offset);
    if (load_acquire(&started) && pages != MAP_FAILED)
        note_range((uintptr_t)pages, bytes);
    return pages;
}

int munmap(void *pages, size_t bytes)
{
    note();
    return (int)syscall(SYS_munmap, pages, bytes);
}

int madvise(void *pages, size_t bytes, int advice)
{
    note();
    return (int)syscall(SYS_madvise, pages, bytes, advice);
}

int mprotect(void *pages, size_t bytes, int protection)
{
    note();
    return (int)syscall(SYS_mprotect, pages, bytes, protection);
}

void *mremap(void *pages, size_t bytes, size_t wanted, int flags, ...)
{
    va_list arguments;
    void *target, *moved;

    va_start(arguments, flags);
    target = flags & MREMAP_FIXED ? va_arg(arguments, void *) : NULL;
    va_end(arguments);
    note();
    moved = (void *)syscall(SYS_mremap, pages, bytes, wanted, flags, target);
    if (load_acquire(&started) && moved != MAP_FAILED)
        note_range((uintptr_t)moved, wanted);
    return moved;
}

#define BLOCKS 3000

static void *allocates(void *unused)
{
    static __thread char *blocks[BLOCKS];

    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < BLOCKS; i++) {
            size_t size = i % 100 ? i % 3000 + 1 : 200000;

            blocks[i] = prudence_malloc(size);
            assert_non_null(blocks[i]);
            blocks[i][size - 1] = 1;
        }
        for (unsigned i = 0; i < BLOCKS; i += 100)
            blocks[i] = prudence_realloc(blocks[i], i ? 400000 : 8000000);
        for (unsigned i = 0; i < BLOCKS; i++) {
            assert_non_null(blocks[i]);
            prudence_free(blocks[i]);
        }
        prudence_trim();
    }
    return unused;
}

TEST(an_allocation_in_them_comes_to_an_end)
{
    pthread_t threads[2];

    store_release(&started, true);
    threads_start(threads, 2, allocates);
    threads_join(threads, 2);
    assert_int_equal(load_relaxed(&deepest), 1);
}

/* Outside of these functions, they see the memory mapped for an allocation. Inside, the library
 * calls the system directly. */
TEST(they_see_the_memory_of_objects)
{
    for (size_t size = (size_t)40 << 20; size <= (size_t)400 << 20; size += (size_t)40 << 20) {
        char *block = prudence_malloc(size);

        assert_non_null(block);
        assert_true(was_told(block) && was_told(block + size - 1));
        prudence_free(block);
    }
}

SUITE()
