/* SPDX-License-Identifier: MIT */
/* prudence-bench scm: what the calls of short-term memory cost. */
#ifndef BENCH_SCM_H
#define BENCH_SCM_H

/* The command line behind "scm"; returns the exit status. */
int scm_bench(int argc, char **argv);

#endif /* BENCH_SCM_H */
