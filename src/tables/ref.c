/* SPDX-License-Identifier: MIT */
/* Stops reference counts that went wrong (<prudence/ref.h>). */
#include <prudence/ref.h>

#include "base/atomic.h"
#include "os/os.h"

/* SATURATED is far from 0 and from PRUDENCE_REF_MAX, because threads that have not noticed yet may
 * add or subtract, all in all, as much as there can be threads. */
#define SATURATED UINT32_C(0xc0000000)
#define NEAR      (UINT32_C(1) << 29)

void prudence_ref_saturate_(struct prudence_ref *ref, const char *what)
{
    uint32_t before = exchange_relaxed(&ref->count, SATURATED);

    if (before - (SATURATED - NEAR) > 2 * NEAR) /* not saturated yet */
        os_report(
            "%s: the reference count at %p is out of range; it stays saturated, and its object is "
            "never freed",
            what, (void *)ref);
}
