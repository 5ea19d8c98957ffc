/* SPDX-License-Identifier: MIT */
/*
 * Limits of control groups: of the process's own group and of each group above, for versions 2 and
 * 1, however mounted. The trees, and /proc/self/cgroup, are files of the test.
 */
#define _GNU_SOURCE /* nftw */
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "posix.h"
#include "support/slab_test.h"
#include "support/threads.h"

#define MIB ((uint64_t)1 << 20)
#define MS  UINT64_C(1000000)

static char root[] = "/tmp/prudence-groups-XXXXXX";
static uint64_t now, own; /* now: atomic */

static uint64_t our_clock(void)
{
    return load_relaxed(&now);
}

static uint64_t our_bytes(void)
{
    return own;
}

/* Writes a file below the root, and makes the folders above it. */
static void set(const char *path, const char *text)
{
    char whole[200];
    FILE *file;

    snprintf(whole, sizeof whole, "%s%s", root, path);
    for (char *at = whole + strlen(root) + 1; (at = strchr(at, '/')); at++) {
        *at = '\0';
        mkdir(whole, 0700);
        *at = '/';
    }
    file = fopen(whole, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void set_bytes(const char *folder, const char *name, uint64_t bytes)
{
    char path[150], text[32];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    snprintf(text, sizeof text, "%llu\n", (unsigned long long)bytes);
    set(path, text);
}

/* Writes a group of version 2; a limit of 0 means "max". */
static void set_group(const char *folder, uint64_t used, uint64_t max)
{
    char path[150];

    snprintf(path, sizeof path, "%s/cgroup.type", folder);
    set(path, "domain\n");
    set_bytes(folder, "memory.current", used);
    set_bytes(folder, "memory.max", max);
    if (max)
        return;
    snprintf(path, sizeof path, "%s/memory.max", folder);
    set(path, "max\n");
}

static void set_older_group(const char *folder, uint64_t used, uint64_t max)
{
    char path[150];

    snprintf(path, sizeof path, "%s/notify_on_release", folder);
    set(path, "0\n");
    set_bytes(folder, "memory.usage_in_bytes", used);
    set_bytes(folder, "memory.limit_in_bytes", max ? max : UINT64_C(9223372036854771712));
}

static bool is_short(void)
{
    add_relaxed(&now, 2000 * MS);
    posix_pressure_check(0);
    return os_memory_is_short();
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    return remove(path);
}

static void clear(void)
{
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread */
    nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    mkdir(root, 0700);
}

static int begin(void **state)
{
    clear();
    posix_pressure_inject_root(root);
    return 0;
}

TEST(of_its_own_group, begin)
{
    set("/proc/self/cgroup", "0::/a/b\n");
    set_group("/sys/fs/cgroup/a/b", 50 * MIB, 100 * MIB);
    assert_false(is_short());
    set_group("/sys/fs/cgroup/a/b", 98 * MIB, 100 * MIB);
    assert_true(is_short());
}

/* The usage of the group above counts, not this group's. */
TEST(of_a_group_above, begin)
{
    set("/proc/self/cgroup", "0::/a/b/c\n");
    set_group("/sys/fs/cgroup/a/b/c", 1 * MIB, 0);
    set_group("/sys/fs/cgroup/a/b", 2 * MIB, 0);
    set_group("/sys/fs/cgroup/a", 50 * MIB, 100 * MIB);
    assert_false(is_short());
    set_group("/sys/fs/cgroup/a", 99 * MIB, 100 * MIB);
    assert_true(is_short());
    set_group("/sys/fs/cgroup/a", 99 * MIB, 0);
    assert_false(is_short());
    set_bytes("/sys/fs/cgroup/a", "memory.high", 100 * MIB);
    assert_true(is_short());
}

/* Files may be missing in groups between, and the process's own group need not count memory. */
TEST(where_files_are_missing, begin)
{
    set("/proc/self/cgroup", "0::/a/b\n");
    set("/sys/fs/cgroup/a/b/cgroup.type", "domain\n");
    assert_false(is_short());
    set_group("/sys/fs/cgroup/a", 99 * MIB, 100 * MIB);
    assert_true(is_short());
    set("/sys/fs/cgroup/a/memory.max", "nonsense\n");
    assert_false(is_short());
    set("/sys/fs/cgroup/a/memory.max", "");
    assert_false(is_short());
}

TEST(nowhere, begin)
{
    static const char *const odd[] = {
        "",          "\n", "0", "0:", "0::", "0::x\n", ":::", "0:memory:", "nonsense without end",
        "0::/../a\n"};

    assert_false(is_short());
    set_group("/sys/fs/cgroup/a", 99 * MIB, 100 * MIB);
    for (unsigned i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        set("/proc/self/cgroup", odd[i]);
        assert_false(is_short());
    }
}

TEST(a_name_that_is_too_long, begin)
{
    char line[600] = "0::/";

    memset(line + 4, 'x', sizeof line - 6);
    line[sizeof line - 2] = '\n';
    set("/proc/self/cgroup", line);
    assert_false(is_short());
}

/* In a namespace, the group is the top of the mount, where its limit is. */
TEST(in_a_namespace, begin)
{
    set("/proc/self/cgroup", "0::/\n");
    set_group("/sys/fs/cgroup", 50 * MIB, 100 * MIB);
    assert_false(is_short());
    set_group("/sys/fs/cgroup", 99 * MIB, 100 * MIB);
    assert_true(is_short());
}

/* The name is the machine's, but the mount shows only the tree below /docker/1, as in containers
 * without a namespace. */
TEST(where_the_mount_begins_below, begin)
{
    set("/proc/self/cgroup", "0::/docker/1/inner\n");
    set_group("/sys/fs/cgroup", 99 * MIB, 100 * MIB);
    set_group("/sys/fs/cgroup/inner", 1 * MIB, 0);
    assert_true(is_short());
    set_group("/sys/fs/cgroup", 50 * MIB, 100 * MIB);
    assert_false(is_short());
    set_group("/sys/fs/cgroup/inner", 20 * MIB, 20 * MIB);
    assert_true(is_short());
    set("/proc/self/cgroup", "0::/docker/1\n"); /* the mount itself */
    assert_false(is_short());
    set_group("/sys/fs/cgroup", 100 * MIB, 100 * MIB);
    assert_true(is_short());
}

/* With both versions, the older one counts memory. A controller may share its line, and its name
 * may occur in another controller's name. */
TEST(of_version_1, begin)
{
    set("/proc/self/cgroup",
        "9:name=memory:/x\n6:memory2,blkio:/z\n5:nomemory,cpu:/y\n4:cpu,memory:/a/b\n"
        "3:name=memory:/x\n2:memory2,blkio:/z\n1:nomemory,cpu:/y\n0::/c\n");
    set("/sys/fs/cgroup/unified/c/cgroup.type", "domain\n");
    set_older_group("/sys/fs/cgroup/memory/a/b", 1 * MIB, 0);
    set_older_group("/sys/fs/cgroup/memory/a", 50 * MIB, 100 * MIB);
    set_older_group("/sys/fs/cgroup/memory", 50 * MIB, 0);
    assert_false(is_short());
    set_older_group("/sys/fs/cgroup/memory/a", 99 * MIB, 100 * MIB);
    assert_true(is_short());
    set_older_group("/sys/fs/cgroup/memory/a", 50 * MIB, 100 * MIB);
    set("/sys/fs/cgroup/memory/a/b/memory.failcnt", "7\n");
    assert_true(is_short());
    assert_false(is_short());
}

/* No file is read after start: the smallest limit found then applies to the process's own
 * memory. */
TEST(with_few_calls, begin)
{
    set("/proc/self/cgroup", "0::/a/b\n");
    set_group("/sys/fs/cgroup/a/b", 1 * MIB, 200 * MIB);
    set_group("/sys/fs/cgroup/a", 99 * MIB, 100 * MIB);
    posix_pressure_start(our_bytes);
    posix_calls_set(OS_CALLS_FEW);
    own = 50 * MIB;
    assert_false(is_short());
    own = 95 * MIB;
    assert_true(is_short());
    clear();
    assert_true(is_short());
    posix_calls_set(OS_CALLS_ALL);
    assert_false(is_short());
    posix_pressure_start(our_bytes); /* no group, no limit */
    posix_calls_set(OS_CALLS_FEW);
    own = UINT64_MAX / 2;
    assert_false(is_short());
    posix_calls_set(OS_CALLS_ALL);
}

static bool ended; /* atomic */

static void *look_until_ended(void *unused)
{
    while (!load_relaxed(&ended))
        is_short();
    return unused;
}

/* Calls become few at run time while another thread checks. */
TEST(of_calls_that_become_few_during_a_look, begin)
{
    pthread_t thread;

    set("/proc/self/cgroup", "0::/a/b\n");
    set_group("/sys/fs/cgroup/a/b", 1 * MIB, 200 * MIB);
    set_group("/sys/fs/cgroup/a", 50 * MIB, 100 * MIB);
    store_relaxed(&ended, false);
    threads_start(&thread, 1, look_until_ended);
    for (unsigned i = 0; i < 300; i++)
        posix_pressure_start(our_bytes);
    store_relaxed(&ended, true);
    threads_join(&thread, 1);
    posix_calls_set(OS_CALLS_FEW);
    own = 50 * MIB;
    assert_false(is_short());
    own = 95 * MIB;
    assert_true(is_short());
    posix_calls_set(OS_CALLS_ALL);
}

static int make(void **state)
{
    posix_clock_injected = our_clock;
    return mkdtemp(root) ? 0 : 1;
}

static int unmake(void **state)
{
    clear();
    rmdir(root);
    return 0;
}

SUITE_BETWEEN(make, unmake)
