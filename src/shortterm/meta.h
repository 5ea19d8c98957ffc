/* SPDX-License-Identifier: MIT */
/* Memory for scm/'s own structures (threads, clocks, rings, tables), counted for
 * scm_get_mem_info. */
#ifndef SHORTTERM_META_H
#define SHORTTERM_META_H

#include "os/os.h"

extern uint64_t scm_meta_bytes;     /* atomic */
void *scm_meta_alloc(size_t bytes); /* zeroed; NULL if there is no memory */
void scm_meta_free(void *meta, size_t bytes);

/* Informs tracers that the overhead (scm_get_mem_info) for `use` has changed by `bytes`; `address`
 * distinguishes threads or slabs. */
static inline void tell_overhead(const void *address, const char *use, int64_t bytes)
{
    os_probe3(overhead, address, use, bytes);
}

#endif /* SHORTTERM_META_H */
