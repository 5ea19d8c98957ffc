/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The parts of a libc's <stdint.h> that base/ needs. */
#ifndef OS_KERNEL_STDINT_H
#define OS_KERNEL_STDINT_H

#include <linux/limits.h>
#include <linux/types.h>

#define UINT32_C(number) number##U
#define UINT64_C(number) number##ULL
#ifndef UINT64_MAX
#define UINT64_MAX U64_MAX
#endif
#ifndef INT64_MAX
#define INT64_MAX S64_MAX
#endif
#ifndef PTRDIFF_MAX
#define PTRDIFF_MAX LONG_MAX
#endif

#endif /* OS_KERNEL_STDINT_H */
