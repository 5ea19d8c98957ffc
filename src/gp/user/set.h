/* SPDX-License-Identifier: MIT */
/* Sets of domains (see set.c). */
#ifndef GP_USER_SET_H
#define GP_USER_SET_H

#include "gp/user/domain.h"

struct domain_set {
    unsigned count, sections; /* members; the first of them, which have sections */
    uint64_t begun, passed;   /* passed = completed without hazard members */
    uint64_t named;           /* the goal of the cookies of hazard members */
    struct prudence_domain *members[PRUDENCE_DOMAIN_SET_MAX];
    gp_cookie cookies[PRUDENCE_DOMAIN_SET_MAX]; /* one of each member */
    gp_cookie barrier; /* the first hazard member's cookie, taken with those of sections */
};

extern const struct gp_scheme gp_set_with_hazards;
bool set_has(const struct prudence_domain *set, const struct prudence_domain *domain);
bool set_any(const struct prudence_domain *set, bool (*is)(const struct prudence_domain *member));
bool set_has_hazards(const struct prudence_domain *domain); /* false unless a set */
unsigned set_members(const struct prudence_domain *domain, struct prudence_domain *const **members);
void set_hold_members(struct prudence_domain *domain); /* no effect unless a set */

#endif /* GP_USER_SET_H */
