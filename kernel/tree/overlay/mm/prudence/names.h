/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Renames identifiers of Prudence that the kernel also has. Included after the kernel's headers
 * (os_prefix.h), so their declarations keep the kernel's names.
 */
#ifndef PRUDENCE_NAMES_H
#define PRUDENCE_NAMES_H

#define slab_caches prudence_slab_caches /* mm/slab_common.c */

#endif /* PRUDENCE_NAMES_H */
