/* SPDX-License-Identifier: MIT */
/* Passes a fault of the program to the extensions that may explain the address, in the signal
 * handler. */
#include "guard/faults.h"

#include "guard/fault_handler.h"
#include "guard/guard.h"
#include "guard/large_guard.h"

static void faults_look(const struct fault *fault)
{
    guard_report_fault(fault);
    large_guard_look_at_fault(fault);
}

void faults_watch(void)
{
    fault_handler_watch(faults_look);
}
