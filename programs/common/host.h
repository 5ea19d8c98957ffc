/* SPDX-License-Identifier: MIT */
/* Origin of a result: machine, kernel, C library, and the allocator that is actually in use. */
#ifndef BENCH_HOST_H
#define BENCH_HOST_H

#include <jansson.h>

/* Returns kernel, processor, CPUs, C library, compiler, transparent huge pages. A new reference. */
json_t *host_description(void);

/* Returns the file that defines the malloc of this process. */
const char *host_allocator_file(void);

/* Returns name, version and file name of that allocator. A new reference. */
json_t *host_allocator(void);

#endif /* BENCH_HOST_H */
