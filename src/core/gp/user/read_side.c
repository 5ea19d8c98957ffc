/* SPDX-License-Identifier: MIT */
/*
 * The read side out of line: domains other than the default one, qsbr, and misuse. Follows the
 * protocol of the inline functions in <prudence/rcu.h>. An online thread of a qsbr domain is inside
 * one long section, which a quiescent state ends and enters anew.
 */
#include "gp/user/domain.h"
#include "gp/user/drive.h"
#include "gp/user/parking.h"
#include "gp/user/readers.h"

void prudence_read_unlock_unbalanced(void)
{
    os_panic(
        "prudence_read_unlock outside a read-side critical section of the default domain; search "
        "for "
        "a path that unlocks twice, or in another thread than the one that locked");
}

static __attribute__((noreturn, cold)) void unbalanced(const struct prudence_domain *domain)
{
    os_panic(
        "prudence_domain_read_unlock outside a read-side critical section of domain '%s'; search "
        "for "
        "a path that unlocks twice, or in another thread or domain than the one that locked",
        domain->name);
}

bool prudence_read_lock_held(void)
{
    return reader_self && load_relaxed(&reader_self->word) != 0;
}

static void read_side_enter(struct prudence_domain *domain, struct reader_slot *slot)
{
    uint64_t sequence = load_acquire(&domain->shared.sequence);
    int32_t attention;

    gp_drive_tell_section_ends(domain);
    /* Release, because a qsbr reader's word goes from one section to the next without a 0
     * between. */
    store_release(&slot->reader.word, sequence | 1);
    compiler_barrier();
    attention = load_acquire(&slot->reader.attention);
    if (attention < 0)
        parking_wake(domain, slot);
    else if (attention)
        prudence_fence_and_count(&slot->reader);
}

void prudence_read_lock_first(void)
{
    prudence_domain_read_lock(&prudence_default);
}

/* Panics for a set, whose readers read in a member, for an external domain, whose readers use the
 * foreign scheme, and for hazard pointers, whose readers have no sections. */
static void refuse_reading(const struct prudence_domain *domain, const char *what)
{
    if (unlikely(domain->kind == PRUDENCE_DOMAIN_HAZARD))
        os_panic(
            "%s: domain '%s' has no sections (hazard); its readers name objects "
            "(prudence_hazard_protect)",
            what, domain->name);
    if (unlikely(domain->kind == PRUDENCE_DOMAIN_SET || domain->kind == PRUDENCE_DOMAIN_EXTERNAL))
        os_panic(
            "%s: domain '%s' has no readers of its own (%s); read in a member of the set, or by "
            "the external scheme",
            what, domain->name, domain->scheme->name);
}

void prudence_domain_read_lock(struct prudence_domain *domain)
{
    struct reader_slot *slot;
    uint64_t word;

    DOMAIN_CHECK(domain);
    if (domain->scheme->enter) {
        domain->scheme->enter(domain);
        return;
    }
    refuse_reading(domain, "prudence_domain_read_lock");
    slot = readers_slot_or_panic(domain);
    word = load_relaxed(&slot->reader.word);
    if (domain->kind == PRUDENCE_DOMAIN_QSBR) {
        if (!word)
            os_panic(
                "read-side critical section in qsbr domain '%s' by a thread that is offline; call "
                "prudence_qsbr_online first",
                domain->name);
        return;
    }
    if (!word) {
        read_side_enter(domain, slot);
        return;
    }
    if ((word & PRUDENCE_NESTING_MASK) == PRUDENCE_NESTING_MASK)
        prudence_read_lock_too_deep();
    store_relaxed(&slot->reader.word, word + 1);
    reader_mind_parking(domain, slot); /* a handler may have interrupted the outer entry */
}

void prudence_domain_read_unlock(struct prudence_domain *domain)
{
    struct reader_slot *slot;
    uint64_t word;

    DOMAIN_CHECK(domain);
    refuse_reading(domain, "prudence_domain_read_unlock");
    slot = readers_slot_if_any(domain);
    word = slot ? load_relaxed(&slot->reader.word) : 0;
    if (!word)
        unbalanced(domain);
    if (domain->scheme->leave) {
        domain->scheme->leave(domain, slot);
        return;
    }
    if (domain->kind == PRUDENCE_DOMAIN_QSBR)
        return;
    gp_drive_tell_section_ends(domain);
    /* Release: the section's reads are before the store that ends the section. */
    store_release(&slot->reader.word, (word & PRUDENCE_NESTING_MASK) == 1 ? 0 : word - 1);
}

static bool read_side_is_inside(const struct prudence_domain *domain)
{
    struct reader_slot *slot;

    if (domain->scheme->is_inside)
        return domain->scheme->is_inside(domain);
    slot = readers_slot_if_any(domain);
    return slot && load_relaxed(&slot->reader.word) != 0;
}

bool prudence_domain_read_lock_held(struct prudence_domain *domain)
{
    DOMAIN_CHECK(domain);
    return domain_any(domain, read_side_is_inside);
}

static bool is_qsbr(const struct prudence_domain *domain, const char *what, void *caller)
{
    gp_domain_check(domain, what, caller);
    if (domain->kind == PRUDENCE_DOMAIN_QSBR)
        return true;
    os_report("%s: domain '%s' is not qsbr; nothing done", what, domain->name);
    return false;
}

/* Lets the inline quiescent state find the word. Under check=1 every call must come here. */
static void remember_qsbr_slot(struct reader_slot *slot)
{
    if (likely(!load_relaxed(&gp_check)))
        reader_qsbr_self = &slot->reader;
}

void prudence_qsbr_online(struct prudence_domain *domain)
{
    struct reader_slot *slot;

    if (!is_qsbr(domain, "prudence_qsbr_online", __builtin_return_address(0)))
        return;
    slot = readers_slot_or_panic(domain);
    remember_qsbr_slot(slot);
    read_side_enter(domain, slot);
}

void prudence_qsbr_offline(struct prudence_domain *domain)
{
    struct reader_slot *slot;

    if (!is_qsbr(domain, "prudence_qsbr_offline", __builtin_return_address(0)))
        return;
    slot = readers_slot_if_any(domain);
    gp_drive_tell_section_ends(domain);
    if (slot)
        store_release(&slot->reader.word, (uint64_t)0);
}

void prudence_qsbr_announce(struct prudence_domain *domain)
{
    struct reader_slot *slot;
    uint64_t word;

    if (!is_qsbr(domain, "prudence_qsbr_quiescent", __builtin_return_address(0)))
        return;
    slot = readers_slot_if_any(domain);
    if (!slot)
        return;
    remember_qsbr_slot(slot);
    word = load_relaxed(&slot->reader.word);
    if (word &&
        word != (load_acquire(&domain->shared.sequence) | 1)) /* as prudence_qsbr_quiescent */
        read_side_enter(domain, slot);
}
