/* SPDX-License-Identifier: MIT */
/* Options that another process sets by writing them into this one's memory (request.c). */
#ifndef OBSERVE_REQUEST_H
#define OBSERVE_REQUEST_H

#include "base/base.h"

/* What is asked. Written from outside, so nothing of it is trusted. */
struct request {
    uint64_t asked;  /* 0, or the ticket in the upper half and 1 in the lower; atomic */
    uint64_t answer; /* the ticket of the last one, and an error number or 0; atomic */
    uint32_t sum;    /* request_sum() of the members below */
    uint32_t ticket; /* a number that the asking process draws */
    int32_t process; /* the process that is meant, because a child of fork has a copy */
    char name[32];   /* of the option */
    char value[160];
};

/* As many may wait at a time. A process that asks takes the first that is free. */
#define REQUESTS 8
extern struct request requests[REQUESTS];

/* A sum by which a request that two processes wrote at the same time is noticed (FNV-1a). */
uint32_t request_sum(const struct request *of);

void request_obey(void);

#endif /* OBSERVE_REQUEST_H */
