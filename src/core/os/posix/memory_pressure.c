/* SPDX-License-Identifier: MIT */
/*
 * Detects memory shortage from the control groups that the process is in, where a limit kills
 * before the machine runs out, and from the kernel's pressure stall information.
 *
 * Groups are of version 2 or 1. Limits of the groups above the process's own count as well, as far
 * up as they can be seen: to the mount, which in a container may be a group itself.
 *
 * The files are read when the page source is about to ask for memory, at most every CHECK_NS. While
 * one check after the other finds memory short, the library checks less and less often, because a
 * process that empties caches all the time has none. Memory is short if
 *  - the bytes used are close to a limit,
 *  - the kernel has counted more hits of the group's own limit since the last check, or
 *  - tasks have waited for memory for a tenth of the time: some task of the group (memory.pressure)
 *    or, if no group reports that, all tasks of the machine at once, because one of them may be
 *    short by a limit of its own.
 * No file is kept open, because a program may close or count descriptors.
 *
 * With few calls (syscall_policy.h) no file is read. The smallest limit found at start then counts,
 * and is compared with the bytes that this process has from the system.
 *
 * The thread that set `looking` owns all state but the atomic words. A second thread does not
 * check; only one that makes calls few waits for the first. The checking thread may be the one with
 * the smallest stack, so buffers are static and nothing is formatted.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/os.h"
#include "posix.h"

#define CHECK_NS     10000000u
#define CHECK_NS_MAX 640000000u
#define ABSENT_NS    100000000u /* if there is no group; the process may be moved to one later */
#define WAIT_NS      20000u     /* about what a check takes */

#define MARGIN_SHIFT 4 /* close to a limit: less than a sixteenth of it remains, */
#define MARGIN_MAX   (UINT64_C(64) << 20)

#define NO_LIMIT (UINT64_C(1) << 60) /* version 1 writes a number of about this size for "none" */

#define STALL_LOOK_NS UINT64_C(100000000)  /* between checks; a shorter time says little */
#define STALL_SPAN_NS UINT64_C(1000000000) /* longer times count as this */
#define STALL_SHARE   10                   /* a tenth of the time */

static uint32_t looking, is_short;
static uint64_t next_look;

/* Under `looking`. */
static uint64_t pressure_pause_ns = CHECK_NS;
static uint64_t events_before;
static bool events_known;
static uint64_t stall_before, stall_looked_at; /* microseconds; ns */
static bool stall_known;
static char folder[256]; /* of the group, ends in '/'; empty if there is none */
static size_t top;       /* length of the mount's part of it */
static bool injected;
static const char *root = "";
static const char *machine_file = "/proc/pressure/memory";
static char text[4096]; /* contents of the file read last */

/* Used with few calls; under `looking`. */
static uint64_t start_limit = UINT64_MAX;
static uint64_t (*pressure_own_bytes)(void);

/* Names of a group's files. Version 1 has no file for `high`. Every group has the file `always`,
 * which is never empty. */
struct names {
    const char *used, *max, *high, *always;
};
static const struct names version_2 = {"memory.current", "memory.max", "memory.high",
                                       "cgroup.type"};
static const struct names version_1 = {"memory.usage_in_bytes", "memory.limit_in_bytes", "",
                                       "notify_on_release"};
static const struct names *names = &version_2;

/* Returns false if `to` is too small. */
static bool append_text(char *to, size_t size, const char *more)
{
    size_t before = strlen(to), length = strlen(more);

    if (before + length >= size)
        return false;
    memcpy(to + before, more, length + 1);
    return true;
}

static bool read_below_root(const char *path)
{
    static char whole[sizeof folder];

    whole[0] = '\0';
    return append_text(whole, sizeof whole, root) && append_text(whole, sizeof whole, path) &&
           posix_file_read(whole, text, sizeof text);
}

/* Reads a file of the group whose folder is the first `length` bytes of `folder`. */
static bool group_read_at(size_t length, const char *name)
{
    static char path[sizeof folder + 32];

    memcpy(path, folder, length);
    path[length] = '\0';
    return append_text(path, sizeof path, name) && posix_file_read(path, text, sizeof text);
}

static bool group_read(const char *name)
{
    return group_read_at(strlen(folder), name);
}

/* ---------------------------------------------------------------------------- finding the group */

static bool has_memory_controller(const char *controllers, const char *end)
{
    static const char memory[] = "memory";
    size_t length = sizeof memory - 1;

    for (; controllers < end; controllers += strcspn(controllers, ",:") + 1)
        if (strncmp(controllers, memory, length) == 0 &&
            (controllers[length] == ',' || controllers + length == end))
            return true;
    return false;
}

static char paths
    [2]
    [sizeof folder]; /* of the process's groups of version 2 and 1; each ends in '/', or is empty */

static void note_path(char *path, const char *told)
{
    path[0] = '\0';
    if (!append_text(path, sizeof folder, told) ||
        (told[strlen(told) - 1] != '/' && !append_text(path, sizeof folder, "/")))
        path[0] = '\0';
}

/* Reads /proc/self/cgroup, whose lines are "number:controllers:path". The line of the version 2
 * group has no controllers; the line that matters for version 1 has memory among them. A group
 * outside the process's namespace ("/../x") cannot be seen. */
static void read_paths(void)
{
    char *line = text, *controllers, *path, *end;

    paths[0][0] = paths[1][0] = '\0';
    if (!read_below_root("/proc/self/cgroup"))
        return;
    for (; *line; line = end) {
        end = line + strcspn(line, "\n");
        if (*end)
            *end++ = '\0';
        controllers = strchr(line, ':');
        path = controllers ? strchr(++controllers, ':') : NULL;
        if (!path || path[1] != '/' || strncmp(path + 1, "/..", 3) == 0)
            continue;
        if (path == controllers)
            note_path(paths[0], path + 1);
        else if (has_memory_controller(controllers, path))
            note_path(paths[1], path + 1);
    }
}

/* Returns the length of the parent folder, down to the mount's; 0 if there is none. */
static size_t folder_above(size_t length)
{
    if (length <= top)
        return 0;
    do
        length--;
    while (folder[length - 1] != '/');
    return length;
}

static bool group_is_there(void)
{
    return group_read(names->used) || group_read(names->always);
}

/* Returns whether this group or one above it counts memory. Not every group need do so. */
static bool counts_memory(void)
{
    for (size_t length = strlen(folder); length; length = folder_above(length))
        if (group_read_at(length, names->used))
            return true;
    return false;
}

/*
 * Finds the folder of a group below a mount. A container's mount may show a group as its root
 * although the group's name begins above it. Then only the end of the name exists below the mount;
 * in the last resort the mount itself is the group.
 */
static bool group_is_below(const char *mount, const char *name)
{
    folder[0] = '\0';
    if (!append_text(folder, sizeof folder, root) || !append_text(folder, sizeof folder, mount))
        return false;
    top = strlen(folder) + 1;
    for (; name && *name; name = strchr(name + 1, '/')) {
        folder[top - 1] = '\0';
        if (append_text(folder, sizeof folder, name) && group_is_there())
            return counts_memory();
    }
    return false;
}

static bool group_find(void)
{
    static const struct {
        const char *mount;
        const struct names *names;
    } places[] = {{"/sys/fs/cgroup", &version_2},
                  {"/sys/fs/cgroup/unified", &version_2},
                  {"/sys/fs/cgroup/memory", &version_1}};

    if (injected)
        return true;
    read_paths();
    for (unsigned i = 0; i < sizeof places / sizeof places[0]; i++) {
        names = places[i].names;
        if (group_is_below(places[i].mount, paths[names == &version_1]))
            return true;
    }
    folder[0] = '\0';
    return false;
}

/* --------------------------------------------------------------------------------------- limits */

/* Returns a file's number, or UINT64_MAX for "max" or a missing file. */
static uint64_t limit_read(size_t length, const char *name)
{
    if (!group_read_at(length, name) || text[0] < '0' || text[0] > '9')
        return UINT64_MAX;
    return strtoull(text, NULL, 10);
}

/* Returns the text after `key` at the beginning of a line of `text`, or NULL if no line begins
 * so. */
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

/* Returns how often the group has met a limit. */
static uint64_t events_read(void)
{
    if (names == &version_1)
        return group_read("memory.failcnt") ? strtoull(text, NULL, 10) : 0;
    if (!group_read("memory.events"))
        return 0;
    return number_behind("high ") + number_behind("max ") + number_behind("oom ");
}

static bool is_near(uint64_t used, uint64_t more, uint64_t limit)
{
    uint64_t margin = min_size(limit >> MARGIN_SHIFT, MARGIN_MAX);

    return used != UINT64_MAX && used + more > limit - margin;
}

static uint64_t limit_of(size_t length)
{
    uint64_t max = limit_read(length, names->max);
    uint64_t high = names->high[0] ? limit_read(length, names->high) : UINT64_MAX;

    return high < max ? high : max;
}

/* Checks the limits of the group and of those above it, each against the use of all processes
 * below. */
static bool is_close(uint64_t more)
{
    for (size_t length = strlen(folder); length; length = folder_above(length)) {
        uint64_t limit = limit_of(length);

        if (limit < NO_LIMIT && is_near(limit_read(length, names->used), more, limit))
            return true;
    }
    return false;
}

static bool has_new_events(void)
{
    uint64_t events = events_read();
    bool more = events_known && events > events_before;

    events_before = events;
    events_known = true;
    return more;
}

/* Reads how long tasks have waited for memory, in microseconds, from a line "some avg10=0.00 ...
 * total=123". */
static bool stall_read(bool has_group, uint64_t *total)
{
    const char *line = NULL;

    if (has_group && group_read("memory.pressure"))
        line = line_behind("some ");
    else if (posix_file_read(machine_file, text, sizeof text))
        line = line_behind("full ");
    line = line ? strstr(line, "total=") : NULL; /* last word of each line */
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

/* Checks the limit with few calls. Other processes of the group may have used more of it, which
 * is unknown then. */
static bool is_close_by_itself(uint64_t more)
{
    return start_limit < NO_LIMIT && pressure_own_bytes &&
           is_near(pressure_own_bytes(), more, start_limit);
}

static uint64_t note_short(void)
{
    store_release(&is_short, 1u);
    pressure_pause_ns = (uint64_t)min_size(pressure_pause_ns * 2, CHECK_NS_MAX);
    return pressure_pause_ns;
}

static uint64_t look_without_files(uint64_t more)
{
    if (is_close_by_itself(more))
        return note_short();
    pressure_pause_ns = CHECK_NS;
    return CHECK_NS;
}

/* Returns the time until the next check. */
static uint64_t look_at_files(uint64_t now, uint64_t more)
{
    bool has_group = group_find();
    bool stalled = has_stalled(now, has_group);
    bool met = has_group && has_new_events();

    if (!stalled && !met && !(has_group && is_close(more))) {
        pressure_pause_ns = CHECK_NS;
        return has_group ? CHECK_NS : ABSENT_NS;
    }
    return note_short();
}

void posix_pressure_check(uint64_t more)
{
    uint64_t now = posix_clock_coarse_ns();
    uint32_t no = 0;
    int saved_errno = errno;

    if (now < load_relaxed(&next_look) || !compare_exchange(&looking, &no, 1u))
        return;
    store_relaxed(&next_look,
                  now + (os_calls_are_few() ? look_without_files(more) : look_at_files(now, more)));
    store_release(&looking, 0u);
    errno = saved_errno;
}

bool os_memory_is_short(void)
{
    return unlikely(load_relaxed(&is_short)) && exchange_acquire(&is_short, 0u);
}

void posix_pressure_inject(const char *group, const char *machine)
{
    folder[0] = '\0';
    injected = append_text(folder, sizeof folder, group);
    names = &version_2;
    top = strlen(folder);
    machine_file = machine;
    events_known = stall_known = false;
    pressure_pause_ns = CHECK_NS;
    store_relaxed(&next_look, 0);
    store_relaxed(&is_short, 0u);
}

void posix_pressure_inject_root(const char *path)
{
    posix_pressure_inject("", "/nowhere");
    injected = false;
    root = path;
}

/* Returns the smallest limit of the group and of those above it; UINT64_MAX if there is none. */
static uint64_t smallest_limit(void)
{
    bool has_group = group_find();
    uint64_t smallest = UINT64_MAX;

    for (size_t length = has_group ? strlen(folder) : 0; length; length = folder_above(length))
        smallest = (uint64_t)min_size(smallest, limit_of(length));
    return smallest;
}

COLD void posix_pressure_start(uint64_t (*own)(void))
{
    int saved_errno = errno;
    uint32_t no = 0;

    while (!compare_exchange(&looking, &no, 1u)) {
        no = 0;
        os_sleep_ns(WAIT_NS); /* and not by spinning: the other thread may need this CPU */
    }
    pressure_own_bytes = own;
    start_limit = smallest_limit();
    store_release(&looking, 0u);
    errno = saved_errno;
}

uint64_t os_memory_allowed(void)
{
    uint64_t machine = 0, groups;
    int saved_errno = errno;
    uint32_t no = 0;

    if (os_calls_are_few() || !compare_exchange(&looking, &no, 1u))
        return 0;
    if (read_below_root("/proc/meminfo"))
        machine = number_behind("MemTotal:") << 10; /* in KiB */
    groups = smallest_limit();
    store_release(&looking, 0u);
    errno = saved_errno;
    return min_size(machine, groups);
}

/* Resets the lock, because the thread that was checking does not exist in the child. */
void posix_pressure_fork_child(void)
{
    looking = 0;
}
