/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Names of Prudence that the kernel has as well. Included after the kernel's headers (os_prefix.h), so that theirs keep their own.
 */
#ifndef PRUDENCE_NAMES_H
#define PRUDENCE_NAMES_H

#define slab_caches prudence_slab_caches /* mm/slab_common.c */

#endif /* PRUDENCE_NAMES_H */
