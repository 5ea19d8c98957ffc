/* SPDX-License-Identifier: MIT */
/*
 * The core alone: the tables by which it calls other parts, with none of them (whole/parts.c has
 * those of the library). The archive prudence-core is the core with this file.
 */
#include "fork_part.h"
#include "gp/user/domain.h"
#include "heap/cold.h"
#include "heap/upcalls.h"
#include "process.h"
#include "process/options.h"
#include "slab/reuse.h"

const struct slab_extension *const slab_extensions[OS_EXTENSIONS] = {
    [COLD_EXTENSION] = &cold_extension,
};
const struct heap_upcalls heap_upcalls = {.of_cold = 0};
const struct reuse_upcalls reuse_upcalls = {.may_reuse = NULL};

const struct domain_queue domain_queue = {.make = NULL};
const struct gp_scheme *const gp_schemes[] = {
    [PRUDENCE_DOMAIN_MEMB] = &gp_memb,
    [PRUDENCE_DOMAIN_QSBR] = &gp_memb,
    [PRUDENCE_DOMAIN_MANUAL] = &gp_manual,
};
const unsigned gp_schemes_count = sizeof gp_schemes / sizeof gp_schemes[0];
const struct gp_part *const gp_parts[] = {NULL};

const struct process_part other_parts[] = {{.name = NULL}};
const struct fork_part *const other_fork_parts[] = {NULL};
const struct option *const option_tables[] = {core_options, NULL};
