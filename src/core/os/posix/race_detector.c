/* SPDX-License-Identifier: MIT */
/* ThreadSanitizer's functions, present if any part of the process was built with
 * ThreadSanitizer. */
#include "os/os.h"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer) && !defined(__SANITIZE_THREAD__)
#define __SANITIZE_THREAD__ 1
#endif
#endif

bool race_detector_on READ_MOSTLY = false;
const char race_detector_pages;

#ifdef __SANITIZE_THREAD__

void race_detector_start(bool wanted)
{
    (void)wanted;
}

bool race_detector_is_there(void)
{
    return true;
}

void race_detector_release(const void *address)
{
    (void)address;
}

void race_detector_acquire(const void *address)
{
    (void)address;
}

#else

extern void __tsan_release(void *address) __attribute__((weak));
extern void __tsan_acquire(void *address) __attribute__((weak));

void race_detector_start(bool wanted)
{
    race_detector_on = wanted && __tsan_release && __tsan_acquire;
}

bool race_detector_is_there(void)
{
    return __tsan_release != NULL;
}

void race_detector_release(const void *address)
{
    __tsan_release((void *)(uintptr_t)address);
}

void race_detector_acquire(const void *address)
{
    __tsan_acquire((void *)(uintptr_t)address);
}

#endif

/* Volatile, so the compiler does not turn the loops into calls of memset and memcpy. */
void race_detector_fill(void *at, char byte, size_t bytes)
{
    volatile char *to = at;

    while (bytes--)
        *to++ = byte;
}

void race_detector_copy(void *to, const void *from, size_t bytes)
{
    volatile char *target = to;
    const volatile char *source = from;

    while (bytes--)
        *target++ = *source++;
}

void race_detector_move(void *to, const void *from, size_t bytes)
{
    volatile char *target = to;
    const volatile char *source = from;

    if ((uintptr_t)to <= (uintptr_t)from) {
        race_detector_copy(to, from, bytes);
        return;
    }
    while (bytes--)
        target[bytes] = source[bytes];
}
