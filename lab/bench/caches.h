/* SPDX-License-Identifier: MIT */
/* prudence-bench caches: the cost of a pair, and the memory, with many caches. */
#ifndef BENCH_CACHES_H
#define BENCH_CACHES_H

/* Parses the command line after "caches"; returns the exit status. */
int caches_bench(int argc, char **argv);

#endif /* BENCH_CACHES_H */
