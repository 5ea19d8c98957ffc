/* SPDX-License-Identifier: MIT */
/*
 * For bindings of other languages, which load the library and cannot use what a C compiler makes of
 * the headers (docs/reference/abi.md). Programs in C and C++ need nothing of this header.
 *
 *  - A function that a header defines (PRUDENCE_INLINE) is in the library under the same name, and
 *    behaves the same. It costs a call more.
 *  - The functions that fill structures, such as prudence_stats, are in the library with a size
 *    (prudence_stats_sized). Give the size of the structure as the binding declares it.
 *  - The functions below stand in for macros and for sizeof. Other macros are made of functions: a
 *    loop of a first and a next, an entry of an address and the offset of its member.
 */
#ifndef PRUDENCE_BINDINGS_H
#define PRUDENCE_BINDINGS_H

#include <prudence/prudence.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Do what prudence_dereference(*place) and prudence_assign_pointer(*place, value) do. The first
 * does not check its caller; prudence_check_reader does. Async-signal-safe.
 */
PRUDENCE_API void *prudence_dereference_at(void *const *place);
PRUDENCE_API void prudence_assign_pointer_at(void **place, void *value);

/*
 * Return the size and the alignment, in bytes, of a structure or type of the public headers in this
 * library: "prudence_head", "prudence_gp_t". Return 0 if the library knows no type of that name.
 * Bindings compare them with their own declarations, and allocate by them. Async-signal-safe. Cost:
 * a search through some fifty names.
 */
PRUDENCE_API size_t prudence_sizeof(const char *type);
PRUDENCE_API size_t prudence_alignof(const char *type);

#ifdef __cplusplus
}
#endif

#endif /* PRUDENCE_BINDINGS_H */
