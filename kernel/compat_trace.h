/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Hides the differences between the tracepoint macros of kernels 6.1 to 7.3. */
#ifndef PRUDENCE_COMPAT_TRACE_H
#define PRUDENCE_COMPAT_TRACE_H

#include <linux/version.h>

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
#define compat_assign_str(field, string) __assign_str(field)
#else
#define compat_assign_str(field, string) __assign_str(field, string)
#endif

#endif /* PRUDENCE_COMPAT_TRACE_H */
