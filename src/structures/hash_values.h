/* SPDX-License-Identifier: MIT */
/* Hash tables of values inside (<prudence/hash_values.h>, ADR 87). */
#ifndef STRUCTURES_HASH_VALUES_H
#define STRUCTURES_HASH_VALUES_H

#include <prudence/hash_values.h>

#include "structures/entries.h"
#include "structures/hash.h"
#include "structures/siphash.h"

struct prudence_hash_values {
    struct hash_table
        *table; /* constant, as is all that readers load, which is in the first line */
    struct siphash_key secret;
    bool strings;      /* keys are byte strings */
    bool own_sections; /* own_sections.h */
    struct prudence_domain *domain;
    struct entries entries;
};

#endif /* STRUCTURES_HASH_VALUES_H */
