/* SPDX-License-Identifier: MIT */
/*
 * Idle work: one thread (thread.c describes all threads of the library), and only with option
 * background. The thread is started when the library is loaded or the option set, and in the child
 * after fork. It is never started inside an allocation, whose caller may be creating or ending a
 * thread.
 *
 * The thread has ordinary priority and asks the system whether CPUs had idle time. A thread of idle
 * priority would run only then (ADR 7), but others wait for work that it has begun (fork, the
 * destruction of a cache; in the kernel the lock of the address space, for which a page fault is
 * enough), and on a loaded machine it would keep them waiting for seconds.
 */
#define _GNU_SOURCE /* CPU_SET */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/os.h"
#include "posix.h"

#define STACK ((size_t)256 << 10)

#define PAUSE_NS 1000000 /* between rounds; idle work need not spin */

#define LOOK_NS   10000000  /* between searches for idle time; the kernel counts in such ticks */
#define LATELY_NS 100000000 /* a longer time between checks says nothing about now */
#define TRUST_NS  20000000  /* a CPU counts as idle this long after an idle tick */

/* KICKED means that a kick came since the current or last round began, so another round follows. */
enum { ASLEEP, AWAKE, KICKED };
static uint32_t helper; /* one of these; a futex */

static uint32_t started;
static bool (*current_work)(void); /* written before the thread is made */
static bool found_idle;            /* whether a CPU was idle in this round; the helper's own */

/* Sleeps as a waiting thread, because no other thread waits for the work to come. */
static void idle_sleep(uint64_t nanoseconds)
{
    os_thread_waits(true);
    os_sleep_ns(nanoseconds);
    os_thread_waits(false);
}

/* Sleeps only if no thread has kicked since the round began. */
static void pause_and_sleep(void)
{
    uint32_t awake = AWAKE;

    idle_sleep(PAUSE_NS);
    if (compare_exchange(&helper, &awake, ASLEEP))
        os_word_wait(&helper, ASLEEP, 0);
}

static void idle_help(void *unused)
{
    (void)unused;
    for (;;) {
        store_relaxed(&helper, AWAKE);
        os_full_fence(); /* before the search: a kick sees AWAKE, or the round the kick's reason */
        found_idle = false;
        if (current_work())
            idle_sleep(found_idle ? PAUSE_NS : LOOK_NS);
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
    if (!os_thread_start("prudence-idle", -1, STACK, idle_help, NULL))
        store_release(&started, 0u); /* nothing depends on the helper */
}

void os_idle_kick(void)
{
    uint32_t before;

    if (!load_relaxed(&started))
        return;
    os_full_fence(); /* after the caller has stored the reason for the kick */
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

/* ---------------------------------------------------------------------------- idle time of CPUs */

/* Used only by the helper, like everything here. */
static struct {
    uint64_t ticks; /* idle ticks at the last check */
    uint64_t until; /* ns; counts as idle until then */
} cpus[CPU_SETSIZE];
static uint64_t idle_looked_at;             /* ns */
static bool (*injected_idle)(unsigned cpu); /* atomic */

/* Parses a line "cpu3 user nice system idle iowait ..."; ignores others. */
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

/* Parses all complete lines. Returns the bytes of the incomplete rest, moved to the start of
 * `text`. */
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

/* Reads the CPUs' lines, which come first in the file, and stops at a line too long for them.
 * `again` says that the last check was a short while ago, so a CPU whose ticks grew was idle
 * lately. */
static void idle_look(uint64_t now, bool again)
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
    if (now >= cpus[cpu].until && now - idle_looked_at >= LOOK_NS) {
        idle_look(now, now - idle_looked_at < LATELY_NS);
        idle_looked_at = now;
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
