/* SPDX-License-Identifier: MIT */
/*
 * Whether memory is short: asked of the process's control group (version 2), where a limit kills
 * before the machine runs out, and of the kernel's pressure stall information.
 *
 * The files are read when the page source is about to ask for memory, at most every CHECK_NS; while
 * one look after the other finds memory short, less and less often, since a process that empties its
 * caches all the time has none. Memory is short when what is used is close to memory.high or memory.max, or when
 * the kernel has counted one of these as met since the last look (memory.events), or when tasks have
 * waited for memory for a tenth of the time: some task of the group (memory.pressure), or, where no
 * group tells, all tasks of the machine at once, since one of them may be short by a limit of its own.
 * No file is kept open: a program may close or count its descriptors.
 *
 * State: atomic words; `looking` keeps a second thread from looking at the same time. This may be the
 * thread with the smallest stack: what is read has static memory, and nothing is formatted.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/os.h"
#include "posix.h"

#define CHECK_NS     10000000u
#define CHECK_NS_MAX 640000000u
#define ABSENT_NS    100000000u /* no group: perhaps the process is moved to one later */

#define MARGIN_SHIFT 4 /* close: a sixteenth of the limit is left, */
#define MARGIN_MAX   (UINT64_C(64) << 20)

#define STALL_LOOK_NS UINT64_C(100000000)  /* between looks; less says little */
#define STALL_SPAN_NS UINT64_C(1000000000) /* after a long time, as if the stall was of the last */
#define STALL_SHARE   10                   /* a tenth of the time */

static uint32_t looking, is_short;
static uint64_t next_look;

/* Of the thread that is looking. */
static uint64_t pause_ns = CHECK_NS;
static uint64_t events_before;
static bool events_known;
static uint64_t stall_before, stall_looked_at; /* microseconds; ns */
static bool stall_known;
static char folder[256]; /* ends in '/'; empty: not looked for yet */
static bool injected;
static const char *machine_file = "/proc/pressure/memory";
static char text[4096]; /* of the file that was read last */

/* False: `to` has no room for both. */
static bool join(char *to, size_t size, const char *first, const char *second)
{
    size_t before = strlen(first), more = strlen(second);

    if (before + more >= size)
        return false;
    memcpy(to, first, before);
    memcpy(to + before, second, more);
    to[before + more] = '\0';
    return true;
}

static bool group_read(const char *name)
{
    static char path[sizeof folder + 32];

    return join(path, sizeof path, folder, name) && posix_file_read(path, text, sizeof text);
}

/* The line "0::/path" names the group: the path, ending in '/'. NULL: there is none. */
static const char *group_name(void)
{
    static char name[sizeof folder];
    char *path, *end;

    if (!posix_file_read("/proc/self/cgroup", text, sizeof text))
        return NULL;
    path = strncmp(text, "0::/", 4) == 0 ? text : strstr(text, "\n0::/");
    path = path ? strchr(path, '/') : NULL;
    if (!path)
        return NULL;
    end = strchr(path, '\n');
    if (end)
        *end = '\0';
    return join(name, sizeof name, path, path[strlen(path) - 1] == '/' ? "" : "/") ? name : NULL;
}

/* Below where such groups are mounted. */
static bool group_find(void)
{
    static const char *const mounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
    const char *name;

    if (injected)
        return true;
    name = group_name();
    for (unsigned i = 0; name && i < sizeof mounts / sizeof mounts[0]; i++)
        if (join(folder, sizeof folder, mounts[i], name) && group_read("memory.current"))
            return true;
    return false;
}

/* A number, or "max" or no file: UINT64_MAX. */
static uint64_t limit_read(const char *name)
{
    if (!group_read(name) || text[0] < '0' || text[0] > '9')
        return UINT64_MAX;
    return strtoull(text, NULL, 10);
}

/* What stands behind `key` at the beginning of a line of what was read; NULL: no line has it. */
static const char *line_behind(const char *key)
{
    size_t length = strlen(key);
    const char *line = text;

    while (line && strncmp(line, key, length) != 0) {
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    return line ? line + length : NULL;
}

static uint64_t number_behind(const char *key)
{
    const char *number = line_behind(key);

    return number ? strtoull(number, NULL, 10) : 0;
}

/* How often the group has met its limits. */
static uint64_t events_read(void)
{
    if (!group_read("memory.events"))
        return 0;
    return number_behind("high ") + number_behind("max ") + number_behind("oom ");
}

static bool is_close(uint64_t more)
{
    uint64_t high = limit_read("memory.high"), max = limit_read("memory.max");
    uint64_t limit = high < max ? high : max, used, margin;

    if (limit == UINT64_MAX)
        return false;
    used = limit_read("memory.current");
    margin = min_size(limit >> MARGIN_SHIFT, MARGIN_MAX);
    return used != UINT64_MAX && used + more > limit - margin;
}

static bool has_new_events(void)
{
    uint64_t events = events_read();
    bool more = events_known && events > events_before;

    events_before = events;
    events_known = true;
    return more;
}

/* How long tasks have waited for memory, in microseconds: "some avg10=0.00 ... total=123". */
static bool stall_read(bool has_group, uint64_t *total)
{
    const char *line = NULL;

    if (has_group && group_read("memory.pressure"))
        line = line_behind("some ");
    else if (posix_file_read(machine_file, text, sizeof text))
        line = line_behind("full ");
    line = line ? strstr(line, "total=") : NULL; /* the last word of each line */
    if (!line)
        return false;
    *total = strtoull(line + strlen("total="), NULL, 10);
    return true;
}

static bool has_stalled(uint64_t now, bool has_group)
{
    uint64_t huge = now - stall_looked_at, total, before = stall_before;
    bool known = stall_known;

    if (known && huge < STALL_LOOK_NS)
        return false;
    stall_known = stall_read(has_group, &total);
    if (!stall_known)
        return false;
    stall_before = total;
    stall_looked_at = now;
    return known && total > before &&
           (total - before) * 1000 >= min_size(huge, STALL_SPAN_NS) / STALL_SHARE;
}

/* Returns when to look again. */
static uint64_t look(uint64_t now, uint64_t more)
{
    bool has_group = group_find();
    bool stalled = has_stalled(now, has_group);
    bool met = has_group && has_new_events();

    if (!stalled && !met && !(has_group && is_close(more))) {
        pause_ns = CHECK_NS;
        return has_group ? CHECK_NS : ABSENT_NS;
    }
    store_release(&is_short, 1u);
    pause_ns = (uint64_t)min_size(pause_ns * 2, CHECK_NS_MAX);
    return pause_ns;
}

void posix_pressure_check(uint64_t more)
{
    uint64_t now = posix_clock_coarse_ns();
    uint32_t no = 0;
    int saved_errno = errno;

    if (now < load_relaxed(&next_look) || !compare_exchange(&looking, &no, 1u))
        return;
    store_relaxed(&next_look, now + look(now, more));
    store_release(&looking, 0u);
    errno = saved_errno;
}

bool os_memory_is_short(void)
{
    return unlikely(load_relaxed(&is_short)) && exchange_acquire(&is_short, 0u);
}

void posix_pressure_inject(const char *group, const char *machine)
{
    injected = join(folder, sizeof folder, group, "");
    machine_file = machine;
    events_known = stall_known = false;
    pause_ns = CHECK_NS;
    store_relaxed(&next_look, 0);
    store_relaxed(&is_short, 0u);
}

/* The thread that was looking does not exist in the child. */
void posix_pressure_fork_child(void)
{
    looking = 0;
}
