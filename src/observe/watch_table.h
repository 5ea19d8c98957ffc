/* SPDX-License-Identifier: MIT */
/* The table by which other processes find this one's figures (watch_table.c). */
#ifndef OBSERVE_WATCH_TABLE_H
#define OBSERVE_WATCH_TABLE_H

#include "base/base.h"

#define WATCH_TABLE_NAME "prudence-watch"

/* Version of the table. Changes when a name disappears or means something else, not when a member
 * is added, moved or resized. */
#define WATCH_TABLE_LAYOUT 3

/* Rows of one kind. Names end at a NUL, or where their place does. */
struct watch_number {
    char name[32];
    uint64_t value;
};
struct watch_address {
    char name[32];
    const void *address;
};
struct watch_member {
    char name[40]; /* STRUCTURE.MEMBER; without a member the structure as a whole */
    uint32_t offset, bytes;
};
struct watch_counter {
    char name[32];     /* GROUP.FIGURE */
    char places[64];   /* members, or a variable among the addresses */
    char meaning[112]; /* one sentence */
};

struct watch_rows {
    const void *rows;
    uint32_t count, bytes; /* number of rows, and size of each */
};
struct watch_table {
    char name[16]; /* WATCH_TABLE_NAME */
    uint32_t layout, kinds;
    char version[32];
    struct watch_rows numbers, addresses, members, counters;
};
extern const struct watch_table watch_table;

#endif /* OBSERVE_WATCH_TABLE_H */
