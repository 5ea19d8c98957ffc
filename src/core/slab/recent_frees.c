/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Searches the newest objects in CPUs' caches.
 *
 * Other CPUs' caches cost a system call each, so only the first few searches of a process visit
 * them. That is enough for a program under test, and costs a long-running one nothing. A double
 * that these searches miss meets the copy in the slab, at the latest when the process ends
 * (double_free.c).
 */
#include "slab/recent_frees.h"

#include "os/os.h"
#include "slab/cache_type.h"
#include "slab/latent_cache.h"

/* Policy: how far does the search for a double free go? */
#define EVERYWHERE_TIMES 16 /* tries; other CPUs cost a system call each */

static uint32_t times; /* atomic; a few more do no harm */

static void look_here(struct prudence_cache *cache, struct recent_search *search)
{
    struct cpu_cache *cpu = cpu_cache_take(cache, search);

    if (!cpu)
        return;
    if (cpu->slots)
        search->look(search, cpu);
    cpu_cache_release(cpu);
}

static void look_everywhere(struct prudence_cache *cache, struct recent_search *search)
{
    for (unsigned i = 0; i < os_cpu_count() && !search->found; i++) {
        struct cpu_cache *cpu = cpu_cache_of(cache, i);

        if (!load_relaxed(&cpu->slots) || !(stack_count(&cpu->line) || latent_cache_count(cpu)) ||
            !cpu_cache_take_remote(cpu, search))
            continue;
        search->look(search, cpu);
        cpu_cache_release(cpu);
    }
}

void recent_frees_look(struct prudence_cache *cache, struct recent_search *search)
{
    if (!cache->percpu || cache_is_cold(cache))
        return;
    look_here(cache, search);
    if (!search->found && load_relaxed(&times) < EVERYWHERE_TIMES) {
        add_relaxed(&times, 1);
        look_everywhere(cache, search);
    }
}

struct object_search {
    struct recent_search search;
    const void *object;
    unsigned most;
    bool latent;
};

static bool newest_have(void *const *end, unsigned count, const void *object)
{
    while (count--)
        if (*--end == object)
            return true;
    return false;
}

static bool latent_have(const struct cpu_cache *cpu, unsigned count, const void *object)
{
    for (unsigned i = 0; i < count; i++)
        if (recent_latent(cpu, i) == object)
            return true;
    return false;
}

static void look_for_object(struct recent_search *search, const struct cpu_cache *cpu)
{
    struct object_search *wanted = (struct object_search *)search;
    unsigned latent = latent_cache_count(cpu), free = stack_count(&cpu->line);

    wanted->latent = latent_have(cpu, (unsigned)min_size(latent, wanted->most), wanted->object);
    search->found =
        wanted->latent ||
        newest_have(cpu->line.stack + free, (unsigned)min_size(free, wanted->most), wanted->object);
}

bool recent_frees_have(struct prudence_cache *cache, const void *object, unsigned most,
                       bool *latent)
{
    struct object_search search = {{look_for_object, false}, object, most, false};

    recent_frees_look(cache, &search.search);
    *latent = search.latent;
    return search.search.found;
}
