// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* CPU hotplug. Drains a dead CPU's caches to the nodes and latent slabs. */

#include "module.h"
#include "os_kernel.h"
#include "seams.h"
#include "slab/reclaim/drain.h"

static int state;

/* Runs on another CPU, before `cpu` starts. */
static int cpu_comes(unsigned int cpu)
{
    os_percpu_note_dead(cpu, false);
    return 0;
}

/* Runs on another CPU, after `cpu` has stopped. */
static int cpu_is_dead(unsigned int cpu)
{
    os_percpu_note_dead(cpu, true);
    drain_dead_cpu(cpu);
    return 0;
}

int hotplug_start(void)
{
    unsigned int cpu;

    /* Records the CPUs that are offline now; the callbacks report later changes. */
    for_each_possible_cpu(cpu)
        os_percpu_note_dead(cpu, !cpu_online(cpu));
    state = cpuhp_setup_state(CPUHP_BP_PREPARE_DYN, "prudence:online", cpu_comes, cpu_is_dead);
    return min(state, 0);
}

void hotplug_stop(void)
{
    if (state > 0)
        cpuhp_remove_state_nocalls(state);
}

void prudence_watch_claims(void (*claims)(unsigned int cpu))
{
    WRITE_ONCE(os_percpu_claims, claims);
}
EXPORT_SYMBOL_GPL(prudence_watch_claims);
