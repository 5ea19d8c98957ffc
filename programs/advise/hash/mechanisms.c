/* SPDX-License-Identifier: MIT */
/* The list of mechanisms, by the thesis' names (L5896). */
#include "loops.h"
#include "operations.h"

#define LOCKED(name)                                                                               \
    {                                                                                              \
#name, name##_work, name##_work_checked, locked_prepare, hash_check_chains,                \
            PRUDENCE_DOMAIN_MEMB                                                                   \
    }

const struct hash_mechanism hash_mechanisms[] = {
    LOCKED(ideal),
    {"rcu", rcu_work, rcu_work_checked, rcu_prepare, hash_check_chains, PRUDENCE_DOMAIN_MEMB},
    {"prudence", prudence_work, prudence_work_checked, prudence_prepare, prudence_check_whole,
     PRUDENCE_DOMAIN_MEMB},
    {"hazard", hazard_work, hazard_work_checked, rcu_prepare, hash_check_chains,
     PRUDENCE_DOMAIN_HAZARD},
    LOCKED(brlock),
    LOCKED(bkt),
    LOCKED(bktcl),
    LOCKED(bktrw),
    LOCKED(globalrw),
    LOCKED(global),
};

const char *hash_mechanism_name(unsigned index)
{
    return index < sizeof hash_mechanisms / sizeof *hash_mechanisms ? hash_mechanisms[index].name
                                                                    : NULL;
}
