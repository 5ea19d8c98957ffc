/* SPDX-License-Identifier: MIT */
/*
 * Blocks carry a mark: eight bytes computed from address and size at their beginning, and one of
 * these at their end. When a block ends, the mark shows that it was written, damaged on its way or
 * handed out twice; overlaps are noticed if they hit a mark.
 */
#define _GNU_SOURCE
#include "load.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096

void load_fail(const char *what, ...)
{
    va_list arguments;

    fputs("prudence-malloc-load: ", stderr);
    va_start(arguments, what);
    vfprintf(stderr, what, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    /* skips exit handlers, because the heap may be broken and other threads still run */
    _exit(EXIT_FAILURE);
}

static uint64_t mark_of(const struct block *block)
{
    return ((uint64_t)(uintptr_t)block->at + block->size) * UINT64_C(0x9e3779b97f4a7c15);
}

static unsigned char *last_byte(const struct block *block)
{
    return (unsigned char *)block->at + block->size - 1;
}

static void set_mark(const struct block *block)
{
    uint64_t mark = mark_of(block);

    memcpy(block->at, &mark, sizeof mark);
    if (block->size > sizeof mark)
        *last_byte(block) = (unsigned char)(mark >> 56);
}

static void check_mark(const struct block *block)
{
    uint64_t mark = mark_of(block);

    if (memcmp(block->at, &mark, sizeof mark) ||
        (block->size > sizeof mark && *last_byte(block) != (unsigned char)(mark >> 56)))
        load_fail("the block of %zu bytes at %p was overwritten", block->size, block->at);
}

struct block block_make(size_t size)
{
    struct block block = {.at = malloc(size), .size = size};

    if (!block.at)
        load_fail("malloc(%zu) returned NULL", size);
    if ((uintptr_t)block.at % (size < 16 ? 8 : 16))
        load_fail("malloc(%zu) returned %p, which is not aligned", size, block.at);
    set_mark(&block);
    return block;
}

struct block block_new(struct member *member, size_t size)
{
    member->blocks++;
    return block_make(size);
}

void block_end(struct block *block)
{
    if (!block->at)
        return;
    check_mark(block);
    memset(block->at, 0, sizeof(uint64_t)); /* so that another owner finds no mark */
    free(block->at);
    block->at = NULL;
}

void block_resize(struct block *block, size_t size)
{
    struct block moved = {.size = size};

    check_mark(block);
    moved.at = realloc(block->at, size);
    if (!moved.at)
        load_fail("realloc(%zu) returned NULL", size);
    /* The old mark was computed from the old address; realloc must have copied its first eight
     * bytes. */
    if (*(uint64_t *)moved.at != mark_of(block))
        load_fail("realloc(%zu) of %zu bytes lost their beginning", size, block->size);
    if (size >= block->size && block->size > sizeof(uint64_t) &&
        ((unsigned char *)moved.at)[block->size - 1] != (unsigned char)(mark_of(block) >> 56))
        load_fail("realloc(%zu) of %zu bytes lost their end", size, block->size);
    set_mark(&moved);
    *block = moved;
}

void block_touch(const struct block *block)
{
    for (size_t at = PAGE; at + 1 < block->size; at += PAGE)
        ((volatile unsigned char *)block->at)[at] = 1;
}

void *own_memory(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

    if (memory == MAP_FAILED)
        load_fail("no memory for the pattern itself (%zu bytes)", bytes);
    return memory;
}

void own_memory_end(void *memory, size_t bytes)
{
    munmap(memory, bytes);
}
