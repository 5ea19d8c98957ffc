/* SPDX-License-Identifier: MIT */
/* What the extensions know of an address that the program may not touch, in the handler of the signal. */
#include "debug/faults.h"

#include "debug/guard.h"
#include "debug/large_guard.h"

static void look(const struct os_fault *fault)
{
    guard_look_at_fault(fault);
    large_guard_look_at_fault(fault);
}

void faults_watch(void)
{
    os_fault_watch(look);
}
