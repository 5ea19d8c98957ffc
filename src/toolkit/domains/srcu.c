/* SPDX-License-Identifier: MIT */
/*
 * srcu: readers that may block, counted per CPU in one of two roles (K42 and Tornado; the kernel's
 * interface).
 *
 * Each CPU has two counters. A reader increments the current CPU's counter that has the *current*
 * role, remembers exactly which, and decrements the same one when leaving, on whatever CPU. If a
 * grace period needs it, a driver changes the roles; the counters that were current then only fall.
 *
 * The argument. F is the closer's fence, g the goal that a driver found (drive.c), D the fence that
 * the driver makes after loading g, R the fence of a reader between incrementing a counter c and
 * the first read inside the section. F comes before D, because the increment of the sequence to g
 * comes after the closer's load, which follows F, and before the driver's load, which precedes D.
 *   - A driver that loads c after D and does not find a reader's increment has D before R (store
 *     buffering, fences between). So F is before R, and the reader cannot find an unlinked object.
 *   - So for a reader that could find one, the driver loads a value that includes the increment. If
 *     that value is 0, the decrement is included as well: only threads that incremented a counter
 *     decrement it, so at each point of its modification order the counter is the number of open
 *     sections counted there, never a difference of two sums taken at different moments. A counter
 *     is one word, so one load of each is enough, in any order, by one driver or by several. (Sums
 *     of entries and of exits over all CPUs would have to be taken exits first, in one go, with a
 *     fence between them, and repeated until they agree, because a reader may enter on a CPU that
 *     was summed already and leave on one that was not.) The decrement is a release, which later
 *     read-modify-writes carry on; the load is an acquire.
 *   - So g is over when each counter, of both roles, was found at 0 by a thread that had found g or
 *     more before. empty[role] is the greatest goal for which all counters of the role were found
 *     so, and only grows. completed is the lesser of both.
 *
 * Changing roles is needed for progress only. The counters of the current role may never be 0,
 * since readers come and go; those of the other role are, as soon as the readers counted there have
 * ended. A reader may load the role, be delayed, and increment the counter of the other role after
 * the change. Each thread does so at most once a change, because the next section loads the role
 * anew, so this cannot go on. If a later grace period starts while that reader is inside, the grace
 * period waits for the reader as for any other, because drivers read both roles. Roles are
 * changed when the counters of the other role were empty since g started and those of the current
 * role were not, so at most once for each goal.
 *
 * Wrap. A counter holds open sections, not events, so only 2^64 sections open at once would wrap
 * it. Goals are compared modulo 2^64, in steps of 1,024, which allows for 2^53 grace periods ahead.
 *
 * A thread's sections in one domain count as one, from the first entry to the last exit: the slot
 * has the depth, and the index of the counter. So the sections of a thread that exits, or that a
 * forked child does not have, can be taken back, and the threads inside are known. Sections handed
 * from one thread to another (down, up) are counted in two counters of the whole domain, and stay.
 *
 * Signals. The index is stored after the word at entry, and the word is stored before the decrement
 * at exit. A handler that reads before the entry's store of the word, or after the exit's, finds
 * depth 0, enters by itself, and leaves an index that no section has; the interrupted call has its
 * own at hand. A handler that reads between the word and the index nests, so it neither stores an
 * index nor uses the one it finds, which it only hands to its own unlock. (An index that is stored
 * first is replaced by such a handler's, and the section then leaves a counter in which it never
 * stood.) The counter protects a section from the increment on, so reading in between is safe.
 */
#include "gp/user/domain.h"
#include "gp/user/drive.h"
#include "gp/user/readers.h"
#include "gp/user/slots.h"
#include "gp/user/stall.h"
#include "toolkit/domains/schemes.h"
#include "toolkit/domains/srcu.h"

/* A thread that is descheduled keeps its counter, but may lose the CPU. */
struct srcu_cpu {
    uint64_t inside[2]; /* open sections, by role */
    char pad[CACHE_LINES_APART - 16];
};

struct srcu {
    uint64_t changes; /* number of role changes; the lowest bit is the current role */
    unsigned cpus;

    uint64_t empty[2] __attribute__((aligned(CACHE_LINE))); /* see the head of this file */
    struct reader_slot handed_stall; /* stands for handed sections that block (stall.c) */

    struct srcu_cpu handed __attribute__((aligned(CACHE_LINE))); /* by prudence_srcu_down_read */
    struct srcu_cpu cpu[];
};

static size_t srcu_bytes(unsigned cpus)
{
    return sizeof(struct srcu) + cpus * sizeof(struct srcu_cpu);
}

static bool srcu_open(struct prudence_domain *domain)
{
    unsigned cpus = os_cpu_count();
    struct srcu *srcu = os_meta_alloc(srcu_bytes(cpus));

    if (!srcu)
        return false;
    srcu->cpus = cpus;
    srcu->empty[0] = srcu->empty[1] = GP_FIRST;
    domain->srcu = srcu;
    return true;
}

static void srcu_close(struct prudence_domain *domain)
{
    os_meta_free(domain->srcu, srcu_bytes(domain->srcu->cpus));
}

/* ------------------------------------------------------------------------------------- readers */

/* Index 2i + role is the counter of CPU i. The index after the last CPU stands for `handed`. */
static uint64_t *counter_of(struct srcu *srcu, int index)
{
    unsigned cpu = (unsigned)index / 2, role = (unsigned)index % 2;

    return cpu == srcu->cpus ? &srcu->handed.inside[role] : &srcu->cpu[cpu].inside[role];
}

static void stand_in(struct srcu *srcu, int index)
{
    __atomic_fetch_add(counter_of(srcu, index), 1, __ATOMIC_SEQ_CST);
#if !defined(__x86_64__) || defined(__SANITIZE_THREAD__)
    os_full_fence(); /* R; on x86 the locked addition is the fence */
#endif
}

static int srcu_enter(struct srcu *srcu, unsigned cpu)
{
    int index = (int)(2 * cpu) + (int)(load_acquire(&srcu->changes) & 1);

    stand_in(srcu, index);
    return index;
}

/* The second half of an entry that loaded its role long ago, for tests. */
void srcu_enter_at(struct prudence_domain *domain, int index)
{
    stand_in(domain->srcu, index);
}

static void srcu_leave(struct srcu *srcu, int index)
{
    __atomic_fetch_sub(counter_of(srcu, index), 1, __ATOMIC_RELEASE);
}

static struct srcu *srcu_or_panic(struct prudence_domain *domain, const char *what, void *caller)
{
    gp_domain_check(domain, what, caller);
    if (unlikely(domain->kind != PRUDENCE_DOMAIN_SRCU))
        os_panic("%s: domain '%s' is not srcu", what, domain->name);
    return domain->srcu;
}

int prudence_srcu_read_lock(struct prudence_domain *domain)
{
    struct srcu *srcu =
        srcu_or_panic(domain, "prudence_srcu_read_lock", __builtin_return_address(0));
    struct reader_slot *slot = readers_slot_or_panic(domain);
    uint64_t word = load_relaxed(&slot->reader.word);
    int index;

    if (word) {
        if (unlikely((word & PRUDENCE_NESTING_MASK) == PRUDENCE_NESTING_MASK))
            prudence_read_lock_too_deep();
        store_relaxed(&slot->reader.word, word + 1);
        return load_relaxed(&slot->index);
    }
    os_busy_enter(); /* a handler that forks leaves the counters unchanged */
    index = srcu_enter(srcu, os_cpu_current() % srcu->cpus);
    store_relaxed(&slot->reader.word, load_relaxed(&domain->shared.sequence) | 1);
    compiler_barrier();
    store_relaxed(&slot->index, index);
    os_busy_leave();
    return index;
}

void prudence_srcu_read_unlock(struct prudence_domain *domain, int index)
{
    struct srcu *srcu =
        srcu_or_panic(domain, "prudence_srcu_read_unlock", __builtin_return_address(0));
    struct reader_slot *slot = readers_slot_if_any(domain);
    uint64_t word = slot ? load_relaxed(&slot->reader.word) : 0;

    if (unlikely(!word))
        os_panic(
            "prudence_srcu_read_unlock: this thread is in no section of domain '%s'; search for a "
            "path that unlocks twice, or in another thread than the one that locked",
            domain->name);
    if (unlikely(index != load_relaxed(&slot->index)))
        os_panic(
            "prudence_srcu_read_unlock: %d is not the index of this thread's section of domain "
            "'%s', which is %d; pass the index that prudence_srcu_read_lock returned",
            index, domain->name, load_relaxed(&slot->index));
    if ((word & PRUDENCE_NESTING_MASK) > 1) {
        compiler_barrier();
        store_relaxed(&slot->reader.word, word - 1);
        return;
    }
    gp_drive_tell_section_ends(domain);
    os_busy_enter();
    store_relaxed(&slot->reader.word, (uint64_t)0);
    compiler_barrier();
    srcu_leave(srcu, index);
    os_busy_leave();
}

int prudence_srcu_down_read(struct prudence_domain *domain)
{
    struct srcu *srcu =
        srcu_or_panic(domain, "prudence_srcu_down_read", __builtin_return_address(0));

    return srcu_enter(srcu, srcu->cpus);
}

void prudence_srcu_up_read(struct prudence_domain *domain, int index)
{
    struct srcu *srcu = srcu_or_panic(domain, "prudence_srcu_up_read", __builtin_return_address(0));

    if (unlikely((unsigned)index / 2 != srcu->cpus || !load_relaxed(counter_of(srcu, index))))
        os_panic(
            "prudence_srcu_up_read: no section of domain '%s' has index %d; pass the index that "
            "prudence_srcu_down_read returned, once",
            domain->name, index);
    gp_drive_tell_section_ends(domain);
    srcu_leave(srcu, index);
}

/* ------------------------------------------------------------------------------------- drivers */

static bool srcu_is_empty(const struct srcu *srcu, unsigned role)
{
    for (unsigned i = 0; i < srcu->cpus; i++)
        if (load_acquire(&srcu->cpu[i].inside[role]))
            return false;
    return load_acquire(&srcu->handed.inside[role]) == 0;
}

static void srcu_look(struct srcu *srcu, unsigned role, uint64_t goal)
{
    if (sequence_before(load_relaxed(&srcu->empty[role]), goal) && srcu_is_empty(srcu, role))
        gp_drive_raise(&srcu->empty[role], goal);
}

/* Changes roles so that the counters that were current only fall. */
static void change_roles(struct srcu *srcu, uint64_t goal)
{
    uint64_t changes = load_relaxed(&srcu->changes);
    unsigned current = changes & 1;

    if (!sequence_before(load_acquire(&srcu->empty[current]), goal) ||
        sequence_before(load_acquire(&srcu->empty[!current]), goal))
        return;
    compare_exchange(&srcu->changes, &changes, changes + 1);
    srcu_look(srcu, current, goal);
}

static void note_stalls(struct prudence_domain *domain, uint64_t goal)
{
    struct srcu *srcu = domain->srcu;
    struct reader_chunk *chunk;
    struct reader_slot *slot;

    for_each_slot(chunk, slot, domain)
    {
        uint64_t word = load_relaxed(&slot->reader.word);

        if (word && sequence_before(word & ~PRUDENCE_NESTING_MASK, goal))
            stall_note(domain, slot, word);
    }
    if (load_relaxed(&srcu->handed.inside[0]) || load_relaxed(&srcu->handed.inside[1]))
        stall_note(domain, &srcu->handed_stall, load_relaxed(&domain->progress.completed));
}

static void srcu_drive(struct prudence_domain *domain, uint64_t goal)
{
    struct srcu *srcu = domain->srcu;
    uint64_t first, second;

    os_full_fence(); /* D */
    add_relaxed(&domain->scans, 1);
    srcu_look(srcu, 0, goal);
    srcu_look(srcu, 1, goal);
    change_roles(srcu, goal);
    first = load_acquire(&srcu->empty[0]);
    second = load_acquire(&srcu->empty[1]);
    first = sequence_before(second, first) ? second : first;
    gp_drive_complete(domain, first);
    if (sequence_before(first, goal))
        note_stalls(domain, goal);
}

/* ------------------------------------------------------------------------------ life of threads */

static bool srcu_is_busy(const struct prudence_domain *domain)
{
    return !srcu_is_empty(domain->srcu, 0) || !srcu_is_empty(domain->srcu, 1);
}

static void abandon(struct prudence_domain *domain, const struct reader_slot *slot)
{
    srcu_leave(domain->srcu, slot->index);
}

/* Keeps this thread's section and the sections that were handed over. Goals for which counters were
 * found empty have started, so the sequence must not be smaller. */
static void srcu_fork_child(struct prudence_domain *domain)
{
    struct reader_slot *mine = readers_slot_if_any(domain);
    struct srcu *srcu = domain->srcu;
    uint64_t *sequence = &domain->shared.sequence;

    for (unsigned role = 0; role < 2; role++)
        if (sequence_before(*sequence, srcu->empty[role]))
            *sequence = srcu->empty[role];
    for (unsigned i = 0; i < srcu->cpus; i++)
        srcu->cpu[i].inside[0] = srcu->cpu[i].inside[1] = 0;
    if (mine && mine->reader.word)
        *counter_of(srcu, mine->index) = 1;
}

static void srcu_scheme_enter(struct prudence_domain *domain)
{
    prudence_srcu_read_lock(domain);
}

static void srcu_scheme_leave(struct prudence_domain *domain, const struct reader_slot *slot)
{
    prudence_srcu_read_unlock(domain, load_relaxed(&slot->index));
}

const struct gp_scheme gp_srcu = {
    .name = "srcu",
    .drive = srcu_drive,
    .is_busy = srcu_is_busy,
    .abandon = abandon,
    .open = srcu_open,
    .close = srcu_close,
    .enter = srcu_scheme_enter,
    .leave = srcu_scheme_leave,
    .fork_child = srcu_fork_child,
};
