/* SPDX-License-Identifier: MIT */
/*
 * Finds this thread's slot in a domain. Slots are registered at the thread's first entry, and given
 * back when the thread exits.
 *
 * Slots are never unmapped (slots.c), so a pointer to a slot can outlive the slot's registration.
 * Each kind of pointer is protected:
 *   reader_self            names a slot of the default domain, which is never destroyed; the
 *                          thread's exit clears the pointer before giving the slot back
 *   a thread's table       is indexed by the domain's number and checked against the domain's
 *                          generation, which no other domain ever has
 *   reader_qsbr_self       is checked against the slot's domain and owner; a free slot has no
 *                          owner, and each thread writes the address of a variable of its own
 *                          (slot_forget, slot_register)
 *   reader_lasting_self    names a slot of the one other domain that is never destroyed
 *                          (readers_make_lasting); set by the thread's registration there
 *   expired_reader         belongs to the domain and ends with the domain
 *   an epoch's record      is the program's, which may use it in the thread's last destructor; no
 *                          other thread has the slot before the thread is gone
 *
 * Registration may happen in a signal handler, so registering takes no lock, and blocks signals
 * while a slot is claimed but not yet entered in the thread's table. Scans may miss the slot until
 * the thread's first entry wakes it, by a read-modify-write and a full fence (parking.c). A driver
 * that misses the slot made its barrier before, so this reader sees the driver's sequence and every
 * unlink.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "gp/user/domain.h"
#include "gp/user/kick.h"
#include "gp/user/parking.h"
#include "gp/user/reader_exit.h"
#include "gp/user/readers.h"
#include "gp/user/slots.h"
#include "gp/user/thread_memory.h"
#include "system_call.h"

/* This thread's slot in the domain of that index, valid if generations agree. All entries that were
 * ever written are in a chain. */
struct table_entry {
    struct reader_slot *slot;
    uint64_t generation;
    unsigned before; /* the entry that came into the chain before, plus one; 0: none */
};

/*
 * A table is larger than the blocks for which metadata takes a lock, so that a signal handler may
 * make one. Only the pages that are written cost memory. A table that was too small stays until the
 * thread's end, because the handler that needed more may have interrupted a check of it. Each is at
 * least twice as large as the one before, so together the old ones are no larger than the newest.
 */
#define TABLE_MIN 1024

struct table {
    struct thread_memory memory; /* first */
    struct table *before;        /* smaller; or NULL */
    unsigned size;               /* a power of two */
    unsigned newest;             /* as `before` of an entry */
    struct table_entry entries[];
};

__thread struct prudence_reader *reader_self __attribute__((tls_model("initial-exec")));
__thread struct prudence_reader *reader_qsbr_self __attribute__((tls_model("initial-exec")));
/* The word of a thread that has none in the lasting domain, so that inline readers need not
 * check for NULL. Never written: the word is outside, and inline readers only load the domain's
 * sequence. */
static const struct {
    char before[PRUDENCE_DOMAIN_SHARED_OFFSET];
    struct prudence_domain_shared shared;
} domain_of_nobody;
static struct prudence_reader word_of_nobody = {
    .domain = (const struct prudence_domain *)&domain_of_nobody};
__thread struct prudence_reader *reader_lasting_self __attribute__((tls_model("initial-exec"))) =
    &word_of_nobody;
extern __thread struct prudence_reader *prudence_reader_self __attribute__((alias("reader_self")));
extern __thread struct prudence_reader *prudence_qsbr_self
    __attribute__((alias("reader_qsbr_self")));
/* Used by <prudence/urcu-compat.h>, which has the lasting domain. */
PRUDENCE_API extern __thread struct prudence_reader *prudence_urcu_qsbr_self
    __attribute__((alias("reader_lasting_self")));
static __thread struct table *thread_table __attribute__((tls_model("initial-exec")));

/* The compiler must not know what `own` is: it assumes that two names of one variable have the same
 * address, and gcc assumes in other places that pointers to two names differ. */
COLD bool readers_are_superseded(void)
{
    struct prudence_reader **own = &reader_self;

    __asm__("" : "+r"(own));
    return own != &prudence_reader_self;
}

struct list readers_domains = {&readers_domains, &readers_domains};

static const struct prudence_domain
    *lasting_domain; /* set before threads know the domain; or NULL */

/* A child calls this anew if another thread was about to, in pthread_once(), while fork copied the
 * process. Then no thread knows the first domain. */
void readers_make_lasting(const struct prudence_domain *domain)
{
    store_relaxed(&lasting_domain, domain);
}

bool readers_are_lasting(const struct prudence_domain *domain)
{
    return domain->is_default || domain == load_relaxed(&lasting_domain);
}

static struct reader_slot *readers_slot_of(struct prudence_reader *reader)
{
    return (struct reader_slot *)reader;
}

static size_t table_bytes(unsigned size)
{
    return sizeof(struct table) + size * sizeof(struct table_entry);
}

/* Returns the thread's slot in a live domain other than the default one, or NULL. */
static struct reader_slot *slot_in_table(const struct table *table,
                                         const struct prudence_domain *domain)
{
    if (!table || domain->index >= table->size ||
        table->entries[domain->index].generation != domain->generation)
        return NULL;
    return table->entries[domain->index].slot;
}

/* Returns whether the entry's domain lives. A slot is lost to its thread only with its domain, and
 * may then be another thread's, or this one's in a newer domain. The owner is checked first,
 * because only then the slot's domain lives. Called under readers_lock, under which domains end. */
static bool entry_lives(const struct table_entry *entry)
{
    const struct prudence_reader *reader = &entry->slot->reader;

    return load_relaxed(&reader->owner) == &reader_qsbr_self &&
           load_relaxed(&reader->domain)->generation == entry->generation;
}

/* Calls `visit` for each of this thread's slots, with readers_lock held for those in the table. So
 * the end of a thread costs as much as it has slots, however many domains there are. */
static void visit_own_slots(void (*visit)(struct reader_slot *slot, void *context), void *context)
{
    const struct table *table = thread_table;

    if (reader_self)
        visit(readers_slot_of(reader_self), context);
    if (!table)
        return;
    os_lock_take(&readers_lock);
    for (unsigned next = table->newest; next; next = table->entries[next - 1].before)
        if (entry_lives(&table->entries[next - 1]))
            visit(table->entries[next - 1].slot, context);
    os_lock_release(&readers_lock);
}

/* A thread may have ended inside a section, or online, and no caller has asked since. */
static uint32_t left_inside;

static void look_if_inside(struct reader_slot *slot, void *inside)
{
    *(bool *)inside |= load_relaxed(&slot->reader.word) != 0;
}

/* Returns whether this thread is inside a section of any domain, or online. */
static bool thread_is_inside(void)
{
    bool inside = false;

    visit_own_slots(look_if_inside, &inside);
    return inside;
}

static void slot_is_unwatched(struct reader_slot *slot, void *unused)
{
    (void)unused;
    store_relaxed(&slot->watched, 0u);
}

/* The program has a pointer to a slot of this thread. */
static __thread bool has_record __attribute__((tls_model("initial-exec")));

void readers_note_record(void)
{
    has_record = true;
}

/* Keeps the slots as they are for the program's later destructors. A reaper finds that the thread
 * is gone, and ends the section if no destructor did. */
static void leave_for_others_to_find(void)
{
    visit_own_slots(slot_is_unwatched, NULL);
    for (struct table *table = thread_table; table; table = table->before)
        thread_memory_list(&table->memory);
}

/* A lasting section protects for ever. */
static void give_slot_back(struct reader_slot *slot, void *unused)
{
    if (slot->lasting && load_relaxed(&slot->reader.word)) {
        slot_is_unwatched(slot, unused);
        return;
    }
    slot_release((struct prudence_domain *)(uintptr_t)load_relaxed(&slot->reader.domain), slot,
                 os_thread_id());
}

static void give_slots_back(void)
{
    struct table *table = thread_table, *before;

    visit_own_slots(give_slot_back, NULL);
    reader_self = NULL;
    reader_qsbr_self = NULL;
    reader_lasting_self = &word_of_nobody;
    thread_table = NULL;
    for (; table; table = before) {
        before = table->before;
        thread_memory_release(&table->memory);
    }
}

/* A slot of this thread has, or had, a function that other threads call. */
static __thread bool has_kicks __attribute__((tls_model("initial-exec")));

static void end_kick_of(struct reader_slot *slot, void *ended)
{
    *(bool *)ended &= kick_end(slot);
}

/* Takes this thread's functions away in all domains. Returns false while a call runs. */
static bool kicks_ended(void)
{
    bool ended = true;

    visit_own_slots(end_kick_of, &ended);
    return ended;
}

#define KICK_NS 50000 /* a call writes to a descriptor, and may have lost its CPU */

/* Waits with no lock held, because the function that is awaited is the program's. */
static void end_kicks(void)
{
    while (!kicks_ended())
        os_sleep_ns(KICK_NS);
    has_kicks = false;
}

void readers_kick_by(struct reader_slot *slot, const struct prudence_kick *kick)
{
    while (!kick_end(slot))
        os_sleep_ns(KICK_NS);
    if (!kick)
        return;
    has_kicks = true;
    kick_begin(slot, kick);
}

/* Called in each round of the thread's destructors. The program's later destructors may still end
 * sections, use records, or read, which registers the thread again. With sandbox=1 no thread is
 * ever found to be gone, so there sections and records end in the last round. */
void readers_thread_ends(bool last)
{
    sigset_t saved, all;
    bool inside;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &saved);
    if (has_kicks)
        end_kicks();
    inside = thread_is_inside();
    if (inside)
        store_relaxed(&left_inside, 1u);
    if ((inside || has_record) && (!last || os_calls_widen()))
        leave_for_others_to_find();
    else
        give_slots_back();
    pthread_sigmask(SIG_SETMASK, &saved, NULL);
}

bool readers_left_inside(void)
{
    return exchange_relaxed(&left_inside, 0);
}

/* Slots of this thread in the default domain are lasting. */
static __thread bool outlive __attribute__((tls_model("initial-exec")));

void readers_outlive(void)
{
    outlive = true;
    compiler_barrier(); /* a handler may register this thread */
    if (reader_self)
        store_relaxed(&readers_slot_of(reader_self)->lasting, 1u);
}

/* `claimed_at` is 0 if the registration is nested. The slot then counts as unwatched. */
static struct reader_slot *slot_register(struct prudence_domain *domain, uint64_t claimed_at)
{
    struct reader_slot *slot;
    bool watched;

    os_copy_check();
    watched = claimed_at && reader_exit_watch();
    slot = slot_claim(domain, !claimed_at);
    if (!slot)
        return NULL;
    store_relaxed(&slot->watched, watched);
    store_relaxed(&slot->lasting, outlive && domain->is_default);
    store_relaxed(&slot->claimed_at, claimed_at);
    tell_acquire(&race_detector_pages); /* another thread may have mapped the chunk */
    store_relaxed(&slot->reader.domain, (const struct prudence_domain *)domain);
    store_relaxed(&slot->reader.owner, (const void *)&reader_qsbr_self);
    store_relaxed(&slot->entries_seen, load_relaxed(&slot->reader.entries));
    parking_mark_new(slot);
    os_full_fence(); /* claimed before loading the sequence: at_once.c */
    return slot;
}

static bool table_grow(unsigned index)
{
    struct table *old = thread_table, *table;
    unsigned size = TABLE_MIN;

    while (size <= index)
        size *= 2;
    table = os_meta_alloc(table_bytes(size));
    if (!table)
        return false;
    table->size = size;
    table->before = old;
    if (old) {
        memcpy(table->entries, old->entries, old->size * sizeof old->entries[0]);
        table->newest = old->newest;
    }
    thread_table = table;
    thread_memory_note(&table->memory, table_bytes(size));
    return true;
}

struct reader_slot *readers_slot_if_any(const struct prudence_domain *domain)
{
    if (domain->is_default)
        return reader_self ? readers_slot_of(reader_self) : NULL;
    return slot_in_table(thread_table, domain);
}

static struct reader_slot *table_enter(struct prudence_domain *domain, uint64_t claimed_at)
{
    struct reader_slot *slot;
    struct table_entry *entry;

    if ((!thread_table || domain->index >= thread_table->size) && !table_grow(domain->index))
        return NULL;
    slot = slot_register(domain, claimed_at);
    if (!slot)
        return NULL;
    entry = &thread_table->entries[domain->index];
    if (!entry->slot) {
        entry->before = thread_table->newest;
        thread_table->newest = domain->index + 1;
    }
    entry->slot = slot;
    entry->generation = domain->generation;
    if (domain == load_relaxed(&lasting_domain))
        reader_lasting_self = &slot->reader;
    return slot;
}

static struct reader_slot *default_enter(struct prudence_domain *domain, uint64_t claimed_at)
{
    struct reader_slot *slot = slot_register(domain, claimed_at);

    if (slot)
        reader_self = &slot->reader;
    return slot;
}

/* Called with all signals blocked. */
static struct reader_slot *enter_blocked(struct prudence_domain *domain, uint64_t claimed_at)
{
    struct reader_slot *slot = readers_slot_if_any(domain);

    if (slot)
        return slot;
    return domain->is_default ? default_enter(domain, claimed_at) : table_enter(domain, claimed_at);
}

/*
 * Set while this thread registers. A program may have replaced the functions of the C library that
 * readers_enter() calls, and a replacement may read. Such a nested registration calls none of them,
 * so the recursion ends.
 */
static __thread bool is_registering __attribute__((tls_model("initial-exec")));

static struct reader_slot *enter_nested(struct prudence_domain *domain)
{
    uint64_t saved = 0, all = UINT64_MAX;
    struct reader_slot *slot;

    bare_system_call(SYS_rt_sigprocmask, SIG_BLOCK, (long)&all, (long)&saved, sizeof all, 0, 0);
    slot = enter_blocked(domain, 0);
    bare_system_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&saved, 0, sizeof saved, 0, 0);
    return slot;
}

/* Makes the calls that may be replaced before it searches for the slot, because a replacement that
 * reads has registered this thread. */
static struct reader_slot *readers_enter(struct prudence_domain *domain)
{
    struct reader_slot *slot;
    int saved_errno = errno;
    uint64_t claimed_at;
    sigset_t saved, all;

    if (is_registering)
        return enter_nested(domain);
    is_registering = true;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &saved);
    reader_exit_watch();
    claimed_at = os_clock_boot_ns();
    slot = enter_blocked(domain, claimed_at);
    is_registering = false;
    pthread_sigmask(SIG_SETMASK, &saved, NULL);
    errno = saved_errno;
    return slot;
}

struct reader_slot *readers_slot(struct prudence_domain *domain)
{
    struct reader_slot *slot = readers_slot_if_any(domain);

    return likely(slot != NULL) ? slot : readers_enter(domain);
}

struct reader_slot *readers_slot_or_panic(struct prudence_domain *domain)
{
    struct reader_slot *slot = readers_slot(domain);

    if (unlikely(!slot))
        os_panic("no memory to register a reader of domain '%s'", domain->name);
    return slot;
}

void prudence_read_lock_too_deep(void)
{
    os_panic(
        "prudence_read_lock: read-side critical sections nested deeper than %u; search for a path "
        "that leaves one without prudence_read_unlock",
        (unsigned)PRUDENCE_NESTING_MASK);
}

bool readers_has_table(void)
{
    return thread_table != NULL;
}

/* --- fork: only the forking thread lives on in the child, and its sections with it --- */

void readers_fork_child(void)
{
    for (struct table *table = thread_table; table; table = table->before)
        thread_memory_fork_child(&table->memory);
}

void readers_forget_others(struct prudence_domain *domain, bool whole)
{
    struct reader_slot *mine = readers_slot_if_any(domain);
    struct reader_chunk *chunk;
    struct reader_slot *slot;

    for_each_slot(chunk, slot, domain)
    {
        if (slot == mine) {
            slot->thread = os_thread_id(); /* the child's id */
            slot->claimed_at = os_clock_boot_ns();
            parking_fork_child(slot);
            kick_forget(slot); /* the child shares descriptors with its parent */
            store_relaxed(&slot->kicking, 0u);
            continue;
        }
        if (os_thread_lives_in_child(slot->thread, whole))
            continue;
        store_relaxed(&slot->reader.word, (uint64_t)0);
        slot_forget(slot);
        store_relaxed(&slot->kicking, 0u);
    }
}
