/* SPDX-License-Identifier: MIT */
/*
 * Attributes of all kinds of tables (kinds.h, docs/adr/0134): those of programs that were compiled
 * with other revisions; values that no member has; domains whose readers have no sections.
 *
 * ctest: not-with thread (one thread)
 */
#include "tables/kinds.h"

#include <prudence/hash_values.h>
#include <prudence/id_table.h>
#include <prudence/lockfree_hash.h>
#include <prudence/log.h>
#include <prudence/map_values.h>
#include <prudence/routes.h>

#include "support/gp_child.h"

/* Attributes of any size, with one byte that is not 0. */
static union {
    size_t size;
    unsigned char bytes[8192];
} attr;

static void attributes_of(size_t size, size_t set_byte)
{
    memset(&attr, 0, sizeof attr);
    attr.size = size;
    attr.bytes[set_byte] = 1;
}

static void takes(const struct table_kind *of, const void *given)
{
    void *table = of->create("test", given);

    assert_non_null(table);
    assert_int_equal(of->destroy(table, NULL, NULL), 0);
}

static void refuses(const struct table_kind *of, const char *name, const void *given)
{
    errno = 0;
    assert_null(of->create(name, given));
    assert_int_equal(errno, EINVAL);
}

/* Only members within the size count. The byte after them is garbage. */
static void attributes_of_any_revision_are_taken(void)
{
    takes(tested, NULL);
    for (size_t size = sizeof attr.size; size <= tested->attr_size + 16; size += 8) {
        attributes_of(size, size);
        takes(tested, &attr);
    }
    attributes_of(4096, 4096);
    takes(tested, &attr);
}

static void unknown_members_are_refused(void)
{
    for (size_t byte = tested->attr_size; byte < 256; byte++) {
        attributes_of(256, byte);
        refuses(tested, "test", &attr);
    }
}

static void sizes_that_no_revision_has_are_refused(void)
{
    static const size_t sizes[] = {0, 1, 7, 9, 4104, 8192, SIZE_MAX / 8 * 8, SIZE_MAX};

    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        attributes_of(sizes[i], sizeof attr - 1);
        refuses(tested, "test", &attr);
    }
}

static void tables_without_a_name_are_refused(void)
{
    refuses(tested, NULL, tested->attr);
    refuses(tested, "", tested->attr);
}

#define BAD(which, kind, ...)                                                                      \
    {                                                                                              \
        which, &(const struct prudence_##kind##_attr)                                              \
        {                                                                                          \
            .size = sizeof(struct prudence_##kind##_attr), __VA_ARGS__                             \
        }                                                                                          \
    }

static void values_that_no_member_has_are_refused(void)
{
    const struct {
        enum table_kind_number kind;
        const void *attr;
    } bad[] = {
        BAD(TABLE_HASH, hash, .flags = 1u << 7),
        BAD(TABLE_HASH, hash, .flags = PRUDENCE_HASH_VALUES_BYTES), /* of tables of values */
        BAD(TABLE_HASH, hash, .reserved = 1),
        BAD(TABLE_HASH, hash, .buckets = UINT64_MAX),
        BAD(TABLE_HASH, hash, .buckets = 1000, .buckets_most = 999),
        BAD(TABLE_HASH_VALUES, hash_values,
            .flags = PRUDENCE_HASH_FIXED), /* of tables of objects */
        BAD(TABLE_HASH_VALUES, hash_values, .flags = PRUDENCE_HASH_VALUES_BYTES, .reserved = 1),
        BAD(TABLE_LOCKFREE_HASH, lockfree_hash, .buckets = (UINT64_C(1) << 40) + 1),
        BAD(TABLE_IDS, id_table, .ids = 5, .ids_most = 4),
        BAD(TABLE_MAP, map, .flags = 1u << 7),
        BAD(TABLE_MAP, map, .reserved = 1),
        BAD(TABLE_MAP_VALUES, map_values, .flags = 1u << 7),
        BAD(TABLE_ROUTES_IPV4, routes, .family = 2),
        BAD(TABLE_ROUTES_IPV4, routes, .reserved = 1),
    };

    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (tested == &table_kinds[bad[i].kind])
            refuses(tested, "test", bad[i].attr);
}

/* Copies the attributes of this kind, with the domain. */
static const void *with_domain(struct prudence_domain *domain)
{
    memset(&attr, 0, sizeof attr);
    memcpy(&attr, tested->attr, tested->attr_size);
    memcpy(attr.bytes + tested->domain_at, &domain, sizeof domain);
    return &attr;
}

static int is_refused_in(void *domain)
{
    refuses(tested, "test", with_domain(domain));
    return 0;
}

/* Readers of hazard pointers have none. A set with them and others has those of the others. */
static void domains_without_sections_are_refused(void)
{
    struct prudence_domain *hazard = prudence_domain_create("h", PRUDENCE_DOMAIN_HAZARD, NULL);
    struct prudence_domain *members[] = {hazard, prudence_default_domain()};
    struct prudence_domain *set = prudence_domain_create_set("both", members, 2);
    struct child_result result;

    child_run(is_refused_in, hazard, &result);
    assert_true(child_exited_with(&result, 0));
    assert_true(child_said(&result, "_create: 'test': the domain is of kind hazard"));
    takes(tested, with_domain(set));
    assert_int_equal(prudence_domain_destroy(set), 0);
    assert_int_equal(prudence_domain_destroy(hazard), 0);
}

static const struct table_case cases[] = {
    {"attributes of any revision are taken", attributes_of_any_revision_are_taken, 0, 0},
    {"unknown members are refused", unknown_members_are_refused, 0, 0},
    {"sizes that no revision has are refused", sizes_that_no_revision_has_are_refused, 0, 0},
    {"tables without a name are refused", tables_without_a_name_are_refused, 0, 0},
    {"values that no member has are refused", values_that_no_member_has_are_refused, 0, 0},
    {"domains without sections are refused", domains_without_sections_are_refused, TABLE_DOMAIN, 0},
};

int main(void)
{
    return table_cases_run(cases, sizeof cases / sizeof cases[0]);
}
