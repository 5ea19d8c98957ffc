/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "arena.h"

#include <sys/mman.h>

#define RUN ((size_t)1 << 18)

static unsigned power_of(size_t size)
{
    return size <= 16 ? 4 : 64 - (unsigned)__builtin_clzl(size - 1);
}

static void *map(struct arena *arena, size_t size)
{
    void *run = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (run == MAP_FAILED)
        return NULL;
    arena->mapped += size;
    return run;
}

/* Cuts a block from a run. Wastes the rest of an old run, which is less than one block. */
static void *cut(struct arena *arena, size_t size)
{
    char *block;

    if (size >= RUN)
        return map(arena, size);
    if (!arena->next || (size_t)(arena->end - arena->next) < size) {
        arena->next = map(arena, RUN);
        if (!arena->next)
            return NULL;
        arena->end = arena->next + RUN;
    }
    block = arena->next;
    arena->next += size;
    return block;
}

void *arena_take(struct arena *arena, size_t size)
{
    unsigned power = power_of(size);
    void **block;

    if (power >= ARENA_POWERS)
        return NULL;
    block = arena->free[power];
    if (!block)
        return cut(arena, (size_t)1 << power);
    arena->free[power] = *block;
    return block;
}

void arena_give(struct arena *arena, void *block, size_t size)
{
    unsigned power = power_of(size);

    *(void **)block = arena->free[power];
    arena->free[power] = block;
}
