/* SPDX-License-Identifier: MIT */
/*
 * Idle work: one thread (thread.c says what all threads of the library have in common), and only when the option
 * background is on. It is started when the library is loaded or the option set, and after fork in the child: never
 * from inside an allocation, whose caller may be making or ending a thread.
 *
 * It has ordinary priority, and asks the system whether CPUs had idle time. A thread of idle priority would run when
 * they have (ADR 8), but others wait for the work that it has begun (fork, the destruction of a cache; in the kernel
 * the lock of the address space, for which a page fault is enough), and on a loaded machine such a thread keeps them
 * waiting for seconds.
 */
#define _GNU_SOURCE /* CPU_SET */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/os.h"
#include "posix.h"

#define STACK ((size_t)256 << 10)

#define PAUSE_NS 1000000 /* between rounds: idle work is never urgent enough to spin */

#define LOOK_NS   10000000  /* between looks for idle time, which is counted in ticks of so much */
#define LATELY_NS 100000000 /* looks that are further apart tell nothing about now */
#define TRUST_NS  20000000  /* a CPU that had an idle tick is taken for idle for so long */

/* Kicked: since the round began that is under way or was the last; so there will be another. */
enum { ASLEEP, AWAKE, KICKED };
static uint32_t helper; /* one of these; a futex */

static uint32_t started;
static bool (*current_work)(void); /* written before the thread is made */
static bool found_idle;            /* a CPU, in this round; the helper's own */

/* Nothing waits for what it will do then. */
static void sleep_for(uint64_t nanoseconds)
{
    os_thread_waits(true);
    os_sleep_ns(nanoseconds);
    os_thread_waits(false);
}

/* Not asleep before it has seen that nobody has kicked since its round began. */
static void pause_and_sleep(void)
{
    uint32_t awake = AWAKE;

    sleep_for(PAUSE_NS);
    if (compare_exchange(&helper, &awake, ASLEEP))
        os_word_wait(&helper, ASLEEP, 0);
}

static void help(void *unused)
{
    (void)unused;
    for (;;) {
        store_relaxed(&helper, AWAKE);
        os_full_fence(); /* before it looks for work: a kick sees this, or the round its reason */
        found_idle = false;
        if (current_work())
            sleep_for(found_idle ? PAUSE_NS : LOOK_NS);
        else
            pause_and_sleep();
    }
}

void os_idle_start(bool (*work)(void))
{
    uint32_t no = 0;

    if (load_relaxed(&started) || !compare_exchange(&started, &no, 1u))
        return;
    current_work = work;
    store_relaxed(&helper, AWAKE);
    if (!os_thread_start("prudence-idle", -1, STACK, help, NULL))
        store_release(&started, 0u); /* nothing depends on it */
}

void os_idle_kick(void)
{
    uint32_t before;

    if (!load_relaxed(&started))
        return;
    os_full_fence(); /* behind what the kick is for */
    before = load_relaxed(&helper);
    while (before != KICKED && !compare_exchange(&helper, &before, KICKED))
        ;
    if (before == ASLEEP)
        os_word_wake(&helper);
}

bool os_idle_move_to(unsigned cpu)
{
    cpu_set_t one;

    if (cpu >= CPU_SETSIZE || os_calls_are_few())
        return false;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    return sched_setaffinity(0, sizeof one, &one) == 0;
}

void posix_idle_fork_child(void)
{
    started = 0;
}

/* ------------------------------------------------------------------------------- had it idle time? */

/* The helper's own, as all here. */
static struct {
    uint64_t ticks; /* idle, as read last */
    uint64_t until; /* ns: taken for idle */
} cpus[CPU_SETSIZE];
static uint64_t looked_at;                  /* ns */
static bool (*injected_idle)(unsigned cpu); /* atomic */

/* A line "cpu3 user nice system idle iowait ..."; others are ignored. */
static void line_read(const char *line, uint64_t now, bool again)
{
    unsigned long cpu;
    uint64_t ticks = 0;
    char *end;

    if (strncmp(line, "cpu", 3) != 0 || line[3] < '0' || line[3] > '9')
        return;
    cpu = strtoul(line + 3, &end, 10);
    for (unsigned field = 0; field < 4; field++)
        ticks = strtoull(end, &end, 10);
    if (cpu >= CPU_SETSIZE)
        return;
    if (again && ticks > cpus[cpu].ticks)
        cpus[cpu].until = now + TRUST_NS;
    cpus[cpu].ticks = ticks;
}

/* Cuts what was read into lines, until one is not whole; returns the bytes of that. */
static size_t lines_read(char *text, size_t length, uint64_t now, bool again)
{
    char *line = text, *end;

    while ((end = memchr(line, '\n', length - (size_t)(line - text)))) {
        *end = '\0';
        line_read(line, now, again);
        line = end + 1;
    }
    length -= (size_t)(line - text);
    memmove(text, line, length);
    return length;
}

/* The lines of CPUs stand first; a line that is too long for them ends it. `again`: the last look was
 * a short while ago, so that what has grown since has grown lately. */
static void look(uint64_t now, bool again)
{
    int file = os_calls_are_few() ? -1 : open("/proc/stat", O_RDONLY | O_CLOEXEC);
    char text[4096];
    size_t length = 0;
    ssize_t got;

    if (file < 0)
        return;
    while (length < sizeof text && (got = read(file, text + length, sizeof text - length)) > 0)
        length = lines_read(text, length + (size_t)got, now, again);
    close(file);
}

static bool had_idle_time(unsigned cpu)
{
    uint64_t now;

    if (cpu >= CPU_SETSIZE)
        return false;
    now = os_clock_ns();
    if (now >= cpus[cpu].until && now - looked_at >= LOOK_NS) {
        look(now, now - looked_at < LATELY_NS);
        looked_at = now;
    }
    return now < cpus[cpu].until;
}

bool os_idle_seen(unsigned cpu)
{
    bool (*injected)(unsigned cpu) = load_acquire(&injected_idle);
    bool idle = injected ? injected(cpu) : had_idle_time(cpu);

    found_idle |= idle;
    return idle;
}

void posix_idle_inject(bool (*idle)(unsigned cpu))
{
    store_release(&injected_idle, idle);
}
