/* SPDX-License-Identifier: MIT */
/* What the library keeps for threads that read: slots of a domain, and metadata. */
#ifndef TESTS_SUPPORT_READER_MEMORY_H
#define TESTS_SUPPORT_READER_MEMORY_H

#include "gp/user/domain.h"
#include "gp/user/slots.h"

static inline unsigned slots_in_use(const struct prudence_domain *domain)
{
    struct reader_chunk *chunk;
    struct reader_slot *slot;
    unsigned count = 0;

    for_each_slot(chunk, slot, domain) count++;
    return count;
}

/* Returns the bytes of metadata of the whole process. */
static inline uint64_t metadata(void)
{
    struct os_pages_stats stats;

    os_pages_stats(&stats);
    return stats.metadata;
}

#endif /* TESTS_SUPPORT_READER_MEMORY_H */
