/* SPDX-License-Identifier: MIT */
/* Manual domains, for tests. The program ends each grace period, whatever the readers do. */
#include "gp/user/domain.h"
#include "gp/user/drive.h"
#include "gp/user/process_life.h"
#include "gp/user/slots.h"

void prudence_manual_advance(struct prudence_domain *domain)
{
    uint64_t sequence;

    DOMAIN_CHECK(domain);
    if (domain->kind != PRUDENCE_DOMAIN_MANUAL) {
        os_report("prudence_manual_advance: domain '%s' is not manual; nothing done", domain->name);
        return;
    }
    sequence = __atomic_add_fetch(&domain->shared.sequence, GP_STEP, __ATOMIC_SEQ_CST);
    os_probe3(gp_start, domain, domain->name, sequence);
    /* Takes the maximum, because a thread that advanced later may have completed earlier. */
    gp_drive_complete(domain, sequence);
}

const struct gp_scheme gp_manual = {.name = "manual", .is_busy = slots_any_inside};
