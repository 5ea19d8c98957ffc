/* SPDX-License-Identifier: MIT */
/*
 * BEFORE_CONSTRUCTORS(function) runs `function` before the library's constructors. musl ignores
 * .preinit_array. There the function is the program's first constructor, which is early enough
 * because tests have the library's objects in the program itself.
 */
#ifndef TESTS_SUPPORT_BEFORE_CONSTRUCTORS_H
#define TESTS_SUPPORT_BEFORE_CONSTRUCTORS_H

#include <features.h>

#ifdef __GLIBC__
#define BEFORE_CONSTRUCTORS_SECTION ".preinit_array"
#else
#define BEFORE_CONSTRUCTORS_SECTION ".init_array.00001" /* the library's first has 101 */
#endif

typedef void before_constructors_function(void);

#define BEFORE_CONSTRUCTORS(function)                                                              \
    static before_constructors_function *const before_constructors                                 \
        __attribute__((section(BEFORE_CONSTRUCTORS_SECTION), used)) = function

#endif /* TESTS_SUPPORT_BEFORE_CONSTRUCTORS_H */
