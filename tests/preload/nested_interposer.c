/* SPDX-License-Identifier: MIT */
/*
 * Stands in for a function of libc and allocates, as libfaketime, tracers and lock checkers do.
 *
 * nested_stub.S defines the function itself. Blocks stay from one call to a later one, in any
 * thread and phase, and their contents are checked.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "nested_phases.h"

#define KEPT 64

extern const char nested_name[];       /* in nested_stub.S or nested_no_memory.c */
extern const int nested_has_no_memory; /* likewise */

/* Counts in a file that the test has opened and reads; before the file is mapped, or without one,
 * those in `here`. */
static struct nested_counts here, *counts = &here;
static int phase = NESTED_START;
static void *kept[KEPT];
static unsigned turn;
static __thread volatile int depth;

struct block {
    size_t size;
    unsigned char fill;
    unsigned char bytes[];
};

static void say(const char *what)
{
    size_t length = 0;

    while (what[length])
        length++;
    syscall(SYS_write, 2, what, length);
}

static void fail(const char *what)
{
    say("stand-in of ");
    say(nested_name);
    say(": ");
    say(what);
    say("\n");
    syscall(SYS_exit_group, 99);
}

static void check(const struct block *block)
{
    if (USABLE((void *)block) < sizeof *block + block->size)
        fail("malloc_usable_size is less than what was asked for");
    for (size_t i = 0; i < block->size; i++)
        if (block->bytes[i] != block->fill)
            fail("a block has been overwritten");
}

static struct block *fill(struct block *block, size_t size, unsigned seed)
{
    if (!block)
        fail("no memory");
    block->size = size;
    block->fill = (unsigned char)seed;
    for (size_t i = 0; i < size; i++)
        block->bytes[i] = block->fill;
    return block;
}

static struct block *zeroed(size_t size)
{
    struct block *block = NAMED(calloc)(1, sizeof *block + size);

    for (size_t i = 0; block && i < size; i++)
        if (block->bytes[i])
            fail("calloc did not clear");
    return block;
}

static struct block *aligned(size_t alignment, size_t size)
{
    struct block *block = NAMED(aligned_alloc)(alignment, sizeof *block + size);

    if ((uintptr_t)block % alignment)
        fail("not aligned");
    return block;
}

static struct block *moved(size_t from, size_t to, unsigned seed)
{
    struct block *block = fill(NAMED(malloc)(sizeof *block + from), from, seed);

    block = NAMED(realloc)(block, sizeof *block + to);
    if (!block)
        fail("no memory");
    block->size = from < to ? from : to;
    check(block);
    return block;
}

static struct block *make(unsigned seed)
{
    static const size_t sizes[] = {1, 30, 200, 900, 3000, 8000, 50000, 150000};
    size_t size = nested_has_no_memory ? 20 : sizes[seed / 4 % 8];

    switch (seed % 4) {
    case 0:
        return fill(NAMED(malloc)(sizeof(struct block) + size), size, seed);
    case 1:
        return fill(zeroed(size), size, seed);
    case 2:
        return fill(aligned((size_t)16 << (nested_has_no_memory ? 0 : seed / 4 % 10), size), size,
                    seed);
    default:
        return fill(moved(size / 3 + 1, size, seed), size, seed);
    }
}

static void give(struct block *block, unsigned seed)
{
    size_t size;

    check(block);
    switch (seed % 8) {
    case 0:
        size = block->size;
        block = NAMED(realloc)(block, sizeof *block + size / 2);
        if (!block)
            fail("no memory");
        block->size = size / 2;
        check(block);
        NAMED(free)(block);
        return;
    case 1:
        if (prudence_free_deferred) {
            prudence_free_deferred(block);
            return;
        }
    /* fallthrough */
    default:
        NAMED(free)(block);
    }
}

/* Makes dlsym() allocate, as it does when it finds nothing. */
static void fail_to_find(void)
{
    static int tried;

    if (tried++ < 3)
        dlsym(RTLD_NEXT, "no_such_function");
}

static void allocate(void)
{
    unsigned seed = __atomic_fetch_add(&turn, 1, __ATOMIC_RELAXED);
    void *volatile brief = NAMED(malloc)(80);
    struct block *old = __atomic_exchange_n(&kept[seed % KEPT], NULL, __ATOMIC_ACQ_REL);

    /* The first blocks of the side area are too small, so the area must map more. */
    if (NESTED_MORE)
        NAMED(free)(NAMED(calloc)(1, 5000));
    fail_to_find();
    if (prudence_read_lock) {
        prudence_read_lock();
        prudence_read_unlock();
    }
    if (old)
        give(old, seed / KEPT + seed);
    old = __atomic_exchange_n(&kept[seed % KEPT], make(seed), __ATOMIC_ACQ_REL);
    if (old) /* from another thread */
        give(old, seed);
    NAMED(free)(brief);
}

static void attach(void)
{
    long at = syscall(SYS_mmap, NULL, sizeof here, PROT_READ | PROT_WRITE, MAP_SHARED,
                      NESTED_COUNTS_FD, 0L);

    if (at < 0 && at > -4096)
        return;
    if (at == -1)
        return;
    counts = (struct nested_counts *)at;
    for (int i = 0; i < NESTED_PHASES; i++)
        counts->calls[i] += here.calls[i];
}

/* Compares without strcmp(), because this may stand in for strcmp(). */
static int is_dlsym(void)
{
    static const char dlsym_name[] = "dlsym";
    size_t at = 0;

    while (dlsym_name[at] && dlsym_name[at] == nested_name[at])
        at++;
    return dlsym_name[at] == nested_name[at];
}

static void *find(void)
{
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"};
    void *function = NULL;

    if (!is_dlsym())
        return dlsym(RTLD_NEXT, nested_name);
    for (int i = 0; i < 3 && !function; i++)
        function = dlvsym(RTLD_NEXT, nested_name, versions[i]);
    return function;
}

/* Returns whether this call allocates. Some functions are called tens of thousands of times. */
static int is_worth_it(uint64_t calls)
{
    return NESTED_MORE || calls < 300 || calls % 32 == 0;
}

void *nested_interposed(void);
void *nested_interposed(void)
{
    static void *real;
    static int attached;
    uint64_t calls;

    if (depth > NESTED_MORE)
        return real;
    depth++;
    if (!real) {
        real = find();
        if (!real)
            fail("not found");
    }
    if (!attached++)
        attach();
    calls = __atomic_fetch_add(&counts->calls[phase], 1, __ATOMIC_RELAXED);
    if (is_worth_it(calls))
        allocate();
    depth--;
    return real;
}

void nested_phase(int now)
{
    phase = now;
    for (int i = 0; i < KEPT; i++) {
        struct block *block = __atomic_exchange_n(&kept[i], NULL, __ATOMIC_ACQ_REL);

        if (block)
            give(block, (unsigned)i);
    }
}
