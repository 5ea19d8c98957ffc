/* SPDX-License-Identifier: MIT */
/* Sets of domains (see set.c). */
#ifndef TOOLKIT_DOMAINS_SET_H
#define TOOLKIT_DOMAINS_SET_H

#include "gp/user/domain.h"

struct domain_set {
    unsigned count, sections; /* members; the first of them, which have sections */
    uint64_t begun, passed;   /* passed = completed without hazard members */
    uint64_t named;           /* the goal of the cookies of hazard members */
    struct prudence_domain *members[PRUDENCE_DOMAIN_SET_MAX];
    gp_cookie cookies[PRUDENCE_DOMAIN_SET_MAX]; /* one of each member */
    gp_cookie barrier; /* the first hazard member's cookie, taken with those of sections */
};

#endif /* TOOLKIT_DOMAINS_SET_H */
