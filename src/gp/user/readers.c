/* SPDX-License-Identifier: MIT */
/*
 * Which threads read in which domain: slots, claimed at a thread's first entry and given back when
 * it exits.
 *
 * Slots stand in chunks that each domain owns; chunks are never unmapped (drivers look at them
 * without a lock), only passed on to another domain when theirs is destroyed. So a pointer to a slot
 * can outlive what it was made for, and each kind of pointer is checked:
 *   reader_self            names a slot of the default domain, which is never destroyed; the thread's
 *                          exit clears it before it gives the slot back
 *   a thread's table       is indexed by the domain's number and checked against its generation, which
 *                          no other domain ever has
 *   reader_qsbr_self       is checked against the slot's domain and owner; a slot that is nobody's has
 *                          no owner, and each thread writes its own (slot_forget, slot_register)
 *   reader_lasting_self    names a slot of the one other domain that is never destroyed (gp_make_lasting), and is as
 *                          good as reader_self; the thread's registration there sets it
 *   expired_reader         is the domain's own, and goes with it
 * What drivers noted in a slot about its last thread is cleared with it, because sequences of domains
 * are alike.
 *
 * Registration may happen in a signal handler, so it takes no lock and blocks signals while a slot
 * is claimed but not yet entered in the thread's table. `thread` is claimed by a compare-and-swap. No driver
 * looks at the slot until its thread's first entry wakes it, by a read-modify-write and a full fence
 * (parking.c): a driver that misses it made its barrier before, so this reader sees the driver's sequence and
 * all that was unlinked.
 */
#define _GNU_SOURCE /* gettid */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/pace.h"
#include "gp/user/domain.h"

/* This thread's slot in the domain of a number, if generations agree. */
struct table_entry {
    struct reader_slot *slot;
    uint64_t generation;
};

/* Larger than what metadata locks for, so that a signal handler may make one; of its pages only
 * those written to cost memory. */
#define TABLE_STEP 1024

struct table {
    struct thread_memory memory; /* first */
    unsigned size;
    struct table_entry entries[];
};

__thread struct prudence_reader *reader_self __attribute__((tls_model("initial-exec")));
__thread struct prudence_reader *reader_qsbr_self __attribute__((tls_model("initial-exec")));
/* Stands for the word of a thread that has none in the lasting domain, so that inline readers need not ask. Never
 * written: it is outside, and of a domain whose sequence may be read. */
static struct prudence_reader word_of_nobody = {.domain = &prudence_default};
__thread struct prudence_reader *reader_lasting_self __attribute__((tls_model("initial-exec"))) =
    &word_of_nobody;
extern __thread struct prudence_reader *prudence_reader_self __attribute__((alias("reader_self")));
extern __thread struct prudence_reader *prudence_qsbr_self
    __attribute__((alias("reader_qsbr_self")));
/* Of <prudence/urcu-compat.h>, whose domain it is. */
PRUDENCE_API extern __thread struct prudence_reader *prudence_urcu_qsbr_self
    __attribute__((alias("reader_lasting_self")));
static __thread struct table *thread_table __attribute__((tls_model("initial-exec")));

/* Volatile: the compiler takes two names of one variable for the same address. */
bool readers_are_superseded(void)
{
    struct prudence_reader **volatile own = &reader_self;

    return own != &prudence_reader_self;
}

struct os_lock readers_lock = OS_LOCK_INIT(OS_RANK_READERS);
struct list readers_domains = {&readers_domains, &readers_domains};

#define BEING_REAPED (-1)

static struct reader_chunk *free_chunks; /* guarded by readers_lock */
static const struct prudence_domain
    *lasting; /* set once, before threads know the domain; or NULL */

void gp_make_lasting(const struct prudence_domain *domain)
{
    debug_assert(!lasting);
    store_relaxed(&lasting, domain);
}

bool gp_is_lasting(const struct prudence_domain *domain)
{
    return domain == &prudence_default || domain == load_relaxed(&lasting);
}

static struct reader_slot *slot_of(struct prudence_reader *reader)
{
    return (struct reader_slot *)reader;
}

/* The slot is nobody's from now on. Release: what its thread did is done before it is claimed again. */
static void slot_forget(struct reader_slot *slot)
{
    store_relaxed(&slot->reader.owner, (const void *)NULL);
    store_relaxed(&slot->stall_word, (uint64_t)0);
    store_relaxed(&slot->stall_reported, (uint64_t)0);
    store_relaxed(&slot->claimed_at, (uint64_t)0);
    store_release(&slot->thread, 0);
}

static void slot_release(struct prudence_domain *domain, struct reader_slot *slot, int thread)
{
    uint64_t word = load_relaxed(&slot->reader.word);

    if (word && domain->kind != PRUDENCE_DOMAIN_QSBR)
        os_report(
            "thread %d exits inside a read-side critical section of domain '%s'; the section "
            "is ended",
            thread, domain->name);
    store_release(&slot->reader.word, (uint64_t)0);
    if (word && domain->scheme->abandon)
        domain->scheme->abandon(domain, slot);
    slot_forget(slot);
}

static size_t table_bytes(unsigned size)
{
    return sizeof(struct table) + size * sizeof(struct table_entry);
}

static void table_release(struct table *table)
{
    struct list *item;

    if (!table)
        return;
    os_lock_take(&readers_lock);
    list_for_each(item, &readers_domains)
    {
        struct prudence_domain *domain = list_entry(item, struct prudence_domain, link);

        if (domain->index < table->size &&
            table->entries[domain->index].generation == domain->generation)
            slot_release(domain, table->entries[domain->index].slot, gettid());
    }
    os_lock_release(&readers_lock);
    thread_memory_release(&table->memory);
}

/* At thread exit. Later destructors of the program may read again: that registers anew. */
void readers_thread_exits(void)
{
    struct table *table = thread_table;
    sigset_t saved, all;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &saved);
    if (reader_self)
        slot_release(&prudence_default, slot_of(reader_self), gettid());
    reader_self = NULL;
    reader_qsbr_self = NULL;
    reader_lasting_self = &word_of_nobody;
    thread_table = NULL;
    table_release(table);
    pthread_sigmask(SIG_SETMASK, &saved, NULL);
}

static struct reader_chunk *chunk_make(void)
{
    struct reader_chunk *chunk = NULL;

    /* A signal handler may have interrupted the holder: then make a new one. */
    if (os_lock_try(&readers_lock)) {
        chunk = free_chunks;
        if (chunk)
            free_chunks = chunk->next;
        os_lock_release(&readers_lock);
    }
    return chunk ? chunk : os_meta_alloc(sizeof *chunk);
}

static void note_used(struct reader_chunk *chunk, uint64_t used)
{
    uint64_t before = load_relaxed(&chunk->used);

    while (before < used && !compare_exchange(&chunk->used, &before, used))
        ;
}

static struct reader_slot *slot_claim_in(struct reader_chunk *chunk)
{
    for (struct reader_slot *slot = chunk->slots; slot != chunk->slots + SLOTS_IN_CHUNK; slot++) {
        int32_t nobody = 0;

        if (load_relaxed(&slot->thread) == 0 &&
            compare_exchange(&slot->thread, &nobody, gettid())) {
            slot->chunk = chunk;
            note_used(chunk, (uint64_t)(slot - chunk->slots) + 1);
            return slot;
        }
    }
    return NULL;
}

/*
 * Frees the slot if its thread is gone: one whose end nobody told, or that read again after it, in a signal
 * handler or a destructor of the last round (reader_exit.c). The compare-and-swap makes one reaper.
 */
static bool slot_reap(struct prudence_domain *domain, struct reader_slot *slot, bool thoroughly)
{
    int32_t owner, reaped = BEING_REAPED;
    uint64_t claimed_at;

    os_copy_check(); /* or this thread is taken for one that is gone */
    owner = load_acquire(&slot->thread);
    claimed_at = load_relaxed(&slot->claimed_at);
    if (!reader_is_gone(owner, claimed_at, thoroughly) ||
        !compare_exchange(&slot->thread, &owner, BEING_REAPED))
        return false;
    if (load_relaxed(&slot->claimed_at) != claimed_at) { /* by a new thread of the same id since */
        compare_exchange(&slot->thread, &reaped, owner);
        return false;
    }
    slot_release(domain, slot, owner);
    return true;
}

#define ASK_NS 1000000 /* between questions, which are system calls */
#define LOOK_NS                                                                                    \
    100000000 /* between looks, which open a file; and a section that ended by then needs none */

/*
 * For a slot that has been in the way for `stayed` ns: whether it is free now. The times are the domain's: where threads
 * are many times more than CPUs, hundreds of live readers are in the way for long, each in its turn. To open a file for
 * each of them took a quarter of the writers' time (ADR 60). The one that is furthest behind gets its look: while it is
 * known to hold up what is under way, drivers ask for no other.
 */
bool readers_reap_slot(struct prudence_domain *domain, struct reader_slot *slot, uint64_t now,
                       uint64_t stayed)
{
    if (!is_time_again(&domain->gone_asked_at, now, ASK_NS))
        return false;
    return slot_reap(domain, slot,
                     stayed >= LOOK_NS && is_time_again(&domain->gone_looked_at, now, LOOK_NS));
}

/*
 * Such slots among up to `at_most`, where the call before left off, since each look is a system call; returns how many
 * are in use, of all.
 */
unsigned readers_reap(struct prudence_domain *domain, bool thoroughly, unsigned at_most)
{
    unsigned place = 0, looks = 0, next = 0, in_use = 0;
    unsigned from = at_most == READERS_ALL ? 0 : load_relaxed(&domain->reap_from);
    struct reader_chunk *chunk;
    struct reader_slot *slot;

    for_each_slot(chunk, slot, domain)
    {
        in_use++;
        if (place++ < from || looks == at_most)
            continue;
        in_use -= slot_reap(domain, slot, thoroughly && !load_relaxed(&slot->watched));
        if (++looks == at_most)
            next = place;
    }
    store_relaxed(&domain->reap_from, next);
    return in_use;
}

/*
 * Before there is one chunk more. To look at all for each chunk would be a system call for each pair of readers; so all
 * are looked at when half as many have come as were there the last time, and else a few.
 */
static void reap_for_room(struct prudence_domain *domain)
{
    unsigned slots = 0;

    for (struct reader_chunk *chunk = load_acquire(&domain->chunks); chunk; chunk = chunk->next)
        slots += SLOTS_IN_CHUNK;
    if (slots < load_relaxed(&domain->reap_all_at)) {
        readers_reap(domain, false, READERS_A_FEW);
    } else {
        unsigned in_use = readers_reap(domain, false, READERS_ALL);

        store_relaxed(&domain->reap_all_at, in_use + in_use / 2);
    }
}

static struct reader_slot *slot_claim_existing(struct prudence_domain *domain)
{
    struct reader_slot *slot = NULL;

    for (struct reader_chunk *chunk = load_acquire(&domain->chunks); chunk && !slot;
         chunk = chunk->next)
        slot = slot_claim_in(chunk);
    return slot;
}

static struct reader_slot *slot_claim(struct prudence_domain *domain)
{
    struct reader_slot *slot = slot_claim_existing(domain);
    struct reader_chunk *chunk, *first;

    if (!slot) {
        reap_for_room(domain);
        slot = slot_claim_existing(domain);
    }
    if (slot)
        return slot;
    chunk = chunk_make();
    if (!chunk)
        return NULL;
    slot = slot_claim_in(chunk);
    first = load_acquire(&domain->chunks);
    do
        chunk->next = first;
    while (!compare_exchange(&domain->chunks, &first, chunk));
    return slot;
}

static struct reader_slot *slot_register(struct prudence_domain *domain)
{
    struct reader_slot *slot;
    bool watched;

    os_copy_check();
    watched = reader_exit_watch();
    slot = slot_claim(domain);
    if (!slot)
        return NULL;
    store_relaxed(&slot->watched, (uint32_t)watched);
    store_relaxed(&slot->claimed_at, os_clock_boot_ns());
    tell_acquire(&race_detector_pages); /* another thread may have mapped the chunk */
    store_relaxed(&slot->reader.domain, (const struct prudence_domain *)domain);
    store_relaxed(&slot->reader.owner, (const void *)&reader_qsbr_self);
    store_relaxed(&slot->entries_seen, load_relaxed(&slot->reader.entries));
    reader_park_first(slot);
    os_full_fence(); /* claimed before it loads the sequence: memb.c, at_once */
    return slot;
}

void readers_register_default(void)
{
    sigset_t saved, all;
    int saved_errno = errno;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &saved);
    if (!reader_self) {
        struct reader_slot *slot = slot_register(&prudence_default);

        if (!slot)
            os_panic("no memory to register a reader");
        reader_self = &slot->reader;
    }
    pthread_sigmask(SIG_SETMASK, &saved, NULL);
    errno = saved_errno;
}

static bool table_grow(unsigned index)
{
    struct table *old = thread_table;
    unsigned size = (unsigned)round_up(index + 1, TABLE_STEP);
    struct table *table = os_meta_alloc(table_bytes(size));

    if (!table)
        return false;
    table->size = size;
    if (old)
        memcpy(table->entries, old->entries, old->size * sizeof old->entries[0]);
    thread_table = table;
    thread_memory_note(&table->memory, table_bytes(size));
    if (old)
        thread_memory_release(&old->memory);
    return true;
}

struct reader_slot *readers_slot_if_any(const struct prudence_domain *domain)
{
    const struct table *table = thread_table;

    if (domain == &prudence_default)
        return reader_self ? slot_of(reader_self) : NULL;
    if (!table || domain->index >= table->size ||
        table->entries[domain->index].generation != domain->generation)
        return NULL;
    return table->entries[domain->index].slot;
}

static struct reader_slot *table_enter(struct prudence_domain *domain)
{
    struct reader_slot *slot;

    if ((!thread_table || domain->index >= thread_table->size) && !table_grow(domain->index))
        return NULL;
    slot = slot_register(domain);
    if (!slot)
        return NULL;
    thread_table->entries[domain->index] =
        (struct table_entry){.slot = slot, .generation = domain->generation};
    if (domain == load_relaxed(&lasting))
        reader_lasting_self = &slot->reader;
    return slot;
}

struct reader_slot *readers_slot(struct prudence_domain *domain)
{
    struct reader_slot *slot = readers_slot_if_any(domain);
    sigset_t saved, all;

    if (likely(slot != NULL))
        return slot;
    if (domain == &prudence_default) {
        readers_register_default();
        return slot_of(reader_self);
    }
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &saved);
    slot = readers_slot_if_any(domain);
    slot = slot ? slot : table_enter(domain);
    pthread_sigmask(SIG_SETMASK, &saved, NULL);
    return slot;
}

/* Readers of srcu may block; so they are in the way of their own grace periods only. */
static bool is_in_the_way(struct prudence_domain *domain, const struct prudence_domain *waits_for)
{
    struct reader_slot *slot = domain->phases ? NULL : readers_slot_if_any(domain);

    if (!slot || !load_relaxed(&slot->reader.word))
        return false;
    return domain->kind != PRUDENCE_DOMAIN_SRCU || !waits_for || waits_for == domain ||
           set_has(waits_for, domain);
}

static bool may_wait(const struct prudence_domain *waits_for)
{
    const struct table *table = thread_table;
    struct list *item;
    bool inside = reader_self && load_relaxed(&reader_self->word);

    reader_exit_watch_late();
    if (!inside && table) {
        os_lock_take(&readers_lock);
        list_for_each(item, &readers_domains)
        {
            inside |= is_in_the_way(list_entry(item, struct prudence_domain, link), waits_for);
        }
        os_lock_release(&readers_lock);
    }
    return !inside && !external_is_inside(waits_for);
}

bool gp_may_wait(void)
{
    return may_wait(NULL);
}

bool gp_may_wait_for(const struct prudence_domain *domain)
{
    return may_wait(domain);
}

bool readers_any_inside(const struct prudence_domain *domain)
{
    struct reader_chunk *chunk;
    struct reader_slot *slot;

    for_each_slot(chunk, slot, domain) if (load_acquire(&slot->reader.word)) return true;
    return false;
}

void readers_release_chunks(struct prudence_domain *domain)
{
    while (domain->chunks) {
        struct reader_chunk *chunk = domain->chunks;

        domain->chunks = chunk->next;
        for (struct reader_slot *slot = chunk->slots; slot != chunk->slots + SLOTS_IN_CHUNK; slot++)
            slot_forget(slot);
        chunk->next = free_chunks;
        free_chunks = chunk;
    }
}

/* --- fork: only the forking thread lives on in the child, and its sections with it --- */

void gp_fork_prepare(void)
{
    struct list *item;

    os_lock_take_for_fork(&readers_lock);
    stall_fork_prepare();
    list_for_each(item, &readers_domains)
    {
        struct prudence_domain *domain = list_entry(item, struct prudence_domain, link);

        if (domain->scheme->fork_prepare)
            domain->scheme->fork_prepare(domain);
    }
}

void gp_fork_done(void)
{
    struct list *item;

    list_for_each(item, &readers_domains)
    {
        struct prudence_domain *domain = list_entry(item, struct prudence_domain, link);

        if (domain->scheme->fork_parent)
            domain->scheme->fork_parent(domain);
    }
    stall_fork_done();
    os_lock_release_from_fork(&readers_lock);
}

static void forget_other_threads(struct prudence_domain *domain)
{
    struct reader_slot *mine = readers_slot_if_any(domain);
    struct reader_chunk *chunk;
    struct reader_slot *slot;

    for_each_slot(chunk, slot, domain)
    {
        if (slot == mine) {
            slot->thread = gettid(); /* the child's */
            slot->claimed_at = os_clock_boot_ns();
            reader_fork_child(slot);
            continue;
        }
        store_relaxed(&slot->reader.word, (uint64_t)0);
        slot_forget(slot);
    }
}

/* What other threads were at while page after page was copied: of two of their stores the child may
 * have the later one alone. No grace period is over, or has its barrier, that has not started;
 * drivers skip membarriers exactly where readers fence; of phases one is under way. */
static void mend(struct prudence_domain *domain)
{
    uint64_t *sequence = &domain->shared.sequence;

    if (sequence_before(*sequence, domain->progress.completed))
        *sequence = domain->progress.completed;
    if (sequence_before(*sequence, domain->barrier_goal))
        *sequence = domain->barrier_goal;
    if (domain->phases && sequence_before(domain->progress.completed, *sequence))
        domain->progress.completed = *sequence - GP_STEP;
    domain->shared.fenced = domain->readers_fence_themselves;
    domain->choosing = 0;
    domain->scan_began = 0;
    domain->furthest_behind = NULL;
    domain->parking = 0;
    domain->asked_goal = domain->progress.completed;
}

/* Whole: nothing of this domain is in this thread's hands, nor half done. Caches that name it are counted
 * again by the owner of their list (slab/fork.c). */
static void live_on_in_child(struct prudence_domain *domain, bool whole)
{
    forget_other_threads(domain);
    mend(domain);
    if (!whole)
        return;
    domain->visitors = domain->users = 0;
    if (domain->scheme->fork_child)
        domain->scheme->fork_child(domain);
}

void gp_fork_child(bool whole)
{
    struct list *item;

    live_on_in_child(&prudence_default, whole);
    thread_memory_fork_child(thread_table ? &thread_table->memory : NULL);
    list_for_each(item, &readers_domains)
        live_on_in_child(list_entry(item, struct prudence_domain, link), whole);
    if (!whole)
        return;
    domain_visits_fork_child();
    list_for_each(item, &readers_domains)
        set_hold_members(list_entry(item, struct prudence_domain, link));
}
