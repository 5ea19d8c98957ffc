/* SPDX-License-Identifier: MIT */
/*
 * The explorer (explorer.h). Three parts: choices and their enumeration; memory, with store
 * buffers, races and freed memory; threads.
 *
 * Choices. An execution is determined by its choices, each a number below the number of
 * possibilities; 0 is the default. They are enumerated depth first: an execution repeats the
 * choices of the one before up to the last that has a remaining possibility. A *deviation* is a
 * choice other than a possible default: a switch away from a thread that can go on, a store that is
 * not seen yet, or seen too early. Deviations are bounded; when a thread has to stop, the choice of
 * the next one is free. Threads are switched only before operations on words that several threads
 * use, one of them writing. The explorer learns these words, and repeats the exploration while it
 * learns more.
 *
 * Memory. A store enters its thread's buffer, and reaches memory when the thread fences, updates
 * atomically, blocks or ends. When another thread reads that word before, whether the store
 * reaches memory is a choice: it does, with all older stores (the default); it does not yet; or, if
 * it is no release, it does without the older ones, as on Arm. Nothing is lost by deciding so late,
 * because no thread can know before. Loads return the present value: the explorer shows no
 * reordering of loads. Races are found by happens-before, as C11 defines it from the orders in the
 * source, so an order that is too weak is found on plain data whatever the processor does. A
 * sequentially consistent fence is an acquire and a release fence, and nothing more.
 *
 * All of the explorer's state is in one mapping of its own: the program's data is restored for each
 * execution.
 */
#define _GNU_SOURCE
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "explorer.h"

#define THREADS     EXPLORE_THREADS_MAX
#define STACK_BYTES ((size_t)64 << 10)
#define ARENA_BYTES EXPLORE_ARENA_BYTES
#define CELLS       ((size_t)1 << 16)
#define CHOICES_MAX 8192
#define STEPS_MAX   20000 /* an execution with more steps does not end */
#define BUFFER_MAX  64
#define TLS_MAX     4096
#define TLS_AREA                                                                                   \
    ((size_t)16 << 10)  /* below the thread pointer: the program's variables, and libc's (errno) */
#define GRANULE_SHIFT 0 /* adjacent words may be single bytes */
#define ARENA_ADDRESS ((void *)(uintptr_t)EXPLORE_ARENA)

typedef struct {
    uint32_t of[THREADS];
} clocks;

/* Facts about a byte. The first part is for all executions, the second for this one. */
struct cell {
    uintptr_t key;            /* address >> GRANULE_SHIFT; 0: none */
    uint8_t readers, writers; /* threads, bit by bit */
    bool shared;              /* it was shared before this exploration began */

    uint32_t execution;
    bool freed;
    uint8_t plain_writer;
    uint32_t plain_write; /* the writer's clock */
    clocks plain_reads, reads, writes;
    clocks message; /* knowledge passed to a thread that acquires the value */
    uint8_t heads;  /* threads whose own later stores pass it on */
    const void *writer_pc;
};

struct pending_store {
    volatile void *address;
    uint64_t value;
    unsigned bytes;
    bool release;
    clocks message;
};

enum state { NONE, READY, YIELDED, BLOCKED, ENDED };

struct thread {
    enum state state;
    bool daemon, timed;
    unsigned cpu;
    ucontext_t context;
    void (*body)(void *argument);
    void *argument;
    const volatile void *waits_for;
    uint64_t wakes_at, yielded_at, turn; /* clock; steps; order of waking after a yield */
    bool interrupted;
    clocks knows, acquired,
        released; /* acquired: for a later acquire fence; released: by the last release fence */
    struct pending_store buffer[BUFFER_MAX];
    unsigned buffered;
    char tls[TLS_MAX];
};

struct choice {
    uint16_t taken, count;
    bool deviates;
};

struct event {
    uint8_t thread;
    const char *what;
    const volatile void *address;
    uint64_t value;
    const void *pc;
};

struct explorer {
    const struct explore_case *now;
    unsigned bound, spent;
    struct choice choices[CHOICES_MAX];
    unsigned choices_made, choices_known;
    uint64_t executions, steps_ever, noted;
    bool learnt;

    uint32_t execution;
    bool concurrent; /* between setup and after */
    unsigned current, threads;
    uint64_t steps, clock;
    struct thread thread[THREADS];
    ucontext_t alone;
    struct cell cells[CELLS];
    struct event events[STEPS_MAX];
    unsigned event_count;

    char *data, *pristine, *kept;
    size_t data_bytes, kept_bytes;
    char *tls_block, tls_pristine[TLS_MAX];
    size_t tls_bytes, arena_used;
    char stacks[THREADS][STACK_BYTES] __attribute__((aligned(64)));
};

static struct explorer *E;

extern char __data_start[], _end[];

/* -------------------------------------------------------------------------------------- reports */

static void print_schedule(void)
{
    unsigned from = E->event_count > 400 ? E->event_count - 400 : 0;

    for (unsigned i = from; i < E->event_count; i++) {
        const struct event *event = &E->events[i];

        printf("  %*s%u %s %p %#llx at %p\n", 2 * event->thread, "", event->thread, event->what,
               (const void *)event->address, (unsigned long long)event->value, event->pc);
    }
}

void explore_fail(const char *format, ...)
{
    va_list arguments;

    print_schedule();
    printf("VIOLATION: ");
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf(" (thread %u; execution %llu of %s)\n", E->current, (unsigned long long)E->executions,
           E->now->name);
    fflush(stdout);
    _exit(1);
}

static void broken(const char *why)
{
    printf("BROKEN: %s\n", why);
    fflush(stdout);
    _exit(2);
}

static void note_event(const char *what, const volatile void *address, uint64_t value,
                       const void *pc)
{
    if (!E->concurrent)
        return;
    if (E->event_count == STEPS_MAX)
        explore_fail("does not end");
    E->events[E->event_count++] = (struct event){(uint8_t)E->current, what, address, value, pc};
}

/* -------------------------------------------------------------------------------------- choices */

/* `deviates`: every possibility but 0 is a deviation. */
static unsigned choose(unsigned count, bool deviates)
{
    struct choice *choice;

    if (count < 2 || (deviates && E->spent >= E->bound))
        return 0;
    if (E->choices_made == CHOICES_MAX)
        broken("too many choices");
    choice = &E->choices[E->choices_made++];
    if (E->choices_made > E->choices_known) {
        *choice = (struct choice){0, (uint16_t)count, deviates};
        E->choices_known = E->choices_made;
    } else if (choice->count != count || choice->deviates != deviates) {
        broken("an execution cannot be repeated");
    }
    E->spent += deviates && choice->taken;
    return choice->taken;
}

/* Prepares the next execution's choices; returns false if there are none. */
static bool next_choices(void)
{
    while (E->choices_known) {
        struct choice *last = &E->choices[E->choices_known - 1];

        if (++last->taken < last->count)
            return true;
        E->choices_known--;
    }
    return false;
}

/* -------------------------------------------------------------------------------------- threads */

static struct thread *me(void)
{
    return &E->thread[E->current];
}

unsigned explore_self(void)
{
    return E->current;
}

uint64_t explore_clock(void)
{
    return E->clock;
}

static void drain(struct thread *thread);
static void join(clocks *to, const clocks *from);

/* Switches out threads on the same processor: their buffers are drained, their restartable
 * sections begin anew, and all that they did happens before this thread's next step. */
static void switch_out_others(unsigned number)
{
    for (unsigned i = 1; i < E->threads; i++)
        if (i != number && E->thread[i].cpu == E->thread[number].cpu) {
            drain(&E->thread[i]);
            E->thread[i].interrupted = true;
            join(&E->thread[number].knows, &E->thread[i].knows);
        }
}

unsigned explore_cpu(void)
{
    return me()->cpu;
}

/* The program's thread-local variables are in one place, so they are copied at each switch. */
static void tls_switch(unsigned from, unsigned to)
{
    memcpy(E->thread[from].tls, E->tls_block, E->tls_bytes);
    memcpy(E->tls_block, E->thread[to].tls, E->tls_bytes);
}

static void go_to(unsigned number)
{
    struct thread *from = me();

    if (number == E->current)
        return;
    tls_switch(E->current, number);
    switch_out_others(number);
    E->current = number;
    swapcontext(&from->context, &E->thread[number].context);
}

/* No thread can go on: returns to the explorer. */
static void stop(void)
{
    struct thread *from = me();

    tls_switch(E->current, 0);
    E->current = 0;
    swapcontext(&from->context, &E->alone);
}

static unsigned in_state(enum state state, unsigned *found)
{
    unsigned count = 0;

    for (unsigned i = 1; i < E->threads; i++)
        if (E->thread[i].state == state ||
            (state == YIELDED && E->thread[i].state == BLOCKED && E->thread[i].timed))
            found[count++] = i;
    return count;
}

static void wake(struct thread *thread)
{
    thread->state = READY;
    if (thread->wakes_at > E->clock)
        E->clock = thread->wakes_at;
}

/* Switches threads, because the current one cannot go on, or would rather not. */
static void reschedule(void)
{
    unsigned found[THREADS], count = in_state(READY, found), chosen;

    if (count) {
        go_to(found[choose(count, false)]);
        return;
    }
    count = in_state(YIELDED, found);
    if (!count) {
        stop();
        return;
    }
    for (unsigned i = 1; i < count; i++) /* the thread that yielded first goes first */
        for (unsigned j = i; j && E->thread[found[j]].turn < E->thread[found[j - 1]].turn; j--) {
            unsigned other = found[j];

            found[j] = found[j - 1];
            found[j - 1] = other;
        }
    chosen = found[choose(count, true)];
    wake(&E->thread[chosen]);
    go_to(chosen);
}

/* Lets another thread go first, before an operation that others may notice. */
static void may_switch(void)
{
    unsigned found[THREADS], count, chosen;

    if (!E->concurrent)
        return;
    if (++E->steps > STEPS_MAX)
        explore_fail("does not end");
    if (E->spent >= E->bound)
        return;
    count = in_state(READY, found);
    for (unsigned i = 0; i < count; i++)
        if (found[i] == E->current)
            found[i--] = found[--count];
    for (unsigned i = 1; i < E->threads; i++)
        if (E->thread[i].state == YIELDED && E->thread[i].yielded_at + 1 < E->steps)
            found[count++] = i;
    chosen = choose(count + 1, true);
    if (!chosen)
        return;
    if (E->thread[found[chosen - 1]].state == YIELDED)
        wake(&E->thread[found[chosen - 1]]);
    go_to(found[chosen - 1]);
}

/* Lets others run while the stores are in the buffer. */
static void drain_in_time(struct thread *thread)
{
    if (thread->buffered)
        may_switch();
    drain(thread);
}

static void yield(uint64_t nanoseconds, uint64_t turn)
{
    if (!E->concurrent)
        return;
    if (++E->steps > STEPS_MAX)
        explore_fail("does not end");
    drain_in_time(me());
    me()->state = YIELDED;
    me()->yielded_at = E->steps;
    me()->turn = turn;
    me()->wakes_at = E->clock + nanoseconds;
    note_event("yields", NULL, nanoseconds, __builtin_return_address(0));
    reschedule();
}

void explore_yield(uint64_t nanoseconds)
{
    yield(nanoseconds, E->steps);
}

void explore_late(void)
{
    yield(0, UINT64_MAX);
}

static void run_thread(void)
{
    struct thread *thread = me();

    thread->body(thread->argument);
    drain_in_time(thread);
    thread->state = ENDED;
    note_event("ends", NULL, 0, NULL);
    reschedule();
    broken("a thread that has ended went on");
}

#define OWN_CPU 100 /* numbers from here on belong to one thread each */

static struct thread *make_thread(void (*body)(void *argument), void *argument)
{
    unsigned number = E->threads++;
    struct thread *thread = &E->thread[number];

    if (number >= THREADS)
        broken("too many threads");
    thread->cpu = OWN_CPU + number;
    memset(&thread->knows, 0, offsetof(struct thread, buffer) - offsetof(struct thread, knows));
    thread->state = READY;
    thread->daemon = thread->timed = thread->interrupted = false;
    thread->body = body;
    thread->argument = argument;
    thread->buffered = 0;
    thread->wakes_at = 0;
    drain(me());
    thread->knows = me()->knows;
    thread->knows.of[number] = 1;
    me()->knows.of[E->current]++;
    memcpy(thread->tls, E->tls_pristine, E->tls_bytes);
    getcontext(&thread->context);
    thread->context.uc_stack.ss_sp = E->stacks[number];
    thread->context.uc_stack.ss_size = STACK_BYTES;
    makecontext(&thread->context, run_thread, 0);
    return thread;
}

void explore_thread(void (*body)(void *argument), void *argument)
{
    make_thread(body, argument);
}

void explore_thread_on(unsigned cpu, void (*body)(void *argument), void *argument)
{
    make_thread(body, argument)->cpu = cpu;
}

void explore_daemon(void (*body)(void *argument), void *argument)
{
    make_thread(body, argument)->daemon = true;
}

void explore_note(void)
{
    E->noted++;
}

bool explore_interrupted(void)
{
    bool was = me()->interrupted;

    me()->interrupted = false;
    return was;
}

/* --------------------------------------------------------------------------------------- memory */

static void join(clocks *to, const clocks *from)
{
    for (unsigned i = 0; i < THREADS; i++)
        if (to->of[i] < from->of[i])
            to->of[i] = from->of[i];
}

static struct cell *cell_of(const volatile void *address)
{
    uintptr_t key = (uintptr_t)address >> GRANULE_SHIFT;
    size_t at = key * UINT64_C(0x9e3779b97f4a7c15) >> 48;

    while (E->cells[at].key != key) {
        if (!E->cells[at].key) {
            E->cells[at].key = key;
            break;
        }
        at = (at + 1) % CELLS;
    }
    if (E->cells[at].execution != E->execution) {
        struct cell *cell = &E->cells[at];

        cell->execution = E->execution;
        memset(&cell->freed, 0, sizeof *cell - offsetof(struct cell, freed));
    }
    return &E->cells[at];
}

/* Returns whether all of it happened before this thread's next step. */
static bool is_before(const clocks *clock)
{
    for (unsigned i = 0; i < THREADS; i++)
        if (clock->of[i] > me()->knows.of[i])
            return false;
    return true;
}

static bool plain_write_is_before(const struct cell *cell)
{
    return cell->plain_write <= me()->knows.of[cell->plain_writer];
}

static void check_freed(const struct cell *cell, const volatile void *address, const void *pc)
{
    if (cell->freed)
        explore_fail("freed memory in use: %p at %p", (const void *)address, pc);
}

static void race(const struct cell *cell, const char *what, const volatile void *address,
                 const void *pc)
{
    explore_fail(
        "race: %s %p at %p is in no order with another thread's access (last plain write at %p)",
        what, (const void *)address, pc, cell->writer_pc);
}

static bool is_private(const volatile void *address)
{
    uintptr_t at = (uintptr_t)address, tls = (uintptr_t)__builtin_thread_pointer() - TLS_AREA;
    uintptr_t stack = (uintptr_t)E->stacks[E->current];

    return at - tls < TLS_AREA || at - stack < STACK_BYTES;
}

static void plain_granule(const volatile void *address, bool write, const void *pc)
{
    struct cell *cell = cell_of(address);
    uint32_t *clock = me()->knows.of;

    check_freed(cell, address, pc);
    if (!plain_write_is_before(cell) || !is_before(&cell->writes))
        race(cell, write ? "plain write to" : "plain read of", address, pc);
    if (!write) {
        cell->plain_reads.of[E->current] = clock[E->current];
        return;
    }
    if (!is_before(&cell->plain_reads) || !is_before(&cell->reads))
        race(cell, "plain write to", address, pc);
    cell->plain_writer = (uint8_t)E->current;
    cell->plain_write = clock[E->current];
    cell->writer_pc = pc;
}

void explore_plain(const volatile void *address, size_t bytes, bool write, const void *pc)
{
    uintptr_t first = (uintptr_t)address >> GRANULE_SHIFT;
    uintptr_t last = ((uintptr_t)address + bytes - 1) >> GRANULE_SHIFT;

    if (!E || !E->now || is_private(address))
        return;
    for (uintptr_t granule = first; granule <= last; granule++)
        plain_granule((const volatile void *)(granule << GRANULE_SHIFT), write, pc);
}

/* Checks an atomic access against plain ones. */
static void check_atomic(struct cell *cell, const volatile void *address, bool write,
                         const void *pc)
{
    uint32_t now = me()->knows.of[E->current];

    check_freed(cell, address, pc);
    if (!plain_write_is_before(cell) || (write && !is_before(&cell->plain_reads)))
        race(cell, write ? "atomic write to" : "atomic read of", address, pc);
    (write ? &cell->writes : &cell->reads)->of[E->current] = now;
}

/* Learns which threads use the word; lets others go first if it is shared. */
static struct cell *shared_access(const volatile void *address, bool write)
{
    struct cell *cell = cell_of(address);
    uint8_t bit = (uint8_t)(1u << E->current), users;

    if (!E->concurrent || is_private(address))
        return cell;
    if (write)
        cell->writers |= bit;
    cell->readers |= bit;
    users = cell->readers;
    if (cell->shared)
        may_switch();
    else if (cell->writers && users & (users - 1))
        E->learnt = true;
    return cell;
}

static uint64_t memory_read(const volatile void *address, unsigned bytes)
{
    switch (bytes) {
    case 1:
        return *(const volatile uint8_t *)address;
    case 2:
        return *(const volatile uint16_t *)address;
    case 4:
        return *(const volatile uint32_t *)address;
    default:
        return *(const volatile uint64_t *)address;
    }
}

static void memory_write(volatile void *address, unsigned bytes, uint64_t value)
{
    switch (bytes) {
    case 1:
        *(volatile uint8_t *)address = (uint8_t)value;
        break;
    case 2:
        *(volatile uint16_t *)address = (uint16_t)value;
        break;
    case 4:
        *(volatile uint32_t *)address = (uint32_t)value;
        break;
    default:
        *(volatile uint64_t *)address = value;
    }
}

/* Implements release sequences, as in C11 (not C++20): later stores of the same thread pass on
 * the released knowledge. */
static void send_by(struct cell *cell, uint8_t thread, const clocks *message, bool release)
{
    if (!release && cell->heads & thread) {
        join(&cell->message, message);
    } else {
        cell->message = *message;
        cell->heads = release ? thread : 0;
    }
}

static void commit(struct thread *thread, unsigned index)
{
    struct pending_store store = thread->buffer[index];

    memmove(thread->buffer + index, thread->buffer + index + 1,
            (--thread->buffered - index) * sizeof store);
    memory_write(store.address, store.bytes, store.value);
    send_by(cell_of(store.address), (uint8_t)(1u << (thread - E->thread)), &store.message,
            store.release);
}

static void drain(struct thread *thread)
{
    while (thread->buffered)
        commit(thread, 0);
}

/* Returns the newest of the thread's stores to the word before number `before`, or -1. */
static int find_store_before(const struct thread *thread, const volatile void *address,
                             unsigned before)
{
    for (int i = (int)before - 1; i >= 0; i--)
        if (thread->buffer[i].address == address)
            return i;
    return -1;
}

static int find_store(const struct thread *thread, const volatile void *address)
{
    return find_store_before(thread, address, thread->buffered);
}

/* Decides which of another thread's stores to the word reach memory before this thread checks:
 * all of them; none yet; or those up to one that is not the newest. A single store may also
 * overtake older stores to other words. */
static void decide_about(struct thread *thread, const volatile void *address)
{
    int stores[BUFFER_MAX], newest = find_store(thread, address);
    unsigned count = 0, chosen;
    bool may_overtake;

    for (int i = newest; i >= 0; i = find_store_before(thread, address, (unsigned)i))
        stores[count++] = i;
    may_overtake = count == 1 && newest > 0 && !thread->buffer[newest].release;
    chosen = choose(1 + count + may_overtake, true);
    if (chosen == 1)
        return;
    if (may_overtake && chosen == 2) {
        commit(thread, (unsigned)newest);
        return;
    }
    for (int until = stores[chosen ? chosen - 1 : 0]; until >= 0; until--)
        commit(thread, 0);
}

static void decide_about_others(const volatile void *address)
{
    for (unsigned i = 1; E->concurrent && i < E->threads; i++)
        if (i != E->current && find_store(&E->thread[i], address) >= 0)
            decide_about(&E->thread[i], address);
}

static bool acquires(enum explore_order order)
{
    return order != EXPLORE_RELAXED && order != EXPLORE_RELEASE;
}

static bool releases(enum explore_order order)
{
    return order >= EXPLORE_RELEASE;
}

static void receive(const clocks *message, enum explore_order order)
{
    join(acquires(order) ? &me()->knows : &me()->acquired, message);
}

static clocks send(enum explore_order order)
{
    clocks message = releases(order) ? me()->knows : me()->released;

    if (releases(order))
        me()->knows.of[E->current]++;
    return message;
}

uint64_t explore_load(const volatile void *address, unsigned bytes, enum explore_order order,
                      const void *pc)
{
    struct cell *cell;
    uint64_t value;
    int own;

    if (!E || !E->now)
        return memory_read(address, bytes);
    cell = shared_access(address, false);
    check_atomic(cell, address, false, pc);
    own = find_store(me(), address);
    if (own >= 0) {
        value = me()->buffer[own].value;
    } else {
        decide_about_others(address);
        value = memory_read(address, bytes);
        receive(&cell->message, order);
    }
    note_event("loads", address, value, pc);
    return value;
}

static void store_now(struct cell *cell, volatile void *address, unsigned bytes, uint64_t value,
                      enum explore_order order, const void *pc)
{
    struct thread *thread = me();

    check_atomic(cell, address, true, pc);
    note_event("stores", address, value, pc);
    if (thread->buffered == BUFFER_MAX)
        commit(thread, 0);
    thread->buffer[thread->buffered++] =
        (struct pending_store){address, value, bytes, releases(order), send(order)};
    if (!E->concurrent || order == EXPLORE_SEQ_CST || is_private(address))
        drain(thread);
}

void explore_store(volatile void *address, unsigned bytes, uint64_t value, enum explore_order order,
                   const void *pc)
{
    if (E && E->now)
        store_now(shared_access(address, true), address, bytes, value, order, pc);
    else
        memory_write(address, bytes, value);
}

bool explore_commit(volatile void *address, unsigned bytes, uint64_t value, const void *pc)
{
    struct cell *cell = shared_access(address, true);

    if (me()->interrupted)
        return false;
    store_now(cell, address, bytes, value, EXPLORE_RELAXED, pc);
    return true;
}

uint64_t explore_update(volatile void *address, unsigned bytes, explore_change *change,
                        uint64_t operand, uint64_t expected, enum explore_order order,
                        enum explore_order failing, const void *pc)
{
    struct cell *cell;
    uint64_t before, value;
    clocks message;

    if (!E || !E->now) {
        before = value = memory_read(address, bytes);
        if (change(&value, operand, expected))
            memory_write(address, bytes, value);
        return before;
    }
    cell = shared_access(address, true);
    if (cell->shared)
        drain(me()); /* others had their chance to see it late */
    else
        drain_in_time(me());
    decide_about_others(address);
    before = value = memory_read(address, bytes);
    if (!change(&value, operand, expected)) {
        receive(&cell->message, failing);
        check_atomic(cell, address, false, pc);
        note_event("finds", address, before, pc);
        return before;
    }
    receive(&cell->message, order);
    check_atomic(cell, address, true, pc);
    note_event("updates to", address, value, pc);
    memory_write(address, bytes, value);
    message = send(order);
    join(&cell->message, &message);
    if (releases(order))
        cell->heads |= (uint8_t)(1u << E->current);
    return before;
}

void explore_fence(enum explore_order order, const void *pc)
{
    if (!E || !E->now)
        return;
    if (acquires(order))
        join(&me()->knows, &me()->acquired);
    if (order == EXPLORE_SEQ_CST)
        drain_in_time(me());
    if (releases(order)) {
        me()->released = me()->knows;
        me()->knows.of[E->current]++;
    }
    note_event("fences", NULL, 0, pc);
}

/* As documented, each other thread executes a full fence between the call and its return. Here
 * that is one moment for all of them, chosen by may_switch(). */
void explore_remote_fence(bool restarts, const void *pc)
{
    if (!E || !E->now)
        return;
    may_switch();
    for (unsigned i = 0; i < E->threads; i++) {
        drain(&E->thread[i]);
        if (restarts && i != E->current) {
            E->thread[i].interrupted = true;
            join(&me()->knows, &E->thread[i].knows);
        }
    }
    note_event(restarts ? "restarts all" : "fences all", NULL, 0, pc);
}

bool explore_block(const volatile void *word, unsigned bytes, uint64_t value, bool timed)
{
    if (!E->concurrent)
        return false;
    drain_in_time(me());
    if (explore_load(word, bytes, EXPLORE_RELAXED, __builtin_return_address(0)) != value)
        return false;
    me()->state = BLOCKED;
    me()->timed = timed;
    me()->waits_for = word;
    me()->turn = E->steps;
    note_event("sleeps", word, value, __builtin_return_address(0));
    reschedule();
    return true;
}

void explore_wake(const volatile void *word)
{
    drain(me());
    note_event("wakes", word, 0, __builtin_return_address(0));
    for (unsigned i = 1; i < E->threads; i++)
        if (E->thread[i].state == BLOCKED && E->thread[i].waits_for == word)
            E->thread[i].state = READY;
}

void *explore_alloc_aligned(size_t bytes, size_t alignment)
{
    size_t from = (E->arena_used + alignment - 1) & ~(alignment - 1);

    E->arena_used = from + bytes;
    if (E->arena_used > ARENA_BYTES)
        broken("the arena is full");
    return (char *)ARENA_ADDRESS + from;
}

void *explore_alloc(size_t bytes)
{
    return explore_alloc_aligned(bytes, 128);
}

void explore_free(void *memory, size_t bytes)
{
    explore_plain(memory, bytes, true, __builtin_return_address(0));
    for (size_t at = 0; at < bytes; at += 1u << GRANULE_SHIFT)
        cell_of((char *)memory + at)->freed = true;
    note_event("frees", memory, bytes, __builtin_return_address(0));
}

/* ------------------------------------------------------------------------------------ executing */

void explore_keep(void *memory, size_t bytes)
{
    E->kept = memory;
    E->kept_bytes = bytes;
}

static void put_back(void)
{
    struct explorer *explorer = E;
    char *kept = E->kept, *behind = kept + E->kept_bytes;

    memcpy(E->data, E->pristine, (size_t)(kept - E->data));
    memcpy(behind, E->pristine + (behind - E->data), E->data_bytes - (size_t)(behind - E->data));
    E = explorer;
    memcpy(E->tls_block, E->tls_pristine, E->tls_bytes);
    memset(ARENA_ADDRESS, 0, E->arena_used);
    E->arena_used = 0;
}

static void execute(void)
{
    put_back();
    E->execution++;
    E->choices_made = E->spent = 0;
    E->steps = E->event_count = 0;
    E->clock = 1000000000;
    E->threads = 1;
    E->current = 0;
    memset(&E->thread[0].knows, 0, 3 * sizeof(clocks));
    E->thread[0].knows.of[0] = 1;
    E->thread[0].buffered = 0;
    E->thread[0].cpu = 0;
    E->concurrent = false;
    E->now->setup();
    if (E->threads > 1) {
        unsigned found[THREADS], ready = in_state(READY, found), first;

        E->concurrent = true;
        first = found[choose(ready, false)];
        tls_switch(0, first);
        E->current = first;
        swapcontext(&E->alone, &E->thread[first].context);
        E->concurrent = false;
    }
    for (unsigned i = 1; i < E->threads; i++) {
        if (E->thread[i].state != ENDED && !E->thread[i].daemon) {
            E->concurrent = true;
            E->current = i;
            explore_fail("hangs: thread %u waits for ever", i);
        }
        join(&E->thread[0].knows, &E->thread[i].knows);
    }
    if (E->now->after)
        E->now->after();
    E->executions++;
    E->steps_ever += E->event_count;
}

/* Runs all executions within the bound; repeats them while words turn out to be shared. */
static void explore_within(unsigned bound)
{
    do {
        E->learnt = false;
        for (size_t i = 0; i < CELLS; i++) {
            uint8_t users = E->cells[i].readers;

            E->cells[i].shared = E->cells[i].writers && users & (users - 1);
        }
        E->bound = bound;
        E->choices_known = 0;
        do
            execute();
        while (next_choices());
    } while (E->learnt);
}

static void make_explorer(void)
{
    E = mmap(NULL, sizeof *E, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (E == MAP_FAILED ||
        mmap(ARENA_ADDRESS, ARENA_BYTES, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != ARENA_ADDRESS)
        broken("no memory");
    E->data = __data_start;
    E->data_bytes = (size_t)(_end - __data_start);
    E->kept = E->data;
    E->pristine =
        mmap(NULL, E->data_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* Finds the program's thread-local block: the first in the dynamic loader's list is the
 * program's. */
static int find_tls_in(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size, (void)unused;
    for (unsigned i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_TLS)
            E->tls_bytes = info->dlpi_phdr[i].p_memsz;
    E->tls_block = info->dlpi_tls_data;
    return 1;
}

static void find_tls(void)
{
    dl_iterate_phdr(find_tls_in, NULL);
    if (E->tls_bytes > TLS_MAX)
        broken("too many thread-local variables");
}

/* Finds a case by name; prints all names if `name` is empty. */
static void find_case(const char *name)
{
    for (const struct explore_case *const *each = __start_explored; each < __stop_explored;
         each++) {
        if (!*name)
            printf("%s\n", (*each)->name);
        else if (!strcmp((*each)->name, name))
            E->now = *each;
    }
}

int main(int count, char **arguments)
{
    const char *name = count > 1 ? arguments[1] : "";
    bool deep = count > 2 && !strcmp(arguments[2], "deep");
    struct timespec began, ended;
    unsigned bound;

    make_explorer();
    find_tls();
    find_case(name);
    if (!*name)
        return 0;
    if (!E->now)
        broken("no such case");
    system_start();
    memcpy(E->tls_pristine, E->tls_block, E->tls_bytes);
    memcpy(E->pristine, E->data, E->data_bytes);
    bound = deep ? E->now->deep : E->now->bound;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &began);
    for (unsigned so_many = 0; so_many <= bound; so_many++)
        explore_within(so_many);
    if (!E->noted)
        broken("holds idly");
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ended);
    printf("holds: %llu executions, %llu operations, bound %u, %.1f s\n",
           (unsigned long long)E->executions, (unsigned long long)E->steps_ever, bound,
           (double)(ended.tv_sec - began.tv_sec) + (double)(ended.tv_nsec - began.tv_nsec) / 1e9);
    return 0;
}
