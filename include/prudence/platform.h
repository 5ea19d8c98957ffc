/* SPDX-License-Identifier: MIT */
/* Private to the other headers. Refuses programs for platforms on which the library cannot work. */
#ifndef PRUDENCE_PLATFORM_H
#define PRUDENCE_PLATFORM_H

#if !defined(__SIZEOF_POINTER__) || __SIZEOF_POINTER__ != 8
#error "Prudence needs a 64-bit program: pointers of 8 bytes."
#endif

#endif /* PRUDENCE_PLATFORM_H */
