/* SPDX-License-Identifier: MIT */
/* All subjects that prudence-structures can measure, and those missing in this build. */
#ifndef BENCH_STRUCTURES_SUBJECTS_H
#define BENCH_STRUCTURES_SUBJECTS_H

#include <jansson.h>
#include <stdbool.h>

#include "subject.h"

enum subject_kind {
    SUBJECT_OURS,
    /* a peer whose readers take no lock, and whose writers wait for readers, or let others wait */
    SUBJECT_RCU,
    SUBJECT_LOCK, /* a peer with locks */
};

struct subject_entry {
    const char *family; /* subjects of one family do the same */
    enum subject_kind kind;
    /* by kind of keys; strings is NULL if the subject has none */
    const struct subject *numbers, *strings;
};

/* Returns NULL after the last one. */
const struct subject_entry *subject_entry(unsigned index);

/* Name functions for argument_name. */
const char *subject_name(unsigned index);
const char *subject_family(unsigned index);

/* Returns "ours", "rcu" or "lock". */
const char *subject_kind_name(enum subject_kind kind);

/* Return whether such rows make sense for the subject. */
bool subject_draws(const struct subject_entry *entry); /* keys by Zipf's law */
bool subject_walks(const struct subject_entry *entry);
bool subject_updates(const struct subject_entry *entry);

/* Return {"prudence": "0.1.0", ...} for all linked libraries, and [{"subject": name, "why": the
 * missing part}]. New references. */
json_t *subject_versions(void);
json_t *subjects_left_out(void);

#endif /* BENCH_STRUCTURES_SUBJECTS_H */
