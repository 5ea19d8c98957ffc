/* SPDX-License-Identifier: MIT */
/*
 * Slots of readers and the chunks that contain them: claims slots for threads, takes them back, and
 * reaps slots of threads that are gone.
 *
 * Each domain owns its chunks. Chunks are never unmapped, because drivers read them without a
 * lock, and a quiescent state at the slot that its thread remembers; they are only passed on to
 * another domain after theirs is destroyed, perhaps zeroed, as a new one is. Drivers' notes about a
 * slot's last thread are cleared with the slot, because the sequences of domains are alike.
 * `thread` is claimed by a compare-and-swap, without a lock, so that a signal handler may claim a
 * slot.
 *
 * Locks: readers_lock guards the free chunks. If another thread holds it, a new chunk is made
 * instead.
 */

#include "base/pace.h"
#include "gp/user/domain.h"
#include "gp/user/kick.h"
#include "gp/user/reader_exit.h"
#include "gp/user/slots.h"
#include "system_call.h"

struct os_lock readers_lock = OS_LOCK_INIT(OS_RANK_READERS);

#define BEING_REAPED (-1)

/* Guarded by readers_lock. The slots of a chunk in this list have room for the addresses of further
 * free chunks, whose pages went back to the system. */
static struct reader_chunk *free_chunks;

/* Gives the slot up. Release: the thread's accesses are before the next claim. */
void slot_forget(struct reader_slot *slot)
{
    store_relaxed(&slot->reader.owner, (const void *)NULL);
    store_relaxed(&slot->stall_word, (uint64_t)0);
    store_relaxed(&slot->stall_reported, (uint64_t)0);
    store_relaxed(&slot->claimed_at, (uint64_t)0);
    kick_forget(slot);
    store_release(&slot->thread, 0);
}

void slot_release(struct prudence_domain *domain, struct reader_slot *slot, int thread)
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

static struct reader_chunk *chunk_take(void)
{
    struct reader_chunk *chunk = free_chunks;

    if (chunk && chunk->put_away) {
        struct reader_slot *place = &chunk->slots[--chunk->put_away];

        chunk = place->put_away;
        place->claimed_at = 0;
        os_meta_note_untouched(-(int64_t)sizeof *chunk);
    } else if (chunk) {
        free_chunks = chunk->next;
    }
    return chunk;
}

/* A chunk that cannot be purged is kept as it is. */
static void chunk_keep(struct reader_chunk *chunk)
{
    struct reader_chunk *first = free_chunks;

    if (first && first->put_away < SLOTS_IN_CHUNK && os_meta_purge(chunk, sizeof *chunk)) {
        first->slots[first->put_away++].put_away = chunk;
        return;
    }
    chunk->put_away = 0;
    chunk->next = first;
    free_chunks = chunk;
}

static struct reader_chunk *slots_chunk_make(void)
{
    struct reader_chunk *chunk = NULL;

    /* A signal handler may have interrupted the lock's holder, and then makes a new chunk. */
    if (os_lock_try(&readers_lock)) {
        chunk = chunk_take();
        os_lock_release(&readers_lock);
    }
    return chunk ? chunk : os_meta_alloc(sizeof *chunk);
}

static void slots_note_used(struct reader_chunk *chunk, uint64_t used)
{
    uint64_t before = load_relaxed(&chunk->used);

    while (before < used && !compare_exchange(&chunk->used, &before, used))
        ;
}

static struct reader_slot *slot_claim_in(struct reader_chunk *chunk, int32_t thread)
{
    for (struct reader_slot *slot = chunk->slots; slot != chunk->slots + SLOTS_IN_CHUNK; slot++) {
        int32_t nobody = 0;

        if (load_relaxed(&slot->thread) == 0 && compare_exchange(&slot->thread, &nobody, thread)) {
            slot->chunk = chunk;
            slots_note_used(chunk, (uint64_t)(slot - chunk->slots) + 1);
            return slot;
        }
    }
    return NULL;
}

/*
 * Frees the slot if the slot's thread is gone, which ended without a sign, or inside a section, or
 * read again in a signal handler or a destructor after the last hook (reader_exit.c). The
 * compare-and-swap lets one thread reap. A section that outlives its thread is never ended.
 */
static bool slot_reap(struct prudence_domain *domain, struct reader_slot *slot, bool thoroughly)
{
    int32_t owner, reaped = BEING_REAPED;
    uint64_t claimed_at;

    if (load_relaxed(&slot->lasting) && load_acquire(&slot->reader.word))
        return false;
    os_copy_check(); /* otherwise a forked child would take its own thread for one that is gone */
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
    100000000 /* between checks, which open a file; a section that ended by then needs none */

/* Reaps unwatched slots after one thread has ended inside, or online, because others often have,
 * too: in a program whose threads never go offline, all do. */
static void reap_unwatched(struct prudence_domain *domain)
{
    struct reader_chunk *chunk;
    struct reader_slot *slot;

    for_each_slot(chunk, slot, domain)
    {
        if (!load_relaxed(&slot->watched))
            slot_reap(domain, slot, false);
    }
}

/*
 * For a slot that has been blocking for `stayed` ns, returns whether the slot is free now. The
 * domain keeps the times, because with many times more threads than CPUs hundreds of live readers
 * are blocking for long, one after another. Opening a file for each took a quarter of the
 * writers' time (ADR 34). The reader furthest behind is still checked, because drivers ask for no
 * other while that reader is known to hold up the grace period under way.
 */
bool slots_reap_one(struct prudence_domain *domain, struct reader_slot *slot, uint64_t now,
                    uint64_t stayed)
{
    if (!is_time_again(&domain->gone_asked_at, now, ASK_NS) ||
        !slot_reap(domain, slot,
                   stayed >= LOOK_NS && is_time_again(&domain->gone_looked_at, now, LOOK_NS)))
        return false;
    reap_unwatched(domain);
    return true;
}

/*
 * Reads up to `at_most` slots, from where the last call stopped, and reaps those whose threads
 * are gone. Each check is a system call. Returns the number of slots in use in the whole domain.
 */
unsigned slots_reap(struct prudence_domain *domain, bool thoroughly, unsigned at_most)
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
 * Called before another chunk is made. Checking all slots for each chunk would cost system calls
 * quadratic in the number of readers. So this reads all when the domain has grown by half since
 * the last such check, and otherwise at a few.
 */
static void reap_for_room(struct prudence_domain *domain)
{
    unsigned slots = 0;

    for (struct reader_chunk *chunk = load_acquire(&domain->chunks); chunk; chunk = chunk->next)
        slots += SLOTS_IN_CHUNK;
    if (slots < load_relaxed(&domain->reap_all_at)) {
        slots_reap(domain, false, READERS_A_FEW);
    } else {
        unsigned in_use = slots_reap(domain, false, READERS_ALL);

        store_relaxed(&domain->reap_all_at, in_use + in_use / 2);
    }
}

static struct reader_slot *slot_claim_existing(struct prudence_domain *domain, int32_t thread)
{
    struct reader_slot *slot = NULL;

    for (struct reader_chunk *chunk = load_acquire(&domain->chunks); chunk && !slot;
         chunk = chunk->next)
        slot = slot_claim_in(chunk, thread);
    return slot;
}

/* Nested in a registration of this thread, calls no function that the program may have replaced. */
struct reader_slot *slot_claim(struct prudence_domain *domain, bool nested)
{
    struct reader_chunk *chunk, *first;
    struct reader_slot *slot;
    int32_t thread;

    os_calls_widen(); /* the process reads */
    thread = nested ? (int32_t)bare_system_call(SYS_gettid, 0, 0, 0, 0, 0, 0) : os_thread_id();
    slot = slot_claim_existing(domain, thread);
    if (!slot && !nested) {
        reap_for_room(domain);
        slot = slot_claim_existing(domain, thread);
    }
    if (slot)
        return slot;
    chunk = nested ? os_meta_alloc(sizeof *chunk) : slots_chunk_make();
    if (!chunk)
        return NULL;
    slot = slot_claim_in(chunk, thread);
    first = load_acquire(&domain->chunks);
    do
        chunk->next = first;
    while (!compare_exchange(&domain->chunks, &first, chunk));
    return slot;
}

bool slots_any_inside(const struct prudence_domain *domain)
{
    struct reader_chunk *chunk;
    struct reader_slot *slot;

    for_each_slot(chunk, slot, domain) if (load_acquire(&slot->reader.word)) return true;
    return false;
}

void slots_release_chunks(struct prudence_domain *domain)
{
    while (domain->chunks) {
        struct reader_chunk *chunk = domain->chunks;

        domain->chunks = chunk->next;
        for (struct reader_slot *slot = chunk->slots; slot != chunk->slots + chunk->used; slot++)
            slot_forget(slot);
        chunk_keep(chunk);
    }
}
