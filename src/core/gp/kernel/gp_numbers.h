/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The kernel's pair of grace-period numbers (gp_poll.h), under one name: Linux 7.3 renamed the
 * structure and its two members.
 */
#ifndef GP_KERNEL_NUMBERS_H
#define GP_KERNEL_NUMBERS_H

#include <linux/version.h>

#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 3, 0)
#define GP_NORM norm
#define GP_EXP  exp
#else
#define rcu_gp_seq rcu_gp_oldstate
#define GP_NORM    rgos_norm
#define GP_EXP     rgos_exp
#endif

#endif /* GP_KERNEL_NUMBERS_H */
