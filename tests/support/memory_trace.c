/* SPDX-License-Identifier: MIT */
/* See memory_trace.h. */
#define _GNU_SOURCE /* REG_ERR */
#include "support/memory_trace.h"

#if MEMORY_TRACE_POSSIBLE

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>

#define PAGE        ((uintptr_t)4096)
#define RANGES_MAX  4096
#define ACCESSES    ((size_t)16 << 20)
#define OPEN_MAX    4
#define TRAP_FLAG   0x100LL
#define FAULT_STORE 2

struct range {
    uintptr_t first, end;
};

/* Fills whole pages, because the signal handlers use this structure while other pages are
 * protected. */
static struct tracer {
    struct range ranges[RANGES_MAX];
    unsigned count;
    uintptr_t open[OPEN_MAX]; /* pages opened for the current instruction */
    unsigned opened;
    struct memory_access *accesses;
    size_t made;
    uint32_t turn;
    char stack[65536]; /* stack of the handlers */
    struct sigaction fault_before, trap_before;
    stack_t stack_before;
} __attribute__((aligned(4096))) tracer;

/* Makes a system call without libc, because the program's table of libc functions is traced as
 * well. */
static long call_system(long number, long first, long second, long third)
{
    long result;

    __asm__ __volatile__("syscall"
                         : "=a"(result)
                         : "a"(number), "D"(first), "S"(second), "d"(third)
                         : "rcx", "r11", "memory");
    return result;
}

static void die(const char *why)
{
    size_t length = 0;

    while (why[length])
        length++;
    call_system(SYS_write, 2, (long)why, (long)length);
    call_system(SYS_exit_group, 1, 0, 0);
}

static bool is_looked_at(uintptr_t address)
{
    unsigned low = 0, high = tracer.count;

    while (low < high) { /* the ranges are sorted */
        unsigned middle = (low + high) / 2;

        if (address >= tracer.ranges[middle].end)
            low = middle + 1;
        else
            high = middle;
    }
    return low < tracer.count && address >= tracer.ranges[low].first;
}

static void protect(uintptr_t page, int protection)
{
    if (call_system(SYS_mprotect, (long)page, (long)PAGE, protection))
        die("memory_trace: mprotect fails\n");
}

static void note(uintptr_t address, bool store)
{
    if (tracer.made == ACCESSES)
        die("memory_trace: too many accesses\n");
    tracer.accesses[tracer.made++] =
        (struct memory_access){.address = address, .turn = tracer.turn, .store = store};
}

/* Handles SIGSEGV: opens the page as far as this access requires. */
static void on_fault(int number, siginfo_t *info, void *context)
{
    ucontext_t *here = context;
    uintptr_t address = (uintptr_t)info->si_addr, page = address & ~(PAGE - 1);
    bool store = here->uc_mcontext.gregs[REG_ERR] & FAULT_STORE;
    unsigned i = 0;

    (void)number;
    if (!is_looked_at(address))
        die("memory_trace: a fault where no page is traced\n");
    while (i < tracer.opened && tracer.open[i] != page)
        i++;
    if (i == OPEN_MAX)
        die("memory_trace: an instruction touches too many pages\n");
    tracer.open[i] = page;
    if (i == tracer.opened)
        tracer.opened++;
    note(address, store);
    protect(page, store ? PROT_READ | PROT_WRITE : PROT_READ);
    here->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
}

/* Handles SIGTRAP after that instruction: closes the pages. */
static void on_trap(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    for (unsigned i = 0; i < tracer.opened; i++)
        protect(tracer.open[i], PROT_NONE);
    tracer.opened = 0;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
}

static void look_at(uintptr_t first, uintptr_t end)
{
    if (first >= end)
        return;
    if (tracer.count == RANGES_MAX)
        die("memory_trace: too many mappings\n");
    tracer.ranges[tracer.count++] = (struct range){.first = first, .end = end};
}

/* Traces `range` except for the holes, which begin and end at page boundaries. */
static void look_at_but(struct range range, const struct range *holes, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (holes[i].end <= range.first || holes[i].first >= range.end)
            continue;
        look_at_but((struct range){range.first, holes[i].first}, holes + i + 1, count - i - 1);
        range.first = holes[i].end;
    }
    look_at(range.first, range.end);
}

static int by_address(const void *a, const void *b)
{
    const struct range *left = a, *right = b;

    return (left->first > right->first) - (left->first < right->first);
}

/* Returns the thread-local variables of this thread, on both sides of the thread pointer. */
static struct range of_this_thread(void)
{
    uintptr_t pointer = (uintptr_t)__builtin_thread_pointer() & ~(PAGE - 1);

    return (struct range){pointer - 4 * PAGE, pointer + 2 * PAGE};
}

/* Returns whether a mapping is anonymous or belongs to the program, and is no stack, heap or
 * library. */
static bool is_wanted(const char *name)
{
    return name[0] == '\0' || (name[0] == '/' && !strstr(name, ".so"));
}

static void find_ranges(const void *own, size_t bytes)
{
    uintptr_t first_own = (uintptr_t)own & ~(PAGE - 1);
    struct range holes[] = {
        {first_own, ((uintptr_t)own + bytes + PAGE - 1) & ~(PAGE - 1)},
        {(uintptr_t)&tracer, (uintptr_t)(&tracer + 1)},
        {(uintptr_t)tracer.accesses, (uintptr_t)(tracer.accesses + ACCESSES)},
        of_this_thread(),
    };
    unsigned count = sizeof holes / sizeof holes[0];
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];

    qsort(holes, count, sizeof holes[0], by_address);
    tracer.count = 0;
    while (maps && fgets(line, sizeof line, maps)) {
        char access[8], name[256] = "";
        struct range range;

        if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %255s", &range.first, &range.end, access, name) >=
                3 &&
            strcmp(access, "rw-p") == 0 && is_wanted(name))
            look_at_but(range, holes, count);
    }
    if (!maps || tracer.count == 0)
        die("memory_trace: no maps\n");
    fclose(maps);
}

static void protect_all(int protection)
{
    for (unsigned i = 0; i < tracer.count; i++)
        if (call_system(SYS_mprotect, (long)tracer.ranges[i].first,
                        (long)(tracer.ranges[i].end - tracer.ranges[i].first), protection))
            die("memory_trace: mprotect of a mapping fails\n");
}

void memory_trace_turn(uint32_t turn)
{
    tracer.turn = turn;
}

void memory_trace_begin(const void *own, size_t bytes)
{
    struct sigaction fault = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    struct sigaction trap = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    stack_t stack = {.ss_sp = tracer.stack, .ss_size = sizeof tracer.stack};

    if (!tracer.accesses)
        tracer.accesses = mmap(NULL, ACCESSES * sizeof tracer.accesses[0], PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (tracer.accesses == MAP_FAILED)
        die("memory_trace: no memory\n");
    tracer.made = 0;
    find_ranges(own, bytes);
    sigaltstack(&stack, &tracer.stack_before);
    sigaction(SIGSEGV, &fault, &tracer.fault_before);
    sigaction(SIGTRAP, &trap, &tracer.trap_before);
}

void memory_trace_on(void)
{
    protect_all(PROT_NONE);
}

void memory_trace_off(void)
{
    protect_all(PROT_READ | PROT_WRITE);
}

size_t memory_trace_count(void)
{
    return tracer.made;
}

const struct memory_access *memory_trace_end(size_t *count)
{
    sigaction(SIGSEGV, &tracer.fault_before, NULL);
    sigaction(SIGTRAP, &tracer.trap_before, NULL);
    tracer.stack_before.ss_flags |= tracer.stack_before.ss_sp ? 0 : SS_DISABLE;
    sigaltstack(&tracer.stack_before, NULL);
    *count = tracer.made;
    return tracer.accesses;
}

#endif
