/* SPDX-License-Identifier: MIT */
/* prudence-bench steps: the cost of an allocation by the step that serves it. */
#ifndef BENCH_STEPS_H
#define BENCH_STEPS_H

/* Parses the command line after "steps"; returns the exit status. */
int steps_bench(int argc, char **argv);

#endif /* BENCH_STEPS_H */
