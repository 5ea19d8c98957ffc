/* SPDX-License-Identifier: MIT */
/*
 * Epochs for programs (<prudence/epoch.h>): records of threads, and grace periods that the program
 * drives. A record is the thread's slot; pins are sections, so memb.c has the argument. Repinning
 * is the quiescent state of qsbr: the word goes from one section to the next.
 *
 * Locks: none is held.
 */
#include <errno.h>

#include <prudence/epoch.h>

#include "gp/user/domain.h"
#include "gp/user/drive.h"
#include "gp/user/reader_exit.h"
#include "gp/user/readers.h"
#include "toolkit/domains/schemes.h"

struct prudence_reader *prudence_epoch_record(struct prudence_domain *domain)
{
    struct reader_slot *slot;

    DOMAIN_CHECK(domain);
    if (domain->kind != PRUDENCE_DOMAIN_MEMB && domain->kind != PRUDENCE_DOMAIN_MANUAL) {
        os_report(
            "prudence_epoch_record: domain '%s' is %s; only memb and manual ones have records",
            domain->name, domain->kind == PRUDENCE_DOMAIN_QSBR ? "qsbr" : domain->scheme->name);
        errno = EINVAL;
        return NULL;
    }
    slot = readers_slot(domain);
    if (!slot) {
        errno = ENOMEM;
        return NULL;
    }
    readers_note_record();
    return &slot->reader;
}

void prudence_epoch_outlive(void)
{
    readers_outlive();
}

/* A word of 0 is that of a thread that is outside. */
void prudence_epoch_misuse(const struct prudence_reader *self, const char *function)
{
    const struct prudence_domain *domain = load_relaxed(&self->domain);

    if (load_relaxed(&self->word) == 0)
        os_panic(
            "%s: this thread is not pinned in domain '%s'; search for a path that unpins twice, "
            "or uses another thread's record",
            function, domain->name);
    os_panic(
        "%s: pins and sections of domain '%s' nested deeper than %u; search for a path that "
        "leaves one without prudence_epoch_unpin",
        function, domain->name, (unsigned)PRUDENCE_NESTING_MASK);
}

bool prudence_epoch_try_advance(struct prudence_domain *domain, int *behind)
{
    const struct reader_slot *slot;
    bool began;

    DOMAIN_CHECK(domain);
    began = gp_drive_for_caller(domain);
    if (began)
        gp_drive_tell_over(domain);
    slot = began ? NULL : gp_drive_held_up_by(domain);
    if (behind)
        *behind = slot ? load_relaxed(&slot->thread) : 0;
    return began;
}

/* Returns whether drivers read the words of the domain's readers. Reports why not. */
static bool epoch_kick_is_valid(const struct prudence_domain *domain,
                                const struct prudence_kick *kick)
{
    static const char what[] = "prudence_kick_set";

    if (domain->scheme != &gp_memb && domain->scheme != &gp_memb_by_callers &&
        domain->scheme != &gp_srcu)
        os_report("%s: no thread searches for readers of domain '%s', which is %s", what,
                  domain->name, domain->scheme->name);
    else if (kick && kick->size < sizeof *kick)
        os_report("%s: domain '%s': kick->size is %zu, less than %zu", what, domain->name,
                  kick->size, sizeof *kick);
    else if (kick && !kick->function)
        os_report("%s: domain '%s': kick->function is NULL", what, domain->name);
    else
        return true;
    return false;
}

int prudence_kick_set(struct prudence_domain *domain, const struct prudence_kick *kick)
{
    struct reader_slot *slot;

    DOMAIN_CHECK(domain);
    if (!epoch_kick_is_valid(domain, kick))
        return EINVAL;
    if (kick && !reader_exit_watch_slow())
        return ENOMEM;
    if (kick && !reader_exit_is_told())
        return ESRCH;
    slot = kick ? readers_slot(domain) : readers_slot_if_any(domain);
    if (slot)
        readers_kick_by(slot, kick);
    return kick && !slot ? ENOMEM : 0;
}
