/* SPDX-License-Identifier: MIT */
/*
 * System calls that the program cannot interpose. syscall() is an ordinary function of the C
 * library, and a tracer's replacement may allocate in every call.
 */
#ifndef OS_POSIX_SYSTEM_CALL_H
#define OS_POSIX_SYSTEM_CALL_H

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Returns the kernel's answer: the result, or a negative error number. Leaves errno alone on
 * x86-64 and AArch64. */
static inline long bare_system_call(long number, long a, long b, long c, long d, long e, long f)
{
#if defined(__x86_64__) && defined(__LP64__)
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long result;

    __asm__ __volatile__("syscall"
                         : "=a"(result)
                         : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                         : "rcx", "r11", "memory");
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number;
    register long result __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;

    __asm__ __volatile__("svc #0"
                         : "+r"(result)
                         : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                         : "memory");
#else
    long result;

#if defined(__s390x__)
    if (number == SYS_mmap) { /* takes its arguments in memory */
        const long arguments[] = {a, b, c, d, e, f};

        result = syscall(number, arguments);
    } else
#endif
        result = syscall(number, a, b, c, d, e, f);
    if (result == -1)
        result = -errno;
#endif
    return result;
}

/* Returns the result, or -1 with errno set, like syscall(). */
static inline long system_call(long number, long a, long b, long c, long d, long e, long f)
{
    long result = bare_system_call(number, a, b, c, d, e, f);

    if (result >= 0 || result < -4095)
        return result;
    errno = (int)-result;
    return -1;
}

#endif /* OS_POSIX_SYSTEM_CALL_H */
