/* SPDX-License-Identifier: MIT */
/*
 * What an option is. Each part of the library has the rows of its own options, and the table of the
 * embedding program has them all (option_tables). docs/reference/options.md describes each.
 *
 * A row stores a value. Actions that need no lock, and may allocate or make threads, are for
 * process_act().
 */
#ifndef PROCESS_OPTION_H
#define PROCESS_OPTION_H

#include "base/base.h"

/* `most` limits a number. `choices` are the words allowed; the value is an index. Options with text
 * have `keep` instead of `parse`. */
struct option {
    const char *name;
    const char *values; /* expected values, for messages */
    bool (*parse)(const struct option *option, const char *text, uint64_t *value);
    bool (*keep)(const char *text);
    uint64_t most;
    const char *const *choices;
    bool (*possible)(uint64_t value); /* NULL if every value that parses is possible */
    bool (*keeps_from)(
        uint64_t
            value); /* an earlier setting rules the value out at run time; NULL if nothing does */

    uint64_t *word; /* the value goes to one of these three */
    bool *flag;
    void (*set)(uint64_t value);

    bool at_start; /* may change at start, and until the first cache is made */
    bool at_load;  /* environment only, because nothing may be mapped yet */
    void (*apply)(
        void); /* with at_start: makes a change after the start effective; called under heap_lock */
    void (*begin)(void); /* the same when there are caches; NULL: it is too late then */
};

/* Expected values that several options have. */
#define OPTION_BYTES "bytes (K, M, G)"
#define OPTION_LIMIT "bytes (K, M, G); 0: none"
#define OPTION_PATH  "a path of at most 127 bytes; %p: the process's id"

/* What a row begins with. */
#define ROW_BYTES(name, values)        name, values, option_parse_bytes
#define ROW_TIME(name, values)         name, values, option_parse_time
#define ROW_COUNT(name, values, n)     name, values, option_parse_count, .most = (n)
#define ROW_CHOICE(name, values, list) name, values, option_parse_choice, .choices = (list)
#define ROW_TEXT(name, values, f)      name, values, .keep = (f)
#define ROW_SWITCH(name)               ROW_CHOICE(name, "0 or 1", option_switches)

extern const char *const option_switches[];
bool option_parse_bytes(const struct option *option, const char *text, uint64_t *value);
bool option_parse_time(const struct option *option, const char *text, uint64_t *value);
bool option_parse_count(const struct option *option, const char *text, uint64_t *value);
bool option_parse_choice(const struct option *option, const char *text, uint64_t *value);

/* Tables of rows. The last row of a table has no name, and after the last table is NULL. */
extern const struct option *const option_tables[];

#endif /* PROCESS_OPTION_H */
