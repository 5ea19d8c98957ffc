/* SPDX-License-Identifier: MIT */
/*
 * Suspects: objects that may be free or deferred when their last date ends, because they were refreshed after that.
 *
 * An object that was freed by other means than a date, in a slab that has expiry counts, is marked as a suspect. So is one
 * that lay in a CPU's caches when the counts were made. The mark stays when the object is allocated again, because
 * allocations are not looked at. So when the last date of a suspect ends, it is looked for: a slab knows what it has
 * itself, and of the CPU's caches those objects are looked at that came last. The first times in a process, the caches of
 * the other CPUs are looked at as well, by a system call for each. A copy that is not seen in this way is found when both
 * copies come to the slab, at the latest when the process ends (slab/doubles.c).
 *
 * Cost: nothing for an object that only its dates free; up to some hundred nanoseconds for one that was freed by other means
 * before it became short-term memory again.
 */
#include "scm/expiry_counts.h"
#include "slab/cpu_cache.h"
#include "slab/latent_cache.h"
#include "slab/misuse.h"

#define MARKED_MOST      1024 /* objects of a stack or ring; once for each slab */
#define LOOKED_MOST      256
#define EVERYWHERE_TIMES 16

static uint32_t times; /* atomic */

static void *newest_free(const struct cpu_cache *cpu, unsigned i)
{
    return cpu->line.stack[stack_count(&cpu->line) - 1 - i];
}

static void *newest_latent(const struct cpu_cache *cpu, unsigned i)
{
    return cpu->line.ring[(load_relaxed(&cpu->line.ring_tail) - 1 - i) & cpu->line.ring_mask];
}

/* What is looked for in the caches of a CPU, owned. */
struct search {
    void (*look)(struct search *search, const struct cpu_cache *cpu);
    const struct slab *slab;
    union expiry_count *counts; /* to be marked */
    const void *object;         /* to be found */
    bool found, latent;
};

static void look_here(struct search *search)
{
    struct cpu_cache *cpu = cpu_cache_take(search->slab->cache, search);

    if (!cpu)
        return;
    search->look(search, cpu);
    cpu_cache_release(cpu);
}

static void look_everywhere(struct search *search)
{
    for (unsigned i = 0; i < os_cpu_count() && !search->found; i++) {
        struct cpu_cache *cpu = cpu_cache_of(search->slab->cache, i);

        if (!load_relaxed(&cpu->slots) || !(stack_count(&cpu->line) || latent_count(cpu)) ||
            !cpu_cache_take_remote(cpu, search))
            continue;
        search->look(search, cpu);
        cpu_cache_release(cpu);
    }
}

static void look(struct search *search)
{
    if (!search->slab->cache->percpu)
        return;
    look_here(search);
    if (!search->found && load_relaxed(&times) < EVERYWHERE_TIMES) {
        add_relaxed(&times, 1);
        look_everywhere(search);
    }
}

static void mark(const struct search *search, const void *object)
{
    const struct slab *slab = search->slab;

    if (slab_offset(slab, object) < slab->bytes && slab_has(slab, object))
        expiry_count_suspect(&search->counts[slab_index(slab, object)]);
}

/* Whether the program has freed or deferred an object there, and not only allocated what was refilled (see stats.c). */
static bool was_given_any(const struct cpu_cache *cpu)
{
    return load_relaxed(&cpu->line.ring_tail) ||
           stack_count(&cpu->line) + stack_pops(&cpu->line) + cpu->counts.unstacked !=
               cpu->counts.stacked;
}

static void mark_all(struct search *search, const struct cpu_cache *cpu)
{
    unsigned count = (unsigned)min_size(stack_count(&cpu->line), MARKED_MOST);

    if (!was_given_any(cpu))
        return;
    for (unsigned i = 0; i < count; i++)
        mark(search, newest_free(cpu, i));
    count = (unsigned)min_size(latent_count(cpu), MARKED_MOST);
    for (unsigned i = 0; i < count; i++)
        mark(search, newest_latent(cpu, i));
}

void suspects_mark(const struct slab *slab, union expiry_count *counts)
{
    look(&(struct search){.look = mark_all, .slab = slab, .counts = counts});
}

static void find(struct search *search, const struct cpu_cache *cpu)
{
    unsigned count = (unsigned)min_size(stack_count(&cpu->line), LOOKED_MOST);

    for (unsigned i = 0; i < count && !search->found; i++)
        search->found = newest_free(cpu, i) == search->object;
    count = (unsigned)min_size(latent_count(cpu), LOOKED_MOST);
    for (unsigned i = 0; i < count && !search->found; i++)
        search->found = search->latent = newest_latent(cpu, i) == search->object;
}

void suspect_check(const struct slab *slab, const void *object, const char *what)
{
    struct search search = {.look = find, .slab = slab, .object = object};

    look(&search);
    if (search.found)
        report_not_live(slab, object, search.latent, what);
    slab_check_live(slab, object, what);
}
