/* SPDX-License-Identifier: MIT */
/* Parts that members of the archive other than the core enter, in addition to parts of fork
 * (entered.h). */
#ifndef OS_POSIX_MEMBER_PARTS_H
#define OS_POSIX_MEMBER_PARTS_H

#include "entered.h"

struct slab_extension;
struct scm_mem_info;
struct scm_region_info;

/* An extension of the slab layer, for a place that whole/parts.c keeps for it. */
struct extension_part {
    unsigned number;
    const struct slab_extension *extension;
};
ENTERED_SET(struct extension_part, extension_parts);

/* Statistics of short-term memory. */
struct statistics_part {
    void (*memory)(struct scm_mem_info *info);
    void (*regions)(struct scm_region_info *info);
};
ENTERED_SET(struct statistics_part, statistics_parts);

#endif /* OS_POSIX_MEMBER_PARTS_H */
