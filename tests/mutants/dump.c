/* SPDX-License-Identifier: MIT */
/*
 * Keeps the counts of a process that ends by abort() or _exit(), in the build that says which lines
 * each test reaches (matrix.py). Every program and library of that build is linked with this.
 */
#include <stdlib.h>
#include <unistd.h>

void __gcov_dump(void);
_Noreturn void __real_abort(void);
_Noreturn void __real__exit(int status);
_Noreturn void __wrap_abort(void);
_Noreturn void __wrap__exit(int status);

void __wrap_abort(void)
{
    __gcov_dump();
    __real_abort();
}

void __wrap__exit(int status)
{
    __gcov_dump();
    __real__exit(status);
}
