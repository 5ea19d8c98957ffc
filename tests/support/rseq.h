/* SPDX-License-Identifier: MIT */
/* Unregisters and reregisters a thread's struct rseq, as tracers and other runtimes do. */
#ifndef TESTS_SUPPORT_RSEQ_H
#define TESTS_SUPPORT_RSEQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/os.h"

#if defined(__aarch64__)
#define RSEQ_SIGNATURE 0xd428bc00
#else
#define RSEQ_SIGNATURE 0x53053053
#endif
#define RSEQ_UNREGISTER 1

static inline uint32_t *rseq_struct(void)
{
    return (uint32_t *)((char *)__builtin_thread_pointer() + os_percpu_rseq_offset);
}

/* Tries every size, because the C library does not report which one it registered and the kernel
 * accepts no other. */
static inline bool rseq_call(int flags)
{
    for (unsigned size = 32; size <= 256; size += 32)
        if (!syscall(SYS_rseq, rseq_struct(), size, flags, RSEQ_SIGNATURE))
            return true;
    return false;
}

static inline bool rseq_unregister(void)
{
    return rseq_call(RSEQ_UNREGISTER);
}

static inline bool rseq_register(void)
{
    return rseq_call(0);
}

#endif /* TESTS_SUPPORT_RSEQ_H */
