/* SPDX-License-Identifier: MIT */
/*
 * Sets of entries. By these the core of the library reaches parts that a program may lack
 * (ADR 26), and names none of them.
 *
 * Each part enters its functions in a set. The linker gathers the entries of a set, so a set is
 * whole before any code runs. The order of constructors does not matter, and the dynamic loader's
 * first malloc may start the library before all of them. A static program has the entries of those
 * members of the archive that the program uses.
 *
 * Each entry is a pointer, because the compiler may align structures further apart.
 */
#ifndef OS_POSIX_ENTERED_H
#define OS_POSIX_ENTERED_H

#include "base/base.h"

/* `retain` keeps an entry where a linker drops sections to which nothing refers. */
#if __has_attribute(retain)
#define ENTERED_KEPT used, retain
#else
#define ENTERED_KEPT used
#endif

/* Enters `entry`, a constant structure, in `set`. For file scope. An entry is visible to other
 * files, so that a linker can be asked to take it (-u). */
#define ENTER(set, entry)                                                                          \
    static const __typeof(entry) *const entry##_entered                                            \
        __attribute__((section("prudence_" #set), ENTERED_KEPT)) = &(entry)

/* Declares a set. Its ends are weak, because it may have no entry. */
#define ENTERED_SET(type, set)                                                                     \
    extern HIDDEN const type *const __start_prudence_##set[] __attribute__((weak));                \
    extern HIDDEN const type *const __stop_prudence_##set[] __attribute__((weak))

/* Visits all entries of a set, in no order. `at` is a pointer to an entry's pointer. */
#define for_each_entered(at, set)                                                                  \
    for ((at) = __start_prudence_##set; (at) != __stop_prudence_##set; (at)++)

#endif /* OS_POSIX_ENTERED_H */
