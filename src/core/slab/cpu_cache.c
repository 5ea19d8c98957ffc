/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Ownership of a CPU's caches, and their arrays.
 *
 * Stack, ring and batches of a CPU are one block of metadata, made when the CPU first needs them
 * and again when the size follows demand. An owner may neither allocate nor free, so the caller
 * makes a new block before taking the caches, and frees the old one after their release.
 */
#include "slab/cpu_cache.h"

#include "os/os.h"
#include "slab/latent_cache.h"
#include "slab/reclaim/budget.h"

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

/* Claims a line for fork or destruction, which need the caches of all CPUs. Owners finish without
 * waiting for anything, so the loop is short. */
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

/* Claims a line again if the claim was overwritten. Does not take it remotely, because in a kernel
 * that leaves interrupts off, and callers that want all CPUs sleep. */
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

static unsigned ring_slots(unsigned size)
{
    return (unsigned)round_up_to_power_of_two(size);
}

/* Returns the size of a block for caches of `size`. The block has a slot below the stack that is
 * always NULL, so that pop finds NULL when the stack is empty; then stack, ring and batches. */
size_t cpu_cache_array_bytes(const struct prudence_cache *cache, unsigned size)
{
    unsigned slots = ring_slots(size);

    return ((size_t)1 + size + slots) * sizeof(void *) +
           batch_slots(cache, slots) * sizeof(struct batch);
}

/* Returns the size for which the arrays of owned caches were made, 0 before they exist. The budget
 * may have granted less. */
static unsigned stack_slots(const struct cpu_cache *cpu)
{
    return cpu->slots ? (unsigned)(cpu->line.ring - cpu->line.stack) : 0;
}

/* Returns the arrays of owned caches, or a NULL block before they exist. */
static struct arrays arrays_of(const struct prudence_cache *cache, const struct cpu_cache *cpu)
{
    struct arrays none = {0};

    if (!cpu->slots)
        return none;
    return (struct arrays){.block = cpu->line.stack - 1,
                           .bytes = cpu_cache_array_bytes(cache, stack_slots(cpu))};
}

/* Copies the contents of owned caches into a block for `size`, and returns the old block. */
static struct arrays arrays_replace(struct prudence_cache *cache, struct cpu_cache *cpu,
                                    void *block, unsigned size)
{
    struct arrays old = arrays_of(cache, cpu);
    unsigned slots = ring_slots(size);
    void **stack = (void **)block + 1;
    void **ring = stack + size;
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
    store_relaxed(&cpu->slots, slots); /* read by threads that check whether anything is there */
    return old;
}

/* Allocates arrays. The caller owns nothing when it frees them. */
struct arrays cpu_cache_arrays_for(const struct prudence_cache *cache, unsigned size)
{
    size_t bytes = cpu_cache_array_bytes(cache, size);

    return (struct arrays){.block = os_arrays_alloc(bytes), .bytes = bytes};
}

void cpu_cache_arrays_free(struct arrays arrays)
{
    if (arrays.block)
        os_arrays_free(arrays.block, arrays.bytes);
}

/* Applies a changed size to owned caches. Every path that makes or takes arrays ends here, except
 * for the destruction. */
static void follow_size(struct prudence_cache *cache, struct cpu_cache *cpu)
{
    debug_assert(cpu->size <= stack_slots(cpu));
    debug_assert(stack_count(&cpu->line) <= cpu->size && latent_cache_count(cpu) <= cpu->size);
    os_percpu_limit_stack(&cpu->line, cpu->size);
    latent_cache_set_stop(cpu, batch_of(cache, cpu));
}

/* Relaxed: the slot of a push that is noted was stored before fork(), which makes pages read-only
 * and invalidates all TLBs. On AArch64 this waits for stores by old translations, so the child has
 * the object although a push stores the count without release (docs/adr/0123). */
void cpu_cache_note_all(const struct prudence_cache *cache, struct cpu_note *notes)
{
    for (unsigned i = 0; i < os_cpu_count(); i++) {
        notes[i].stack_word = load_relaxed(&cpu_cache_of(cache, i)->line.stack_word);
        notes[i].ring_tail = load_relaxed(&cpu_cache_of(cache, i)->line.ring_tail);
    }
}

/* Empties the caches as if they had never held anything. Their owner does not exist in this
 * process, and its progress is unknown, so its objects and the contents of the caches are lost. */
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

/* Does the same without notes. */
static void drop_newest(struct cpu_cache *cpu)
{
    if (stack_count(&cpu->line))
        cpu->line.stack_word--;
    if (cpu->line.ring_tail != cpu->closed)
        cpu->line.ring_tail--;
}

/*
 * Runs in the child. At most one operation of each CPU ended after it was noted
 * (os_percpu_fence_all). The child may have the count of a push or append but not the object, if
 * the page was copied before. The thread that freed the object is not here, so the object counts as
 * never freed. A pop stays, because the object belongs to the thread that popped.
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
 * Grows the object cache and latent limit of the current CPU to `size`, or to the size that the
 * budget allows. Returns false if they stay smaller, for lack of memory or budget, or because
 * another thread owns the caches.
 */
bool cpu_cache_grow(struct prudence_cache *cache, unsigned size)
{
    struct arrays arrays = cpu_cache_arrays_for(cache, size);
    struct cpu_cache *cpu;
    bool grown = false;

    if (!arrays.block)
        return false;
    cpu = cpu_cache_take(cache, &arrays);
    if (cpu && cpu->size < size) {
        grown = budget_grow(cache, cpu, size);
        if (grown) {
            arrays = arrays_replace(cache, cpu, arrays.block, size);
            follow_size(cache, cpu);
        }
        cpu->churned = false;
    }
    if (cpu) {
        grown |= cpu->size >= size;
        cpu_cache_release(cpu);
    }
    cpu_cache_arrays_free(arrays);
    return grown;
}

/* Returns whether the contents of owned caches fit into `size`. */
static bool cpu_cache_fits(const struct prudence_cache *cache, const struct cpu_cache *cpu,
                           unsigned size)
{
    return stack_count(&cpu->line) <= size && latent_cache_count(cpu) <= size &&
           cpu->batch_tail - cpu->batch_head <= batch_slots(cache, ring_slots(size));
}

/* Shrinks owned caches to `size`. The caller passes arrays for that size, and gets the old ones
 * back in *arrays. Returns false if the caches hold more. */
bool cpu_cache_shrink(struct prudence_cache *cache, struct cpu_cache *cpu, unsigned size,
                      struct arrays *arrays)
{
    if (!cpu_cache_fits(cache, cpu, size))
        return false;
    *arrays = arrays_replace(cache, cpu, arrays->block, size);
    budget_shrink(cache, cpu, size);
    follow_size(cache, cpu);
    return true;
}

/* Detaches the arrays of owned caches that are empty and have nothing reserved, as if the CPU had
 * never needed any. The caller frees them (os_arrays_free) when it owns nothing. Returns NULL if
 * they are not empty or do not exist. */
void *cpu_cache_detach_arrays(struct prudence_cache *cache, struct cpu_cache *cpu, size_t *bytes)
{
    struct arrays arrays = arrays_of(cache, cpu);

    if (!cpu->slots || stack_count(&cpu->line) || latent_cache_count(cpu) || cpu->ahead)
        return NULL;
    cpu->line.stack = cpu->line.ring = NULL;
    cpu->line.ring_mask = 0;
    cpu->batch_head = cpu->batch_tail;
    store_relaxed(&cpu->slots, 0u);
    store_relaxed(&cpu->abandoned_word, 0u);
    budget_shrink(cache, cpu, 0);
    follow_size(cache, cpu);
    *bytes = arrays.bytes;
    return arrays.block;
}

void cpu_cache_free_arrays(struct prudence_cache *cache, struct cpu_cache *cpu)
{
    cpu_cache_arrays_free(arrays_of(cache, cpu));
    store_relaxed(&cpu->slots, 0u);
    budget_shrink(cache, cpu, 0);
}
