/* SPDX-License-Identifier: MIT */
/*
 * The functions that the headers of tables and small structures define, as functions of the
 * library, for bindings of other languages (<prudence/bindings.h>).
 */
#include <prudence/language.h>

#undef PRUDENCE_INLINE
#define PRUDENCE_INLINE PRUDENCE_API
#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* the headers have definitions only */

#include <prudence/hash.h>
#include <prudence/hash_rename.h>
#include <prudence/id_table.h>
#include <prudence/lockfree_hash.h>
#include <prudence/map.h>
#include <prudence/map_values.h>
#include <prudence/ref.h>
#include <prudence/routes.h>
#include <prudence/stack.h>
#include <prudence/swap.h>
