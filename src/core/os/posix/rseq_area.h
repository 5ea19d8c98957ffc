/* SPDX-License-Identifier: MIT */
/* Where the C library has registered each thread's struct rseq (rseq_area.c). */
#ifndef OS_POSIX_RSEQ_AREA_H
#define OS_POSIX_RSEQ_AREA_H

#include "base/base.h"

/* What glibc says since 2.35. Constant after start. */
struct rseq_area {
    bool known;       /* false before glibc 2.35, and with other C libraries */
    unsigned size;    /* 0 if glibc did not register the struct; `offset` is valid all the same */
    ptrdiff_t offset; /* of the struct, from the thread pointer */
};

extern HIDDEN struct rseq_area posix_rseq_area;

/* Finds out. Called first at start; async-signal-safe, and allocates nothing. */
void posix_rseq_area_start(void);

#endif /* OS_POSIX_RSEQ_AREA_H */
