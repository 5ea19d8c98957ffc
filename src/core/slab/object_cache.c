/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The object cache: a CPU's stack of free objects.
 *
 * Only the CPU's owner calls these functions. They count pops in the stack's word, like the fast
 * path.
 */
#include "slab/object_cache.h"

#include "slab/cache_type.h"
#include "slab/latent_cache.h"

/* Most pointers moved down to take some from below them, which costs a few hundred nanoseconds. */
#define COLD_STACK_MAX 1024

/* Most objects that one flush moves to nodes. */
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
    cpu->line.stack[count - 1] = NULL; /* leak checkers search for pointers */
    return object;
}

/* Returns whether the object is on top of the stack, and so is freed twice. */
bool object_cache_is_top(const struct cpu_cache *cpu, const void *object)
{
    unsigned count = stack_count(&cpu->line);

    return count && cpu->line.stack[count - 1] == object;
}

/* Pushes as many objects as fit, the first on top, and returns their number. */
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

/* Takes up to `count` objects. They are not counted as pops; the caller counts them. */
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
 * Takes objects from the bottom. They were put there longest ago, and perhaps never handed out, so
 * their pages may be untouched. The objects above move down, so from a stack of more than
 * COLD_STACK_MAX it takes the top instead.
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
    /* Atomic, so that these do not become calls of memmove and memset: ThreadSanitizer watches
     * those in a program, though not the library that calls them. */
    for (unsigned i = count; i < have; i++)
        store_relaxed(&stack[i - count], load_relaxed(&stack[i]));
    for (unsigned i = have - count; i < have; i++)
        store_relaxed(&stack[i], (void *)NULL); /* as in pop */
    store_relaxed(&cpu->line.stack_word, load_relaxed(&cpu->line.stack_word) - count);
    return count;
}

/*
 * Returns the number of objects that an overflow flushes: half of the cache, or as many as are
 * latent, which will need the room (rule 5: more are flushed when more are latent). FLUSH_MAX keeps
 * each free fast; the next overflow goes on.
 */
unsigned object_cache_flush_count(const struct cpu_cache *cpu)
{
    unsigned half = cpu->size / 2, latent = latent_cache_count(cpu);

    return (unsigned)clamp_size(half > latent ? half : latent, 1, FLUSH_MAX);
}
