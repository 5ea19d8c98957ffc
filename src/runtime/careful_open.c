/* SPDX-License-Identifier: MIT */
/*
 * A file is opened for writing, and no symbolic link of another user is followed on the way to it. Otherwise whoever may
 * write to a folder of the path, such as /tmp, could have this process overwrite any file that it may write.
 *
 * The path is walked name by name. A link is opened itself (O_PATH), so that the link whose owner is looked at is the one that
 * is read; then the walk goes on with what it says. Trusted are links of the process's user and of root. A process in a user
 * namespace may see root as an unknown user, so the owner of "/" is trusted as well.
 *
 * A link of /proc may stand for what has no name (/proc/self/fd/2 for a pipe). Nobody but the kernel makes or changes these, so the kernel
 * follows them once their owner is known.
 *
 * Invariant: `rest` is what is left of the path, as seen from `folder`. It lies in the caller's string until the first link, and in
 * `text` from then on.
 */
#define _GNU_SOURCE /* O_PATH, syscall */
#include "runtime/careful_open.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

struct walk {
    int folder; /* a descriptor (O_PATH), or AT_FDCWD */
    const char *rest;
    unsigned links; /* followed so far */
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

/* errno stays. */
static void close_folder(int folder)
{
    int saved_errno = errno;

    if (folder >= 0)
        syscall(SYS_close, folder);
    errno = saved_errno;
}

static int enter(struct walk *walk, int folder)
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

static bool is_of_proc(int link)
{
    struct statfs system;

    return !syscall(SYS_fstatfs, link, &system) && system.f_type == PROC_SUPER_MAGIC;
}

/* Puts what the link says in front of the rest. The rest is first moved to the end of `text`, where it may be in part already. */
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

/* `link` is open for `name` in the folder. flags: for what /proc leads to. */
static int follow(struct walk *walk, int link, uid_t owner, int flags, mode_t mode)
{
    if (++walk->links > CAREFUL_LINKS || !is_trusted(owner))
        return fails(ELOOP);
    if (!is_of_proc(link))
        return read_link(walk, link);
    if (!*walk->rest)
        return open_at(walk->folder, walk->name, flags, mode);
    return enter(walk, open_at(walk->folder, walk->name, O_PATH, 0));
}

/* The name is a folder's, or a link's. `last`: it was a link's a moment ago. */
static int pass(struct walk *walk, bool last, int flags, mode_t mode)
{
    int fd = open_at(walk->folder, walk->name, O_PATH | O_NOFOLLOW, 0), result;
    struct stat of;

    if (fd < 0)
        return -1;
    if (syscall(SYS_fstat, fd, &of)) {
        result = -1;
    } else if (S_ISLNK(of.st_mode)) {
        result = follow(walk, fd, of.st_uid, flags, mode);
    } else if (!last) {
        return enter(walk, fd);
    } else {
        result = fails(ELOOP);
    }
    close_folder(fd);
    return result;
}

/* Takes the next name out of the rest, and says whether it is the last one. False in *fits: it is too long. */
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

static int step(struct walk *walk, int flags, mode_t mode)
{
    bool last, fits;
    int fd;

    if (*walk->rest == '/') {
        walk->rest += strspn(walk->rest, "/");
        return enter(walk, open_at(AT_FDCWD, "/", O_PATH | O_DIRECTORY, 0));
    }
    if (!*walk->rest) /* a link said so */
        return fails(EISDIR);
    last = take_name(walk, &fits);
    if (!fits)
        return fails(ENAMETOOLONG);
    if (!last)
        return pass(walk, false, flags, mode);
    fd = open_at(walk->folder, walk->name, flags | O_NOFOLLOW, mode);
    return fd < 0 && errno == ELOOP ? pass(walk, true, flags, mode) : fd;
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
        fd = step(&walk, flags, mode);
    while (fd == GOES_ON);
    close_folder(walk.folder);
    return fd;
}
