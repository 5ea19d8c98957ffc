/* SPDX-License-Identifier: MIT */
/* Hash tables of values (<prudence/hash_values.h>, ADR 67). */
#ifndef STRUCTURES_HASH_VALUES_H
#define STRUCTURES_HASH_VALUES_H

#include <prudence/hash_values.h>

#include "structures/entries.h"
#include "structures/hash.h"

struct prudence_hash_values {
    /* Constant, like all that readers load, which is in the first cache line. */
    struct hash_table *table;
    struct prudence_hash_secret secret;
    bool strings;      /* keys are byte strings */
    bool own_sections; /* own_sections.h */
    struct prudence_domain *domain;
    struct entries entries;
};

#endif /* STRUCTURES_HASH_VALUES_H */
