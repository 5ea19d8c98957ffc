/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The object cache: a stack of free objects a CPU.
 *
 * All functions are called by the CPU's owner. Pops are counted in the stack's word, where the
 * fast path counts them too.
 */
#include "slab/object_cache.h"

#include "slab/cache.h"
#include "slab/latent_cache.h"

/* Pointers that are moved down at most, to take some from below them: a few hundred nanoseconds. */
#define COLD_STACK_MAX 1024

/* A flush is at most so many moves of objects to a node. */
#define FLUSH_MAX ((size_t)4 * TRANSFER_MAX)

void *object_cache_pop(struct cpu_cache *cpu)
{
    uint64_t word = load_relaxed(&cpu->line.stack_word);
    unsigned count = (unsigned)(word & STACK_COUNT_MASK);
    void *object;

    if (!count)
        return NULL;
    store_relaxed(&cpu->line.stack_word, word + STACK_POP);
    object = cpu->line.stack[count - 1];
    cpu->line.stack[count - 1] = NULL; /* leak checkers look for pointers */
    return object;
}

/* It is there already, and is freed once more. */
bool object_cache_is_top(const struct cpu_cache *cpu, const void *object)
{
    unsigned count = stack_count(&cpu->line);

    return count && cpu->line.stack[count - 1] == object;
}

/* Puts as many as fit, the first on top; returns how many. */
unsigned object_cache_push(struct cpu_cache *cpu, void **objects, unsigned count)
{
    unsigned have = stack_count(&cpu->line);
    unsigned room = cpu->size > have ? cpu->size - have : 0;

    count = count < room ? count : room;
    for (unsigned i = 0; i < count; i++)
        cpu->line.stack[have + i] = objects[count - 1 - i];
    store_relaxed(&cpu->line.stack_word, load_relaxed(&cpu->line.stack_word) + count);
    return count;
}

/* Takes up to `count`; not counted as pops: the caller counts what it does with them. */
unsigned object_cache_take(struct cpu_cache *cpu, void **objects, unsigned count)
{
    unsigned have = stack_count(&cpu->line);

    count = count < have ? count : have;
    for (unsigned i = 0; i < count; i++) {
        objects[i] = cpu->line.stack[have - 1 - i];
        cpu->line.stack[have - 1 - i] = NULL; /* as in pop */
    }
    store_relaxed(&cpu->line.stack_word, load_relaxed(&cpu->line.stack_word) - count);
    return count;
}

/*
 * The same from the bottom: the objects that were put there longest ago, and perhaps never handed out, so that their
 * pages have never been touched. What stays moves down, so this is for stacks of which little stays; of larger ones
 * it takes the top.
 */
unsigned object_cache_take_coldest(struct cpu_cache *cpu, void **objects, unsigned count)
{
    unsigned have = stack_count(&cpu->line);
    void **stack = cpu->line.stack;

    if (have > COLD_STACK_MAX)
        return object_cache_take(cpu, objects, count);
    count = count < have ? count : have;
    for (unsigned i = 0; i < count; i++)
        objects[i] = stack[i];
    for (unsigned i = count; i < have; i++)
        stack[i - count] = stack[i];
    for (unsigned i = have - count; i < have; i++)
        stack[i] = NULL; /* as in pop */
    store_relaxed(&cpu->line.stack_word, load_relaxed(&cpu->line.stack_word) - count);
    return count;
}

/*
 * How many objects an overflow flushes: half of the cache, or as many as are latent, because these will need the room
 * (rule 5: more are flushed when more are latent). Bounded, so that one free is never slow; the next overflow goes
 * on.
 */
unsigned object_cache_flush_count(const struct cpu_cache *cpu)
{
    unsigned half = cpu->size / 2, latent = latent_count(cpu);

    return (unsigned)clamp_size(half > latent ? half : latent, 1, FLUSH_MAX);
}
