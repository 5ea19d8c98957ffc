/* SPDX-License-Identifier: MIT */
/* All that prudence-structures can measure, and what it was built without. */
#ifndef BENCH_STRUCTURES_SUBJECTS_H
#define BENCH_STRUCTURES_SUBJECTS_H

#include <jansson.h>
#include <stdbool.h>

#include "subject.h"

enum subject_kind {
    SUBJECT_OURS,
    SUBJECT_RCU, /* a peer whose readers lock nothing, and whose writers wait for readers, or let others wait */
    SUBJECT_LOCK, /* a peer with locks */
};

struct subject_entry {
    const char *family; /* subjects of one do the same */
    enum subject_kind kind;
    const struct subject *numbers, *strings; /* with such keys; strings NULL: it has none */
};

/* NULL behind the last one. */
const struct subject_entry *subject_entry(unsigned index);

/* Functions of argument_name. */
const char *subject_name(unsigned index);
const char *subject_family(unsigned index);

/* "ours", "rcu" or "lock". */
const char *subject_kind_name(enum subject_kind kind);

/* Which row makes sense for it. */
bool subject_draws(const struct subject_entry *entry); /* keys by Zipf's law */
bool subject_walks(const struct subject_entry *entry);
bool subject_updates(const struct subject_entry *entry);

/* {"prudence": "0.1.0", ...}: of all that was linked. [{"subject": name, "why": what is missing}]. New references. */
json_t *subject_versions(void);
json_t *subjects_left_out(void);

#endif /* BENCH_STRUCTURES_SUBJECTS_H */
