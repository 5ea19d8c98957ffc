/* SPDX-License-Identifier: MIT */
/* Sections of tables whose updates are called outside of sections, but are readers too. */
#ifndef TABLES_OWN_SECTIONS_H
#define TABLES_OWN_SECTIONS_H

#include <prudence/structure.h>

/* Returns whether updates enter a section. If not, the rules of the domain's members or of the
 * external scheme already put the caller inside one. */
static inline bool has_own_sections(const struct prudence_domain *domain)
{
    const enum prudence_domain_kind kind = prudence_domain_kind_of(domain);

    return kind != PRUDENCE_DOMAIN_SET && kind != PRUDENCE_DOMAIN_EXTERNAL;
}

#endif /* TABLES_OWN_SECTIONS_H */
