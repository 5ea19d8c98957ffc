/* SPDX-License-Identifier: MIT */
/* Hash tables of values (<prudence/hash_values.h>, ADR 67). */
#ifndef TABLES_HASH_VALUES_H
#define TABLES_HASH_VALUES_H

#include <prudence/hash_values.h>

#include "tables/entries.h"
#include "tables/hash.h"

struct prudence_hash_values {
    /* Constant, like all that readers load, which is in the first cache line. */
    struct hash_table *table;
    struct prudence_hash_secret secret;
    bool strings;      /* keys are byte strings */
    bool own_sections; /* own_sections.h */
    struct prudence_domain *domain;
    struct entries entries;
};

#endif /* TABLES_HASH_VALUES_H */
