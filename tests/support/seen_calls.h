/* SPDX-License-Identifier: MIT */
/* Interposes syscall(2), to see which system calls the library makes through it, or to let one
 * fail. */
#ifndef TESTS_SUPPORT_SEEN_CALLS_H
#define TESTS_SUPPORT_SEEN_CALLS_H

#include <dlfcn.h>
#include <stdarg.h>

/* Defined by the test; called before each call, in any thread. It may change the arguments. */
static void sees_call(long number, long *arguments);

long syscall(long number, ...)
{
    static long (*next)(long number, ...);
    long argument[6];
    va_list list;

    va_start(list, number);
    for (int i = 0; i < 6; i++)
        argument[i] = va_arg(list, long);
    va_end(list);
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "syscall");
    sees_call(number, argument);
    return next(number, argument[0], argument[1], argument[2], argument[3], argument[4],
                argument[5]);
}

#endif /* TESTS_SUPPORT_SEEN_CALLS_H */
