/* SPDX-License-Identifier: MIT */
/* Where a result comes from: machine, kernel, C library, and the allocator that is really there. */
#ifndef BENCH_HOST_H
#define BENCH_HOST_H

#include <jansson.h>

/* Kernel, processor, CPUs, C library, compiler, transparent huge pages. A new reference. */
json_t *host_description(void);

/* The file that defines the malloc of this process. */
const char *host_allocator_file(void);

/* Name, version and file name of that allocator. A new reference. */
json_t *host_allocator(void);

#endif /* BENCH_HOST_H */
