/* SPDX-License-Identifier: MIT */
/*
 * Thousands of small tables of each kind (kinds.h): what each takes, and that the memory goes back
 * to the system when they are destroyed.
 *
 * ctest: not-with sanitizers (they take memory of their own for each object)
 */
#include "tables/kinds.h"

#include <stdio.h>

#include "tables/object_count.h"

#define TABLES 5000

static void *tables[TABLES];
static struct entry value;

/* A table of values has one. */
static void *make(void)
{
    void *table = table_make(tested, NULL);

    if (tested->replace && !(tested->flags & TABLE_OBJECTS))
        assert_int_equal(tested->put(table, 1, &value, NULL), 0);
    return table;
}

static void no_value(struct entry *entry, void *unused)
{
    assert_ptr_equal(entry, &value);
}

static void end(void *table)
{
    assert_int_equal(tested->destroy(table, no_value, NULL), 0);
}

/* Returns the resident bytes that are not pages of files. */
static long resident(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    long all, pages, of_files;

    assert_non_null(file);
    assert_int_equal(fscanf(file, "%ld %ld %ld", &all, &pages, &of_files), 3);
    fclose(file);
    return (pages - of_files) * (long)os_page_size;
}

/* The counters of tables for each CPU come on top of `most` bytes. Two rounds, because memory that
 * stays is taken again by the next tables. */
static void take_at_most(long most)
{
    long before, peak;

    end(make()); /* the library takes what it takes once */
    before = resident();
    if (object_counters() > 2)
        most += (long)((object_counters() - 2) * sizeof(struct object_counter));
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < TABLES; i++)
            tables[i] = make();
        peak = resident() - before;
        assert_in_range(peak, 1, TABLES * most);
        for (unsigned i = 0; i < TABLES; i++)
            end(tables[i]);
        assert_true(resident() - before <= peak / 10);
    }
}

static void small_tables_take_little(void)
{
    if (tested->flags & TABLE_KEEPS)
        take_at_most(6144);
    else
        take_at_most(tested->flags & (TABLE_OBJECTS | TABLE_CHOOSES) ? 1536 : 3072);
}

static const struct table_case cases[] = {
    {"small tables take little", small_tables_take_little, TABLE_DOMAIN, TABLE_PREPARED},
};

int main(void)
{
    return table_cases_run(cases, sizeof cases / sizeof cases[0]);
}
