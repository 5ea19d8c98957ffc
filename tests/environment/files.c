/* SPDX-License-Identifier: MIT */
/*
 * Circumstances of files that the process reads (environment.h): /sys and /proc as containers and
 * sandboxes present them. The program makes each in a separate mount namespace and then executes
 * itself.
 */
#define _GNU_SOURCE
#include "environment.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static bool write_file(const char *path, const char *text)
{
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    bool written = file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text);

    if (file >= 0)
        close(file);
    return written;
}

/* Enters a mount namespace, so that no other process sees the mounts. A process that is not root
 * becomes root of a user namespace first. */
static bool mounts_of_its_own(void)
{
    char map[64];
    unsigned user = (unsigned)geteuid();

    if (user && unshare(CLONE_NEWUSER))
        return false;
    if (user) {
        snprintf(map, sizeof map, "0 %u 1", user);
        if (!write_file("/proc/self/uid_map", map))
            return false;
    }
    return unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

/* Makes the file at `path` have this text, by a bind mount. */
static bool present(const char *path, const char *text)
{
    char copy[] = "/tmp/environment-XXXXXX";
    int file = mkstemp(copy);
    bool done = file >= 0 && close(file) == 0 && write_file(copy, text) &&
                mount(copy, path, NULL, MS_BIND, NULL) == 0;
    int error = errno;

    if (file >= 0)
        unlink(copy);
    errno = error;
    return done;
}

static bool hide(const char *folder)
{
    return mount("none", folder, "tmpfs", 0, "size=64k") == 0;
}

/* CRIU has the same effect when it restores a process on a machine with other CPUs. */
bool possible_cpus(const char *word)
{
    char text[64];

    snprintf(text, sizeof text, "%s\n", strcmp(word, "none") == 0 ? "" : word);
    return mounts_of_its_own() && present("/sys/devices/system/cpu/possible", text);
}

bool no_sys(const char *word)
{
    (void)word;
    return mounts_of_its_own() && hide("/sys");
}

bool no_proc(const char *word)
{
    (void)word;
    return mounts_of_its_own() && hide("/proc");
}

/* Makes the folders of a path below `root`. */
static bool make_folders(const char *root, const char *path, char *made, size_t size)
{
    snprintf(made, size, "%s", root);
    for (const char *part = path; *part;) {
        size_t length = strcspn(part, "/");

        if (length) {
            snprintf(made + strlen(made), size - strlen(made), "/%.*s", (int)length, part);
            if (mkdir(made, 0755) && errno != EEXIST)
                return false;
        }
        part += length + (part[length] == '/');
    }
    return true;
}

/* Copies the path of the process's control group of version 2, or "/" if there is none. */
static void own_group(char *path, size_t size)
{
    char line[PATH_MAX];
    FILE *file = fopen("/proc/self/cgroup", "r");

    snprintf(path, size, "/");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "0::", 3) == 0)
            snprintf(path, size, "%.*s", (int)strcspn(line + 3, "\n"), line + 3);
    if (file)
        fclose(file);
}

/* Presents a control group of version 2 whose memory.max has the text `word`. */
bool control_group(const char *word)
{
    char group[PATH_MAX / 4], folder[PATH_MAX / 2], file[PATH_MAX];

    own_group(group, sizeof group);
    if (!mounts_of_its_own() || !hide("/sys/fs/cgroup") ||
        !make_folders("/sys/fs/cgroup", group, folder, sizeof folder))
        return false;
    if (strcmp(word, "none") == 0)
        return true;
    snprintf(file, sizeof file, "%s/memory.max", folder);
    if (!write_file(file, word))
        return false;
    snprintf(file, sizeof file, "%s/memory.current", folder);
    return write_file(file, "4096") && write_file("/sys/fs/cgroup/cgroup.controllers", "memory");
}

/* Clears the environment, except for the variables that load the library. */
bool no_environment(const char *word)
{
    const char *preload = getenv("LD_PRELOAD"), *path = getenv("LD_LIBRARY_PATH");
    char kept[2][PATH_MAX];

    (void)word;
    snprintf(kept[0], PATH_MAX, "%s", preload ? preload : "");
    snprintf(kept[1], PATH_MAX, "%s", path ? path : "");
    return clearenv() == 0 && (!preload || setenv("LD_PRELOAD", kept[0], 1) == 0) &&
           (!path || setenv("LD_LIBRARY_PATH", kept[1], 1) == 0);
}
