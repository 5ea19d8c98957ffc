/* SPDX-License-Identifier: MIT */
/*
 * Decides what follows on a misuse that harms nothing if the library goes on: a free that names
 * another size or alignment than the object's, the size of a block that is not live, and a double
 * free that is found only when the process ends. Other allocators let such programs run, and
 * users of a program that they cannot mend would meet the end of it with us alone. So a process
 * that got our malloc reports the first of a kind and goes on, unless its options search for bugs.
 */
#include "heap/harmless.h"

#include "bug_search.h"
#include "process.h"

uint64_t harmless_choice = HARMLESS_AUTO;

bool harmless_goes_on(void)
{
    uint64_t choice = load_relaxed(&harmless_choice);

    if (choice != HARMLESS_AUTO)
        return choice == HARMLESS_REPORT;
    return process_has_our_malloc && !check_wanted && !hardened_wanted;
}
