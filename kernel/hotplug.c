// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* CPUs that come and go: a dead one's caches are emptied into the nodes and latent slabs. */

#include "module.h"
#include "os_kernel.h"
#include "seams.h"
#include "slab/drain.h"

static int state;

/* On another CPU, before it runs. */
static int cpu_comes(unsigned int cpu)
{
    os_percpu_note_dead(cpu, false);
    return 0;
}

/* On another CPU, after it ran for the last time. */
static int cpu_is_dead(unsigned int cpu)
{
    os_percpu_note_dead(cpu, true);
    slab_retire_cpu(cpu);
    return 0;
}

int hotplug_start(void)
{
    unsigned int cpu;

    /* Those that are not there yet: what changes in between is told by the callbacks. */
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
