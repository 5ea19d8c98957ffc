/* SPDX-License-Identifier: MIT */
/*
 * Numbers of the kernel's interface, which are the same on all processors and never change. The
 * kernel's own headers are a package of their own with musl, and old ones lack some numbers. So
 * no file of the library includes <linux/...>.
 */
#ifndef OS_POSIX_KERNEL_NUMBERS_H
#define OS_POSIX_KERNEL_NUMBERS_H

/* Commands of membarrier, and the flag for one CPU. */
enum {
    MEMBARRIER_CMD_PRIVATE_EXPEDITED = 1 << 3,
    MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED = 1 << 4,
    MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ = 1 << 7,
    MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ = 1 << 8,
    MEMBARRIER_CMD_FLAG_CPU = 1 << 0
};

/* Operations of futex on words of one process. */
enum {
    FUTEX_WAIT_PRIVATE = 0 | 128,
    FUTEX_WAKE_PRIVATE = 1 | 128,
    FUTEX_LOCK_PI_PRIVATE = 6 | 128,
    FUTEX_UNLOCK_PI_PRIVATE = 7 | 128
};

#endif /* OS_POSIX_KERNEL_NUMBERS_H */
