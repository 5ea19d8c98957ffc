/* SPDX-License-Identifier: MIT */
#include "shortterm/meta.h"

#include "base/atomic.h"

uint64_t scm_meta_bytes;

void *scm_meta_alloc(size_t bytes)
{
    void *meta = os_meta_alloc(bytes);

    if (!meta)
        return NULL;
    add_relaxed(&scm_meta_bytes, bytes);
    tell_overhead(meta, "books", (int64_t)bytes);
    return meta;
}

void scm_meta_free(void *meta, size_t bytes)
{
    sub_relaxed(&scm_meta_bytes, bytes);
    tell_overhead(meta, "books", -(int64_t)bytes);
    os_meta_free(meta, bytes);
}
