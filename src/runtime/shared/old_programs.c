/* SPDX-License-Identifier: MIT */
/*
 * Serves programs that were compiled before symbols had versions. The dynamic loader binds a name
 * without a version to the symbol of version PRUDENCE_0.0 if there is one, and otherwise to the
 * symbol that new programs use.
 *
 *  - A function that filled a structure of fixed size fills that size.
 *  - A function that is gone, or has another meaning now, stops the process with a sentence.
 *
 * Only the shared libraries have this file, because a static program is linked with one library for
 * good.
 */
#include <prudence/scm.h>

#include "os/os.h"

/* This file is compiled without LTO, which would lose the line. */
#define OLD(name) __asm__(".symver old_programs_" #name ", " #name "@PRUDENCE_0.0")

#define REFUSED(name)                                                                              \
    PRUDENCE_API void old_programs_##name(void);                                                   \
    void old_programs_##name(void)                                                                 \
    {                                                                                              \
        old_programs_refuse(#name);                                                                \
    }                                                                                              \
    OLD(name)

static void __attribute__((noreturn)) old_programs_refuse(const char *name)
{
    os_panic(
        "%s: this program was compiled for an earlier revision, in which this function was "
        "another one, or was not linked with the library; compile and link it again "
        "(docs/reference/abi.md)",
        name);
}

/* ------------------------------------------------------------------------------------- changed */

PRUDENCE_API void old_programs_scm_get_mem_info(struct scm_mem_info *info);
PRUDENCE_API void old_programs_scm_get_region_info(struct scm_region_info *info);

void old_programs_scm_get_mem_info(struct scm_mem_info *info)
{
    scm_get_mem_info_sized(info, 10 * sizeof(unsigned long));
}

void old_programs_scm_get_region_info(struct scm_region_info *info)
{
    scm_get_region_info_sized(info, 2 * sizeof(unsigned long));
}

OLD(scm_get_mem_info);
OLD(scm_get_region_info);

/* ------------------------------------------------------------------------------------- refused */

/* Tables have other functions and arguments now, and inlined lookups read other layouts. A program
 * cannot make a table of its kind, so it never comes to the functions whose names remain. */
REFUSED(prudence_hash_create);
REFUSED(prudence_hash_add_replace);
REFUSED(prudence_hash_add_unique);

REFUSED(prudence_hash_values_create);
REFUSED(prudence_hash_values_exchange);
REFUSED(prudence_hash_values_exchange_bytes);
REFUSED(prudence_hash_values_insert);
REFUSED(prudence_hash_values_insert_bytes);

REFUSED(prudence_id_table_create);
REFUSED(prudence_id_count);
REFUSED(prudence_id_insert);
REFUSED(prudence_id_next);
REFUSED(prudence_id_remove);
REFUSED(prudence_id_replace);

REFUSED(prudence_lockfree_hash_create);
REFUSED(prudence_lockfree_hash_add_replace);
REFUSED(prudence_lockfree_hash_add_unique);

REFUSED(prudence_map_create);
REFUSED(prudence_map_add_replace);
REFUSED(prudence_map_add_unique);
REFUSED(prudence_map_exchange);
REFUSED(prudence_map_exchange_bytes);
REFUSED(prudence_map_insert);
REFUSED(prudence_map_insert_bytes);
REFUSED(prudence_map_put_bytes);
REFUSED(prudence_map_remove_bytes);
REFUSED(prudence_map_remove_node);

REFUSED(prudence_routes_create);
REFUSED(prudence_routes_remove);
REFUSED(prudence_routes_walk_begin);
REFUSED(prudence_routes_walk_next);
