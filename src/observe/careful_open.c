/* SPDX-License-Identifier: MIT */
/*
 * Opens a file for writing without following a symbolic link of another user. Otherwise any user
 * who may write to a folder of the path, such as /tmp, could make this process overwrite any file
 * that the process may write.
 *
 * The walk takes the names of the path in turn. A link is opened itself (O_PATH), so that the link
 * whose owner is checked is the link that is read; then the walk continues with the target. Links
 * of the process's user and of root are trusted. A process in a user namespace may see root as an
 * unknown user, so the owner of "/" is trusted as well.
 *
 * A link of /proc may stand for an object without a name (/proc/self/fd/2 for a pipe). Only the
 * kernel makes or changes these, so the kernel follows them once their owner is trusted.
 *
 * Invariant: `rest` is the part of the path still to walk, relative to `folder`. `rest` lies in the
 * caller's string until the first target is read, and in `text` from then on.
 */
#define _GNU_SOURCE /* O_PATH, syscall */
#include "observe/careful_open.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

struct walk {
    int folder; /* descriptor (O_PATH), or AT_FDCWD */
    const char *rest;
    unsigned links; /* number followed so far */
    char name[NAME_MAX + 1];
    char text[CAREFUL_TEXT];
};

#define GOES_ON (-2) /* neither a descriptor nor an error */

static int open_at(int folder, const char *name, int flags, mode_t mode)
{
    return (int)syscall(SYS_openat, folder, name, flags | O_CLOEXEC, mode);
}

static int fails(int error)
{
    errno = error;
    return -1;
}

/* Preserves errno. */
static void close_folder(int folder)
{
    int saved_errno = errno;

    if (folder >= 0)
        syscall(SYS_close, folder);
    errno = saved_errno;
}

static int careful_enter(struct walk *walk, int folder)
{
    close_folder(walk->folder);
    walk->folder = folder;
    return folder < 0 ? -1 : GOES_ON;
}

static bool is_trusted(uid_t owner)
{
    struct stat root;

    return owner == geteuid() || owner == 0 ||
           (!syscall(SYS_newfstatat, AT_FDCWD, "/", &root, 0) && owner == root.st_uid);
}

#define PROC_SUPER_MAGIC 0x9fa0 /* the kernel's type of the file system /proc */

static bool is_of_proc(int link)
{
    struct statfs system;

    return !syscall(SYS_fstatfs, link, &system) && system.f_type == PROC_SUPER_MAGIC;
}

/* Prepends the target of the link to the rest, which first moves to the end of `text`; part of the
 * rest may be in `text` already. */
static int read_link(struct walk *walk, int link)
{
    size_t left = strlen(walk->rest) + 1, room;
    char *rest;
    long length;

    if (left + 1 >= sizeof walk->text)
        return fails(ENAMETOOLONG);
    room = sizeof walk->text - left - 1;
    rest = memmove(walk->text + sizeof walk->text - left, walk->rest, left);
    length = syscall(SYS_readlinkat, link, "", walk->text, room);
    if (length < 0)
        return -1;
    if (length == 0 || (size_t)length == room)
        return fails(length ? ENAMETOOLONG : ENOENT);
    if (left > 1)
        walk->text[length++] = '/';
    memmove(walk->text + length, rest, left);
    walk->rest = walk->text;
    return GOES_ON;
}

/* Follows `link`, which is open for `name` in the folder. `flags` and `mode` matter only if a link
 * of /proc is the last name. */
static int careful_follow(struct walk *walk, int link, uid_t owner, int flags, mode_t mode)
{
    if (++walk->links > CAREFUL_LINKS || !is_trusted(owner))
        return fails(ELOOP);
    if (!is_of_proc(link))
        return read_link(walk, link);
    if (!*walk->rest)
        return open_at(walk->folder, walk->name, flags, mode);
    return careful_enter(walk, open_at(walk->folder, walk->name, O_PATH, 0));
}

/* Walks through a folder or a link. `last` is set for the last name, a link that O_NOFOLLOW
 * refused. */
static int careful_pass(struct walk *walk, bool last, int flags, mode_t mode)
{
    int fd = open_at(walk->folder, walk->name, O_PATH | O_NOFOLLOW, 0), result;
    struct stat of;

    if (fd < 0)
        return -1;
    if (syscall(SYS_fstat, fd, &of)) {
        result = -1;
    } else if (S_ISLNK(of.st_mode)) {
        result = careful_follow(walk, fd, of.st_uid, flags, mode);
    } else if (!last) {
        return careful_enter(walk, fd);
    } else {
        result = fails(ELOOP);
    }
    close_folder(fd);
    return result;
}

/* Takes the next name out of the rest. Returns whether it is the last; clears *fits if it is too
 * long. */
static bool take_name(struct walk *walk, bool *fits)
{
    size_t length = strcspn(walk->rest, "/");
    bool last = !walk->rest[length];

    *fits = length < sizeof walk->name;
    if (!*fits)
        return last;
    memcpy(walk->name, walk->rest, length);
    walk->name[length] = '\0';
    walk->rest += length;
    walk->rest += strspn(walk->rest, "/");
    return last;
}

static int careful_step(struct walk *walk, int flags, mode_t mode)
{
    bool last, fits;
    int fd;

    if (*walk->rest == '/') {
        walk->rest += strspn(walk->rest, "/");
        return careful_enter(walk, open_at(AT_FDCWD, "/", O_PATH | O_DIRECTORY, 0));
    }
    if (!*walk->rest) /* the target of a link ended with a slash */
        return fails(EISDIR);
    last = take_name(walk, &fits);
    if (!fits)
        return fails(ENAMETOOLONG);
    if (!last)
        return careful_pass(walk, false, flags, mode);
    fd = open_at(walk->folder, walk->name, flags | O_NOFOLLOW, mode);
    return fd < 0 && errno == ELOOP ? careful_pass(walk, true, flags, mode) : fd;
}

int careful_open(const char *path, int flags, mode_t mode)
{
    struct walk walk;
    int fd;

    walk.folder = AT_FDCWD;
    walk.rest = path;
    walk.links = 0;
    if (!*path)
        return fails(ENOENT);
    if (path[strlen(path) - 1] == '/')
        return fails(EISDIR);
    do
        fd = careful_step(&walk, flags, mode);
    while (fd == GOES_ON);
    close_folder(walk.folder);
    return fd;
}
