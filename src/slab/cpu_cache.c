/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Owning a CPU's caches, and the arrays behind them.
 *
 * Stack, ring and batches of one CPU are one block of metadata, made when the CPU first needs them and again when the
 * size follows demand. A new block is made before the caches are taken and the old one freed after they are released,
 * because an owner may neither allocate nor free.
 */
#include "slab/cpu_cache.h"

#include "os/os.h"
#include "slab/budget.h"
#include "slab/latent_cache.h"

struct cpu_cache *cpu_cache_take(struct prudence_cache *cache, const void *token)
{
    struct cpu_cache *cpu;

    os_busy_enter();
    cpu = (struct cpu_cache *)os_percpu_take(cache->percpu, token);
    if (!cpu)
        os_busy_leave();
    return cpu;
}

bool cpu_cache_take_remote(struct cpu_cache *cpu, const void *token)
{
    bool taken;

    os_busy_enter();
    taken = os_percpu_take_remote(&cpu->line, token);
    if (!taken)
        os_busy_leave();
    return taken;
}

/* Runs `visit` as the owner of any CPU's caches, perhaps on that CPU and in an interrupt. */
bool cpu_cache_visit_remote(struct cpu_cache *cpu, const void *token,
                            void (*visit)(struct os_percpu_line *line, void *data), void *data)
{
    bool visited;

    os_busy_enter();
    visited = os_percpu_visit_remote(&cpu->line, token, visit, data);
    os_busy_leave();
    return visited;
}

void cpu_cache_release(struct cpu_cache *cpu)
{
    os_percpu_release(&cpu->line);
    os_busy_leave();
}

/* Fork and destruction need the caches of all CPUs. An owner finishes without waiting for anything, so they do not
 * wait long either. */
static void claim_patiently(struct os_percpu_line *line, const void *token)
{
    while (!os_percpu_claim(line, token))
        os_sleep_ns(1000);
}

void cpu_cache_claim_all(struct prudence_cache *cache, const void *token)
{
    for (unsigned i = 0; cache->percpu && i < os_cpu_count(); i++)
        claim_patiently(&cpu_cache_of(cache, i)->line, token);
}

/* Claims a line once more whose claim was overwritten. Not by a remote take: in a kernel that leaves interrupts off,
 * and threads that want all CPUs sleep. */
void cpu_cache_confirm_all(struct prudence_cache *cache, const void *token)
{
    for (unsigned i = 0; cache->percpu && i < os_cpu_count(); i++) {
        struct os_percpu_line *line = &cpu_cache_of(cache, i)->line;

        while (!os_percpu_confirm(line, token)) {
            claim_patiently(line, token);
            os_percpu_fence_all();
        }
    }
}

void cpu_cache_release_all(struct prudence_cache *cache, const void *token, bool fenced)
{
    for (unsigned i = 0; cache->percpu && i < os_cpu_count(); i++) {
        struct os_percpu_line *line = &cpu_cache_of(cache, i)->line;

        if (!fenced)
            os_percpu_unclaim(line, token);
        else if (os_percpu_confirm(line, token))
            os_percpu_release(line);
    }
}

/* The parts of a block for so many slots: a slot below the stack that is always NULL, so that pop finds NULL when the
 * stack is empty; the stack, the ring and the batches. */
size_t cpu_cache_array_bytes(const struct prudence_cache *cache, unsigned slots)
{
    return ((size_t)2 * slots + 1) * sizeof(void *) +
           batch_slots(cache, slots) * sizeof(struct batch);
}

static void *block_of(const struct cpu_cache *cpu)
{
    return cpu->slots ? cpu->line.stack - 1 : NULL;
}

static struct arrays arrays_of(const struct prudence_cache *cache, void *block, unsigned slots)
{
    return (struct arrays){.block = block, .bytes = cpu_cache_array_bytes(cache, slots)};
}

/* Copies what the caches hold into a block for `slots`, owned; gives the old block back. */
static struct arrays arrays_replace(struct prudence_cache *cache, struct cpu_cache *cpu,
                                    void *block, unsigned slots)
{
    struct arrays old = arrays_of(cache, block_of(cpu), cpu->slots);
    void **stack = (void **)block + 1;
    void **ring = stack + slots;
    struct batch *batches = (struct batch *)(ring + slots);
    unsigned batch_mask = batch_slots(cache, slots) - 1;
    unsigned old_mask = cpu->batch_mask;

    for (unsigned i = 0; i < stack_count(&cpu->line); i++)
        stack[i] = cpu->line.stack[i];
    for (uint64_t i = cpu->line.ring_head; i != cpu->line.ring_tail; i++)
        ring[i & (slots - 1)] = cpu->line.ring[i & cpu->line.ring_mask];
    for (unsigned i = cpu->batch_head; i != cpu->batch_tail; i++)
        batches[i & batch_mask] = batches_of(cpu)[i & old_mask];
    stack[-1] = NULL;
    cpu->line.stack = stack;
    cpu->line.ring = ring;
    cpu->line.ring_mask = slots - 1;
    cpu->batch_mask = batch_mask;
    store_relaxed(&cpu->slots, slots); /* read by threads that look whether there is anything */
    return old;
}

/* Freed with nothing owned. */
struct arrays cpu_cache_arrays_for(const struct prudence_cache *cache, unsigned size)
{
    struct arrays arrays = arrays_of(cache, NULL, (unsigned)round_up_to_power_of_two(size));

    arrays.block = os_arrays_alloc(arrays.bytes);
    return arrays;
}

void cpu_cache_arrays_free(struct arrays arrays)
{
    if (arrays.block)
        os_arrays_free(arrays.block, arrays.bytes);
}

/* Their size has changed; owned. Here every path passes that makes or takes arrays. */
static void follow_size(struct prudence_cache *cache, struct cpu_cache *cpu)
{
    debug_assert(cpu->size <= cpu->slots);
    debug_assert(stack_count(&cpu->line) <= cpu->size && latent_count(cpu) <= cpu->size);
    os_percpu_limit_stack(&cpu->line, cpu->size);
    latent_set_stop(cpu, batch_of(cache, cpu));
}

/* Acquire: the object of a push that is counted is in its slot. */
void cpu_cache_note_all(const struct prudence_cache *cache, struct cpu_note *notes)
{
    for (unsigned i = 0; i < os_cpu_count(); i++) {
        notes[i].stack_word = load_acquire(&cpu_cache_of(cache, i)->line.stack_word);
        notes[i].ring_tail = load_acquire(&cpu_cache_of(cache, i)->line.ring_tail);
    }
}

/* As if nothing had ever been there. The thread that took these caches is not in the process, and nobody knows how far it has
 * come; what it had, and what they held, is lost to it. */
static void forget(struct cpu_cache *cpu)
{
    cpu->line.stack_word -= stack_count(&cpu->line);
    cpu->line.ring_head = cpu->closed = cpu->reserved = cpu->line.ring_tail;
    cpu->line.stack = cpu->line.ring = NULL;
    cpu->line.ring_mask = 0;
    cpu->batch_head = cpu->batch_tail;
    cpu->slots = cpu->ahead = 0;
}

static void restore(struct cpu_cache *cpu, const struct cpu_note *note)
{
    if (stack_count(&cpu->line) > (note->stack_word & STACK_COUNT_MASK))
        cpu->line.stack_word = note->stack_word;
    cpu->line.ring_tail = note->ring_tail;
}

/* The same where nobody has noted it. */
static void drop_newest(struct cpu_cache *cpu)
{
    if (stack_count(&cpu->line))
        cpu->line.stack_word--;
    if (cpu->line.ring_tail != cpu->closed)
        cpu->line.ring_tail--;
}

/*
 * In the child. Of each CPU one operation at most has ended after it was noted (os_percpu_fence_all). Of a push or an append
 * the child may have the count and not the object: its page was copied before. The thread that freed it is not here, so
 * the object counts as never freed. A pop has the child as it is: the object is that thread's.
 */
void cpu_cache_repair_all(struct prudence_cache *cache, const void *token,
                          const struct cpu_note *notes)
{
    for (unsigned i = 0; i < os_cpu_count(); i++) {
        struct cpu_cache *cpu = cpu_cache_of(cache, i);

        if (!os_percpu_confirm(&cpu->line, token)) {
            forget(cpu);
            budget_shrink(cache, cpu, 0);
            follow_size(cache, cpu);
            os_percpu_release(&cpu->line);
            continue;
        }
        if (notes)
            restore(cpu, &notes[i]);
        else
            drop_newest(cpu);
    }
}

/*
 * Gives `size` objects to the object cache and the latent limit of the CPU that the caller runs on, if they have less
 * now; or what the budget allows. False when they are no larger: there is no memory for it, or no room in the budget,
 * or another thread owns the caches.
 */
bool cpu_cache_grow(struct prudence_cache *cache, unsigned size)
{
    unsigned slots = (unsigned)round_up_to_power_of_two(size);
    struct arrays spare = cpu_cache_arrays_for(cache, size);
    struct cpu_cache *cpu;
    bool grown = false;

    if (!spare.block)
        return false;
    cpu = cpu_cache_take(cache, &spare);
    if (cpu && cpu->size < size) {
        grown = budget_grow(cache, cpu, size);
        if (grown) {
            spare = arrays_replace(cache, cpu, spare.block, slots);
            follow_size(cache, cpu);
        }
        cpu->churned = false;
    }
    if (cpu) {
        grown |= cpu->size >= size;
        cpu_cache_release(cpu);
    }
    cpu_cache_arrays_free(spare);
    return grown;
}

/* Whether what the caches hold, owned, finds room in arrays for `slots`, with that size. */
static bool fits(const struct prudence_cache *cache, const struct cpu_cache *cpu, unsigned size,
                 unsigned slots)
{
    return stack_count(&cpu->line) <= size && latent_count(cpu) <= size &&
           cpu->batch_tail - cpu->batch_head <= batch_slots(cache, slots);
}

/* Makes the caches of a CPU smaller, which the caller owns. The arrays are the caller's, for that size; afterwards it
 * has the old ones. False when the caches hold more than that. */
bool cpu_cache_shrink(struct prudence_cache *cache, struct cpu_cache *cpu, unsigned size,
                      struct arrays *spare)
{
    unsigned slots = (unsigned)round_up_to_power_of_two(size);

    if (!fits(cache, cpu, size, slots))
        return false;
    *spare = arrays_replace(cache, cpu, spare->block, slots);
    budget_shrink(cache, cpu, size);
    follow_size(cache, cpu);
    return true;
}

/* Takes the arrays away from caches that the caller owns and that are empty and have nothing reserved, as if the CPU
 * had never needed any. The caller frees them (os_arrays_free), with nothing owned. NULL: there is something in them,
 * or there are none. */
void *cpu_cache_detach_arrays(struct prudence_cache *cache, struct cpu_cache *cpu, size_t *bytes)
{
    struct arrays arrays = arrays_of(cache, block_of(cpu), cpu->slots);

    if (!cpu->slots || stack_count(&cpu->line) || latent_count(cpu) || cpu->ahead)
        return NULL;
    cpu->line.stack = cpu->line.ring = NULL;
    cpu->line.ring_mask = 0;
    cpu->batch_head = cpu->batch_tail;
    store_relaxed(&cpu->slots, 0u);
    budget_shrink(cache, cpu, 0);
    follow_size(cache, cpu);
    *bytes = arrays.bytes;
    return arrays.block;
}

void cpu_cache_free_arrays(struct prudence_cache *cache, struct cpu_cache *cpu)
{
    struct arrays arrays = arrays_of(cache, block_of(cpu), cpu->slots);

    if (cpu->slots)
        os_arrays_free(arrays.block, arrays.bytes);
    store_relaxed(&cpu->slots, 0u);
    budget_shrink(cache, cpu, 0);
}
