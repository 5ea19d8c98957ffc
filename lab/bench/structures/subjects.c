/* SPDX-License-Identifier: MIT */
#include "subjects.h"

#include <gnu/libc-version.h>
#include <string.h>

#include <prudence/prudence.h>

#define DECLARED(name)      extern const struct subject subject_##name
#define DECLARED_BOTH(name) extern const struct subject subject_##name, subject_##name##_strings

/* A peer whose library was missing at build time has a line in left_out instead. */
#define NUMBERS_ONLY(name)        &subject_##name, NULL
#define NUMBERS_AND_STRINGS(name) &subject_##name, &subject_##name##_strings

DECLARED_BOTH(prudence);
DECLARED_BOTH(hash_values);
DECLARED_BOTH(lockfree);
DECLARED_BOTH(rculfhash);
DECLARED_BOTH(ck_ht);
DECLARED_BOTH(ck_hs);
DECLARED_BOTH(tbb);
DECLARED_BOTH(cds_michael);
DECLARED_BOTH(cds_split);
DECLARED(cds_feldman);
DECLARED_BOTH(rte_hash);
DECLARED_BOTH(rwlock);
DECLARED(ids_word);
DECLARED(ids_ordered);
DECLARED(ids_indirect);
DECLARED(counter_split);
DECLARED(counter_atomic);
DECLARED(counter_spin);
DECLARED(counter_semaphore);
DECLARED(version_section);
DECLARED(version_protected);
DECLARED(version_hazard);
DECLARED(version_rwlock);
DECLARED(rename);
DECLARED(rename_twice);
DECLARED(rename_moved);
DECLARED(routes);
DECLARED(binary_trie);
DECLARED(rte_lpm);
DECLARED(rte_fib);
DECLARED(routes_many);
DECLARED(rte_lpm_many);
DECLARED(routes6);
DECLARED(rte_lpm6);
DECLARED(rte_fib6);
DECLARED_BOTH(map);
DECLARED_BOTH(skip_list);
DECLARED_BOTH(ellen);
DECLARED_BOTH(bronson);
DECLARED_BOTH(std_map);

static const struct subject_entry entries[] = {
    {"hash", SUBJECT_OURS, NUMBERS_AND_STRINGS(prudence)},
    {"hash", SUBJECT_OURS, NUMBERS_AND_STRINGS(hash_values)},
    {"hash", SUBJECT_OURS, NUMBERS_AND_STRINGS(lockfree)},
    {"hash", SUBJECT_RCU, NUMBERS_AND_STRINGS(rculfhash)},
    {"hash", SUBJECT_RCU, NUMBERS_AND_STRINGS(ck_ht)},
    {"hash", SUBJECT_RCU, NUMBERS_AND_STRINGS(ck_hs)},
#ifdef LIBCDS_VERSION
    {"hash", SUBJECT_RCU, NUMBERS_AND_STRINGS(cds_michael)},
    {"hash", SUBJECT_RCU, NUMBERS_AND_STRINGS(cds_split)},
    {"hash", SUBJECT_RCU, NUMBERS_ONLY(cds_feldman)},
#endif
#ifdef DPDK_VERSION
    {"hash", SUBJECT_RCU, NUMBERS_AND_STRINGS(rte_hash)},
#endif
#ifdef TBB_VERSION
    {"hash", SUBJECT_LOCK, NUMBERS_AND_STRINGS(tbb)},
#endif
    {"hash", SUBJECT_LOCK, NUMBERS_AND_STRINGS(rwlock)},
    {"ids", SUBJECT_OURS, NUMBERS_ONLY(ids_word)},
    {"ids", SUBJECT_OURS, NUMBERS_ONLY(ids_ordered)},
    {"ids", SUBJECT_OURS, NUMBERS_ONLY(ids_indirect)},
    {"counters", SUBJECT_OURS, NUMBERS_ONLY(counter_split)},
    {"counters", SUBJECT_LOCK, NUMBERS_ONLY(counter_atomic)},
    {"counters", SUBJECT_LOCK, NUMBERS_ONLY(counter_spin)},
    {"counters", SUBJECT_LOCK, NUMBERS_ONLY(counter_semaphore)},
    {"versions", SUBJECT_OURS, NUMBERS_ONLY(version_section)},
    {"versions", SUBJECT_OURS, NUMBERS_ONLY(version_protected)},
    {"versions", SUBJECT_RCU, NUMBERS_ONLY(version_hazard)},
    {"versions", SUBJECT_LOCK, NUMBERS_ONLY(version_rwlock)},
    {"rename", SUBJECT_OURS, NUMBERS_ONLY(rename)},
    {"rename", SUBJECT_OURS, NUMBERS_ONLY(rename_twice)},
    {"rename", SUBJECT_OURS, NUMBERS_ONLY(rename_moved)},
    {"routes", SUBJECT_OURS, NUMBERS_ONLY(routes)},
    {"routes", SUBJECT_LOCK, NUMBERS_ONLY(binary_trie)},
#ifdef DPDK_VERSION
    {"routes", SUBJECT_RCU, NUMBERS_ONLY(rte_lpm)},
    {"routes", SUBJECT_RCU, NUMBERS_ONLY(rte_fib)},
#endif
    {"routes-many", SUBJECT_OURS, NUMBERS_ONLY(routes_many)},
#ifdef DPDK_VERSION
    {"routes-many", SUBJECT_RCU, NUMBERS_ONLY(rte_lpm_many)},
#endif
    {"routes6", SUBJECT_OURS, NUMBERS_ONLY(routes6)},
#ifdef DPDK_VERSION
    {"routes6", SUBJECT_RCU, NUMBERS_ONLY(rte_lpm6)},
    {"routes6", SUBJECT_RCU, NUMBERS_ONLY(rte_fib6)},
#endif
    {"map", SUBJECT_OURS, NUMBERS_AND_STRINGS(map)},
#ifdef LIBCDS_VERSION
    {"map", SUBJECT_RCU, NUMBERS_AND_STRINGS(skip_list)},
    {"map", SUBJECT_RCU, NUMBERS_AND_STRINGS(ellen)},
    {"map", SUBJECT_RCU, NUMBERS_AND_STRINGS(bronson)},
#endif
    {"map", SUBJECT_LOCK, NUMBERS_AND_STRINGS(std_map)},
};
#define ENTRIES (sizeof entries / sizeof entries[0])

static const struct {
    const char *subjects, *package;
} left_out[] = {
#ifndef LIBCDS_VERSION
    {"cds-michael, cds-split, cds-feldman, skip-list, ellen-tree, bronson-tree", "libcds-dev"},
#endif
#ifndef DPDK_VERSION
    {"rte_hash, rte_lpm, rte_lpm-many, rte_fib, rte_lpm6, rte_fib6", "libdpdk-dev"},
#endif
#ifndef TBB_VERSION
    {"tbb", "libtbb-dev"},
#endif
    {NULL, NULL},
};

static const char *const families[] = {"hash",   "ids",         "counters", "versions", "rename",
                                       "routes", "routes-many", "routes6",  "map",      NULL};

const struct subject_entry *subject_entry(unsigned index)
{
    return index < ENTRIES ? &entries[index] : NULL;
}

const char *subject_name(unsigned index)
{
    return index < ENTRIES ? entries[index].numbers->name : NULL;
}

const char *subject_family(unsigned index)
{
    return families[index];
}

const char *subject_kind_name(enum subject_kind kind)
{
    static const char *const names[] = {"ours", "rcu", "lock"};

    return names[kind];
}

static bool is_of(const struct subject_entry *entry, const char *family)
{
    return !strcmp(entry->family, family);
}

bool subject_draws(const struct subject_entry *entry)
{
    static const char *const without[] = {"ids", "counters", "versions", "routes"};

    for (unsigned i = 0; i < sizeof without / sizeof without[0]; i++)
        if (is_of(entry, without[i]))
            return false;
    return true;
}

bool subject_walks(const struct subject_entry *entry)
{
    return !strcmp(entry->numbers->name, "map") || !strcmp(entry->numbers->name, "std-map");
}

bool subject_updates(const struct subject_entry *entry)
{
    return !is_of(entry, "ids");
}

json_t *subject_versions(void)
{
    json_t *versions =
        json_pack("{s:s, s:s, s:s, s:s}", "prudence", prudence_version(), "liburcu",
                  LIBURCU_VERSION, "Concurrency Kit", CK_VERSION, "glibc", gnu_get_libc_version());

#ifdef LIBCDS_VERSION
    json_object_set_new(versions, "libcds", json_string(LIBCDS_VERSION));
#endif
#ifdef DPDK_VERSION
    json_object_set_new(versions, "DPDK", json_string(DPDK_VERSION));
#endif
#ifdef TBB_VERSION
    json_object_set_new(versions, "TBB", json_string(TBB_VERSION));
#endif
    return versions;
}

json_t *subjects_left_out(void)
{
    json_t *list = json_array();

    for (unsigned i = 0; left_out[i].subjects; i++)
        json_array_append_new(list,
                              json_pack("{s:s, s:s+}", "subject", left_out[i].subjects, "why",
                                        left_out[i].package, " was not there when this was built"));
    return list;
}
