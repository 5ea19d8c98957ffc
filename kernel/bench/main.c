// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * prudence_bench.ko compares Prudence with SLUB plus kfree_rcu and call_rcu in one boot. Loading
 * the module runs the benchmark that `run` names. Each result is a line of JSON after the word
 * BENCH in the kernel's log, for tools/kernel/bench.
 *
 *   pairs      allocate and defer at once on all CPUs (the paper's Figure 6), for each size and
 *              subject, in `rounds` interleaved rounds
 *   latency    the same with each pair timed, for three sizes: medians, percentiles, the slowest
 *   endurance  replace the entries of a list on each CPU (rcu_assign_pointer) for `seconds` with
 *              one subject, sampling the memory in use and the grace periods every 10 ms (Figure
 *              3). With `reader_ms`, a reader with sections
 *              of that length makes grace periods as long
 *   mix        file-like, socket-like and tree-rebalancing use with the shares of deferred frees
 *              of Figure 12, in `rounds` interleaved rounds; counters of both allocators (Figures 7
 *              to 11). With `pace`, all subjects make their requests at the same times
 *   misses     cost of an allocation that is a hit, a refill or a grow, over `pairs` objects
 *   remote     allocate on one CPU, defer on the next
 */
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/string.h>

#include "bench.h"

static char *run = "pairs";
module_param(run, charp, 0444);
char *subject_name = "";
module_param_named(subject, subject_name, charp, 0444);
MODULE_PARM_DESC(subject, "subject of endurance; only subject of pairs and mixes (empty: all)");
unsigned int pairs = 100000;
module_param(pairs, uint, 0444);
MODULE_PARM_DESC(pairs, "number of pairs on a CPU in a round");
unsigned int rounds = 3;
module_param(rounds, uint, 0444);
unsigned int seconds = 10;
module_param(seconds, uint, 0444);
unsigned int cpus;
module_param(cpus, uint, 0444);
MODULE_PARM_DESC(cpus, "number of CPUs that take part (0: all)");
unsigned int tasks = 1;
module_param(tasks, uint, 0444);
MODULE_PARM_DESC(tasks, "number of tasks on each CPU that update lists in endurance");
unsigned int reader_ms;
module_param(reader_ms, uint, 0444);
MODULE_PARM_DESC(reader_ms, "ms that each section of the reader lasts in endurance (0: no reader)");
unsigned int pace;
module_param(pace, uint, 0444);
MODULE_PARM_DESC(pace,
                 "ns between two allocations of a mix on a CPU (0: as fast as possible)");
bool watch = true;
module_param(watch, bool, 0444);
MODULE_PARM_DESC(watch, "count SLUB's operations in mixes, which slows SLUB down");
static bool until_killed;
module_param(until_killed, bool, 0444);
MODULE_PARM_DESC(until_killed, "let allocations wake the OOM killer rather than fail before");
unsigned int only_size;
module_param_named(size, only_size, uint, 0444);

static int measure(void)
{
    const struct subject *subject = subject_of(subject_name);

    if (!strcmp(run, "pairs"))
        run_pairs();
    else if (!strcmp(run, "latency"))
        run_latency();
    else if (!strcmp(run, "remote"))
        return run_remote();
    else if (!strcmp(run, "misses"))
        return run_misses();
    else if (!strcmp(run, "mix"))
        run_mixes();
    else if (!strcmp(run, "endurance") && subject && seconds)
        return run_endurance(subject);
    else
        return -EINVAL;
    return 0;
}

static int __init bench_start(void)
{
    int error = -ENOMEM;

    if (until_killed)
        subjects_try_until_killed();
    if (!settle_start())
        return -EOPNOTSUPP;
    if (workers_make())
        error = measure();
    workers_forget();
    return error;
}

static void __exit bench_stop(void)
{
    rcu_barrier(); /* our callbacks */
}

module_init(bench_start);
module_exit(bench_stop);
MODULE_DESCRIPTION("Measurements of prudence.ko and SLUB");
MODULE_LICENSE("Dual MIT/GPL");
