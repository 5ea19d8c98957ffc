/* SPDX-License-Identifier: MIT */
/* Sections of tables whose updates are called outside of sections, and are readers, too. */
#ifndef STRUCTURES_OWN_SECTIONS_H
#define STRUCTURES_OWN_SECTIONS_H

#include "gp/user/domain.h"

/* Whether updates enter one. Otherwise the caller is inside one by other rules: of a member of the set, or of the other scheme. */
static inline bool has_own_sections(const struct prudence_domain *domain)
{
    return domain->kind != PRUDENCE_DOMAIN_SET && domain->kind != PRUDENCE_DOMAIN_EXTERNAL;
}

#endif /* STRUCTURES_OWN_SECTIONS_H */
