/* SPDX-License-Identifier: MIT */
/* Whether <prudence/inline.h> inlines in a program that includes it everywhere (modes/record.c). */
#ifdef PRUDENCE_INLINED
extern const int test_inlined;
const int test_inlined = PRUDENCE_INLINED;
#else
typedef int no_declaration; /* the program does not include the header */
#endif
