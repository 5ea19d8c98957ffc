/* SPDX-License-Identifier: MIT */
/* Prudence used as a plain allocator: prudence_malloc and prudence_free. */
#include <prudence/prudence.h>

#define PLAIN_MALLOC prudence_malloc
#define PLAIN_FREE   prudence_free
#include "plain_family.h"
#include "prudence_counters.h"

const struct family plain_prudence_family = {
    .library = "prudence",
    .library_version = prudence_version,
    .report = prudence_report_totals,
    .operations = &operations,
    .loops = SUBJECT_LOOP_TABLE,
};
