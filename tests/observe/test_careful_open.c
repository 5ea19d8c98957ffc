/* SPDX-License-Identifier: MIT */
/*
 * Files that options name are not written through symbolic links of other users, wherever in the
 * path. Links of the process's user and of root are followed, and each path means the same as for
 * open(2).
 *
 * ctest: not-with thread (one thread)
 */
#define _GNU_SOURCE
#include "support/slab_test.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "observe/careful_open.h"
#include "observe/option_file.h"

#define SOMEBODY 54321
#define WRITES   (O_WRONLY | O_CREAT)

static char folder[] = "/tmp/prudence-open-XXXXXX", before[PATH_MAX];

static int enter_folder(void **state)
{
    return !getcwd(before, sizeof before) || !mkdtemp(folder) || chdir(folder);
}

static int leave_folder(void **state)
{
    char command[100];

    snprintf(command, sizeof command, "rm -rf %s", folder);
    return chdir(before) || system(command); /* NOLINT(cert-env33-c): of a name of our own */
}

static unsigned open_files(void)
{
    unsigned count = 0;

    for (int fd = 0; fd < 200; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

/* Returns the error, or 0 if the file was opened. Checks that no other descriptor stays open. */
static int error_of(const char *path)
{
    unsigned before_it = open_files();
    int fd = careful_open(path, WRITES, 0600);
    int error = fd < 0 ? errno : 0;

    if (fd >= 0) {
        assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
        close(fd);
    }
    assert_int_equal(open_files(), before_it);
    return error;
}

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

static void make_link(const char *text, const char *path, bool foreign)
{
    unlink(path);
    assert_return_code(symlink(text, path), errno);
    if (foreign)
        assert_return_code(lchown(path, SOMEBODY, SOMEBODY), errno);
}

static void only_root_gives_links_away(void)
{
    if (geteuid() != 0)
        skip();
}

TEST(ordinary_paths)
{
    char whole[100], long_name[NAME_MAX + 2];

    assert_return_code(mkdir("inner", 0700), errno);
    snprintf(whole, sizeof whole, "%s//inner/./../inner///whole", folder);
    assert_int_equal(error_of("here"), 0);
    assert_int_equal(error_of("inner/there"), 0);
    assert_int_equal(error_of(whole), 0);
    assert_true(exists("here") && exists("inner/there") && exists("inner/whole"));
    assert_int_equal(error_of(""), ENOENT);
    assert_int_equal(error_of("none/file"), ENOENT);
    assert_int_equal(error_of("here/file"), ENOTDIR);
    assert_int_equal(error_of("inner"), EISDIR);
    assert_int_equal(error_of("inner/"), EISDIR);
    assert_int_equal(error_of("/"), EISDIR);
    assert_int_equal(error_of("inner/.."), EISDIR);
    memset(long_name, 'n', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    assert_int_equal(error_of(long_name), ENAMETOOLONG);
    long_name[NAME_MAX] = '\0';
    assert_int_equal(error_of(long_name), 0);
}

TEST(own_links_are_followed)
{
    assert_return_code(mkdir("a", 0700), errno);
    assert_return_code(mkdir("a/b", 0700), errno);
    make_link("a/b", "to_folder", false);
    make_link("../file", "a/up", false);
    make_link("to_folder/../up", "chain", false);
    make_link(folder, "whole", false);
    assert_int_equal(error_of("to_folder/one"), 0);
    assert_true(exists("a/b/one"));
    assert_int_equal(error_of("chain"), 0); /* created the file that the last link names */
    assert_true(exists("file"));
    assert_int_equal(error_of("whole/whole/to_folder/two"), 0);
    assert_true(exists("a/b/two"));
    make_link("a//", "slashes", false);
    assert_int_equal(error_of("slashes/three"), 0);
    assert_int_equal(error_of("slashes"), EISDIR);
    assert_true(exists("a/three"));
}

TEST(circles_end)
{
    char name[32], next[32];

    make_link("round", "round", false);
    assert_int_equal(error_of("round"), ELOOP);
    assert_int_equal(error_of("round/file"), ELOOP);
    for (int i = 0; i <= CAREFUL_LINKS; i++) {
        snprintf(name, sizeof name, "step%d", i);
        snprintf(next, sizeof next, "step%d", i + 1);
        make_link(next, name, false);
    }
    assert_int_equal(error_of("step1"), 0);
    assert_int_equal(error_of("step0"), ELOOP);
}

TEST(too_long_with_a_link)
{
    char path[CAREFUL_TEXT + 100] = "dot/", text[CAREFUL_TEXT];

    make_link(".", "dot", false);
    while (strlen(path) < CAREFUL_TEXT - 50)
        strncat(path, "./", sizeof path - strlen(path) - 1);
    strncat(path, "x", sizeof path - strlen(path) - 1);
    assert_int_equal(error_of(path), 0);
    assert_true(exists("x"));
    memmove(path + 60, path, sizeof path - 60);
    memset(path, '/', 60);
    memcpy(path, "dot", 3);
    path[sizeof path - 1] = '\0';
    assert_int_equal(error_of(path), 0); /* the rest of the path after the first link fits */
    memset(text, '/', sizeof text - 1);
    text[0] = '.';
    text[sizeof text - 1] = '\0';
    make_link(text, "far", false);
    assert_int_equal(error_of("far/x"), ENAMETOOLONG);
}

TEST(links_of_others_are_not_followed)
{
    static const char *const paths[] = {"foreign", "foreign_folder/file", "via_own",
                                        "own_folder/file"};
    struct stat of;

    only_root_gives_links_away();
    assert_return_code(mkdir("mine", 0700), errno);
    make_link("mine/precious", "foreign", true);
    make_link("mine", "foreign_folder", true);
    make_link("foreign", "via_own", false);
    make_link("foreign_folder", "own_folder", false);
    for (unsigned i = 0; i < sizeof paths / sizeof paths[0]; i++)
        assert_int_equal(error_of(paths[i]), ELOOP);
    assert_false(exists("mine/precious") || exists("mine/file"));
    assert_int_equal(error_of("mine/precious"), 0);
    assert_return_code(truncate("mine/precious", 7), errno);
    assert_int_equal(option_file_open_path("foreign", OPTION_FILE_OVERWRITE), -1);
    assert_int_equal(errno, ELOOP);
    assert_return_code(stat("mine/precious", &of), errno);
    assert_int_equal(of.st_size, 7);
    assert_non_null(strstr(option_file_hint(ELOOP), "symbolic link"));
    assert_string_equal(option_file_hint(EACCES), "");
}

/* A process of another user follows root's links and its own. */
TEST(links_of_root_are_followed_by_others)
{
    only_root_gives_links_away();
    assert_return_code(mkdir("open", 0700), errno);
    assert_return_code(chmod("open", 0777), errno);
    assert_return_code(chmod(folder, 0755), errno);
    make_link("open/by_root", "of_root", false);
    make_link("open/own", "of_somebody", true);
    assert_return_code(lchown("of_somebody", SOMEBODY + 1, 0), errno);
    make_link("open/others", "of_others", true);
    assert_return_code(seteuid(SOMEBODY + 1), errno);
    assert_int_equal(error_of("of_root"), 0);
    assert_int_equal(error_of("of_somebody"), 0);
    assert_int_equal(error_of("of_others"), ELOOP);
    assert_return_code(seteuid(0), errno);
    assert_true(exists("open/by_root") && exists("open/own"));
    assert_false(exists("open/others"));
}

/* /proc/self/fd/N refers to a pipe, or to a file without a name. */
TEST(what_has_no_name_is_reached)
{
    char path[64], text[4] = "";
    int ends[2], fd;

    assert_return_code(pipe2(ends, O_CLOEXEC), errno);
    snprintf(path, sizeof path, "/proc/self/fd/%d", ends[1]);
    fd = careful_open(path, WRITES, 0600);
    assert_return_code(fd, errno);
    assert_int_equal(write(fd, "yes", 3), 3);
    assert_int_equal(read(ends[0], text, 3), 3);
    assert_string_equal(text, "yes");
    close(fd);
    make_link(path, "to_pipe", false);
    assert_int_equal(error_of("to_pipe"), 0);
    make_link("/proc/self/fd", "fds", false);
    snprintf(path, sizeof path, "fds/%d", ends[1]);
    assert_int_equal(error_of(path), 0);
    assert_int_equal(error_of("/proc/self/cwd/from_here"), 0);
    assert_true(exists("from_here"));
    close(ends[0]);
    close(ends[1]);
    assert_int_equal(error_of("/dev/null"), 0);
}

SUITE_BETWEEN(enter_folder, leave_folder)
