/* SPDX-License-Identifier: MIT */
/*
 * What the keys of tables stand for (kinds.h): numbers, strings and prefixes, each sorted and
 * without duplicates, and chosen so that a table of all of them has every shape.
 */
#ifndef TESTS_TABLES_KEYS_H
#define TESTS_TABLES_KEYS_H

#include <stddef.h>
#include <stdint.h>

#include <prudence/routes.h>

#define KEYS_MOST       3000
#define KEY_LENGTH_MOST 600

struct key_string {
    uint8_t bytes[KEY_LENGTH_MOST];
    size_t length;
};

extern uint64_t key_numbers[KEYS_MOST];
extern struct key_string key_strings[KEYS_MOST];
extern struct prudence_routes_prefix key_prefixes[2][KEYS_MOST]; /* by family */
extern unsigned key_number_count, key_string_count, key_prefix_counts[2];

/* Makes all keys, at the first call. */
void keys_make(void);

/* Instead of them: begins with none; adds one; sorts them, at the end. */
void keys_clear(void);
void keys_add_number(uint64_t number);
void keys_add_string(const void *bytes, size_t length);
void keys_add_prefix(unsigned family, struct prudence_routes_prefix prefix);
void keys_sort(void);

/* Return which key this is, or fail the test if it is none. */
unsigned key_of_number(uint64_t number);
unsigned key_of_bytes(const void *bytes, size_t length);
unsigned key_of_prefix(unsigned family, const struct prudence_routes_prefix *prefix);

#endif /* TESTS_TABLES_KEYS_H */
