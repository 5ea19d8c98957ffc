/* SPDX-License-Identifier: MIT */
/*
 * Whether memory is short: asked of the control groups that the process is in, where a limit kills before the machine runs out,
 * and of the kernel's pressure stall information.
 *
 * Groups are of version 2 or 1. The limits of the groups above the process's own count as well, as far as they can be seen: up to
 * the mount, which in a container may be a group itself.
 *
 * The files are read when the page source is about to ask for memory, at most every CHECK_NS; while
 * one look after the other finds memory short, less and less often, since a process that empties its
 * caches all the time has none. Memory is short when what is used is close to a limit, or when
 * the kernel has counted a limit of its own group as met since the last look, or when tasks have
 * waited for memory for a tenth of the time: some task of the group (memory.pressure), or, where no
 * group tells, all tasks of the machine at once, since one of them may be short by a limit of its own.
 * No file is kept open: a program may close or count its descriptors.
 *
 * With few calls (few_calls.h) no file is read. Then the least limit that was found at start counts, and what the process itself
 * has of the system.
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

#define NO_LIMIT (UINT64_C(1) << 60) /* version 1 has a number of its own for it, in this size */

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
static char folder[256]; /* of the group, ends in '/'; empty: there is none */
static size_t top;       /* bytes of it that name the mount */
static bool injected;
static const char *root = "";
static const char *machine_file = "/proc/pressure/memory";
static char text[4096]; /* of the file that was read last */

/* With few calls. */
static uint64_t start_limit = UINT64_MAX;
static uint64_t (*own_bytes)(void);

/* What the files of a group are called. An older one has no file for `high`. Each has the last one, which is never empty. */
struct names {
    const char *used, *max, *high, *always;
};
static const struct names version_2 = {"memory.current", "memory.max", "memory.high",
                                       "cgroup.type"};
static const struct names version_1 = {"memory.usage_in_bytes", "memory.limit_in_bytes", "",
                                       "notify_on_release"};
static const struct names *names = &version_2;

/* False: `to` has no room for it. */
static bool append(char *to, size_t size, const char *more)
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
    return append(whole, sizeof whole, root) && append(whole, sizeof whole, path) &&
           posix_file_read(whole, text, sizeof text);
}

/* A file of the group whose folder is the first `length` bytes of `folder`. */
static bool group_read_at(size_t length, const char *name)
{
    static char path[sizeof folder + 32];

    memcpy(path, folder, length);
    path[length] = '\0';
    return append(path, sizeof path, name) && posix_file_read(path, text, sizeof text);
}

static bool group_read(const char *name)
{
    return group_read_at(strlen(folder), name);
}

/* ----------------------------------------------------------------------------------- where it is */

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
    [sizeof folder]; /* of the process's group of version 2, and of 1; end in '/'; empty: it has none */

static void note_path(char *path, const char *told)
{
    path[0] = '\0';
    if (!append(path, sizeof folder, told) ||
        (told[strlen(told) - 1] != '/' && !append(path, sizeof folder, "/")))
        path[0] = '\0';
}

/* Each line of /proc/self/cgroup is "number:controllers:path": that of the one group of version 2 has no controllers, that of
 * version 1 has memory among them. A group outside of the process's namespace ("/../x") cannot be seen. */
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

/* The folder above, at least the mount's; 0: there is none. */
static size_t folder_above(size_t length)
{
    if (length <= top)
        return 0;
    do
        length--;
    while (folder[length - 1] != '/');
    return length;
}

static bool is_there(void)
{
    return group_read(names->used) || group_read(names->always);
}

/* In the group, or one above it: memory need not be counted in each. */
static bool counts_memory(void)
{
    for (size_t length = strlen(folder); length; length = folder_above(length))
        if (group_read_at(length, names->used))
            return true;
    return false;
}

/*
 * The folder of a group below a mount. The mount of a container may show a group as its first one whose name begins above it.
 * Then only the end of the name is found below the mount: the mount itself at last.
 */
static bool group_is_below(const char *mount, const char *name)
{
    folder[0] = '\0';
    if (!append(folder, sizeof folder, root) || !append(folder, sizeof folder, mount))
        return false;
    top = strlen(folder) + 1;
    for (; name && *name; name = strchr(name + 1, '/')) {
        folder[top - 1] = '\0';
        if (append(folder, sizeof folder, name) && is_there())
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

/* A number, or "max" or no file: UINT64_MAX. */
static uint64_t limit_read(size_t length, const char *name)
{
    if (!group_read_at(length, name) || text[0] < '0' || text[0] > '9')
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

/* Of the group, or of one above it: what that has used is not only this group's. */
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

/* With few calls. Other processes of the group may have used more of it; that is not known. */
static bool is_close_by_itself(uint64_t more)
{
    return start_limit < NO_LIMIT && own_bytes && is_near(own_bytes(), more, start_limit);
}

static uint64_t note_short(void)
{
    store_release(&is_short, 1u);
    pause_ns = (uint64_t)min_size(pause_ns * 2, CHECK_NS_MAX);
    return pause_ns;
}

static uint64_t look_without_files(uint64_t more)
{
    if (is_close_by_itself(more))
        return note_short();
    pause_ns = CHECK_NS;
    return CHECK_NS;
}

/* Returns when to look again. */
static uint64_t look_at_files(uint64_t now, uint64_t more)
{
    bool has_group = group_find();
    bool stalled = has_stalled(now, has_group);
    bool met = has_group && has_new_events();

    if (!stalled && !met && !(has_group && is_close(more))) {
        pause_ns = CHECK_NS;
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
    injected = append(folder, sizeof folder, group);
    names = &version_2;
    top = strlen(folder);
    machine_file = machine;
    events_known = stall_known = false;
    pause_ns = CHECK_NS;
    store_relaxed(&next_look, 0);
    store_relaxed(&is_short, 0u);
}

void posix_pressure_inject_root(const char *path)
{
    posix_pressure_inject("", "/nowhere");
    injected = false;
    root = path;
}

void posix_pressure_start(uint64_t (*own)(void))
{
    bool has_group = group_find();

    own_bytes = own;
    start_limit = UINT64_MAX;
    for (size_t length = has_group ? strlen(folder) : 0; length; length = folder_above(length)) {
        uint64_t limit = limit_of(length);

        start_limit = limit < start_limit ? limit : start_limit;
    }
}

/* The thread that was looking does not exist in the child. */
void posix_pressure_fork_child(void)
{
    looking = 0;
}
