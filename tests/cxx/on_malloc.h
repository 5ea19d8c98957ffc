/* SPDX-License-Identifier: MIT */
/* Whether a program of tests/cxx is linked with libprudence-malloc. */
#ifndef ON_MALLOC_H
#define ON_MALLOC_H

extern const bool on_malloc;

#endif /* ON_MALLOC_H */
