/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Checks that a kernel whose caches moved to Prudence still works (tools/kernel/tree smoke).
 * Processes and threads make, rename, remove, look up and read files that share a few names, with
 * symbolic links and directories. They also open and close files, sockets and epoll sets under
 * shared descriptors, so that lockless lookups meet objects that are being freed.
 *
 * The results that each may see are known. A file holds the record written before the file got its
 * name, a link has one of the texts, a descriptor is open or not. Any other result is reported, and
 * the program exits with 1.
 *
 *     smoke DIRECTORY PROCESSES SECONDS
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NAMES       32
#define THREADS     3
#define DESCRIPTORS 16
#define LINK_TEXT                                                                                  \
    "a-text-of-a-symbolic-link-%u-that-is-as-long-as-the-space-in-an-inode-of-ext4-or-longer-"     \
    "than-that"

struct record {
    unsigned value, inverse;
    char rest[248]; /* each byte has the value's lowest eight bits */
};

static time_t end;
static int descriptors[DESCRIPTORS]; /* shared by the process's threads, which close each other's */
static __thread unsigned seed;

static unsigned any(unsigned below)
{
    seed = seed * 1103515245 + 12345;
    return (seed >> 8) % below;
}

static void fail(const char *what, const char *which)
{
    printf("SMOKE FAILED: %s: %s (%s)\n", what, which, strerror(errno));
    fflush(stdout);
    _exit(1);
}

/* Fails unless concurrent removals and renames explain the result. */
static void expect(bool condition, const char *what, const char *which)
{
    if (!condition)
        fail(what, which);
}

/* Returns a name. Names with even numbers are too long to lie in a dentry. */
static const char *name_of(const char *kind, unsigned number)
{
    static __thread char names[2][160];
    static __thread unsigned turn;
    char *name = names[turn++ % 2];

    snprintf(name, sizeof names[0],
             number % 2
                 ? "%s-%u"
                 : "%s-with-a-name-of-more-than-forty-characters-so-that-it-lies-elsewhere-%u",
             kind, number);
    return name;
}

static void make_file(void)
{
    const char *name = name_of("file", any(NAMES));
    struct record record = {.value = any(1u << 24)};
    char temporary[64];
    int file;

    record.inverse = ~record.value;
    memset(record.rest, (int)(record.value & 0xff), sizeof record.rest);
    snprintf(temporary, sizeof temporary, "temporary-%d", (int)gettid());
    file = open(temporary, O_WRONLY | O_CREAT | O_EXCL, 0600);
    expect(file >= 0, "create", temporary);
    expect(write(file, &record, sizeof record) == sizeof record, "write", temporary);
    close(file);
    expect(rename(temporary, name) == 0, "rename into place", name);
}

static void read_file(void)
{
    const char *name = name_of("file", any(NAMES));
    int file = open(name, O_RDONLY);
    struct record record;

    if (file < 0) {
        expect(errno == ENOENT, "open", name);
        return;
    }
    expect(read(file, &record, sizeof record) == sizeof record, "read", name);
    expect(record.inverse == ~record.value, "record", name);
    for (size_t i = 0; i < sizeof record.rest; i++)
        expect(record.rest[i] == (char)record.value, "rest of a record", name);
    close(file);
}

static void look(void)
{
    const char *name = name_of("file", any(NAMES));
    struct stat status;

    if (stat(name, &status) == 0)
        expect(S_ISREG(status.st_mode) && status.st_size == sizeof(struct record), "stat", name);
    else
        expect(errno == ENOENT, "stat", name);
}

static void move(void)
{
    const char *from = name_of("file", any(NAMES)), *to = name_of("file", any(NAMES));

    expect(rename(from, to) == 0 || errno == ENOENT, "rename", from);
}

static void take_away(void)
{
    const char *name = name_of("file", any(NAMES));

    expect(unlink(name) == 0 || errno == ENOENT, "unlink", name);
}

static void use_link(void)
{
    const char *name = name_of("link", any(NAMES));
    char text[160], found[160];
    unsigned number;
    ssize_t length;

    snprintf(text, sizeof text, any(2) ? LINK_TEXT : "text-%u", any(1000));
    expect(symlink(text, name) == 0 || errno == EEXIST, "symlink", name);
    length = readlink(name, found, sizeof found - 1);
    if (length >= 0) {
        found[length] = 0;
        expect(sscanf(found, LINK_TEXT, &number) == 1 || sscanf(found, "text-%u", &number) == 1,
               "text of a link", found);
    } else {
        expect(errno == ENOENT, "readlink", name);
    }
    length = open(name, O_RDONLY); /* follows the link */
    expect(length < 0 && errno == ENOENT, "open through a link", name);
    if (any(2))
        expect(unlink(name) == 0 || errno == ENOENT, "unlink", name);
}

static void use_folder(void)
{
    const char *name = name_of("folder", any(4));
    char below[256];
    int file;

    expect(mkdir(name, 0700) == 0 || errno == EEXIST, "mkdir", name);
    snprintf(below, sizeof below, "%s/%u", name, any(4));
    file = open(below, O_WRONLY | O_CREAT, 0600);
    if (file >= 0)
        close(file);
    else
        expect(errno == ENOENT, "create below", name);
    expect(unlink(below) == 0 || errno == ENOENT, "unlink below", name);
    expect(rmdir(name) == 0 || errno == ENOENT || errno == ENOTEMPTY, "rmdir", name);
}

/* Replaces a shared descriptor, which another thread may close and open again at any moment. */
static void share_descriptor(void)
{
    int *slot = &descriptors[any(DESCRIPTORS)],
        file = __atomic_exchange_n(slot, 0, __ATOMIC_ACQ_REL), none = 0;

    if (file > 0)
        close(file);
    switch (any(3)) {
    case 0:
        file = open(name_of("file", any(NAMES)), O_RDONLY);
        break;
    case 1:
        file = socket(any(2) ? AF_UNIX : AF_INET, SOCK_STREAM, 0);
        break;
    default:
        file = epoll_create1(0);
        break;
    }
    if (file > 0 &&
        !__atomic_compare_exchange_n(slot, &none, file, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        close(file);
}

static void ask_descriptor(void)
{
    int file = __atomic_load_n(&descriptors[any(DESCRIPTORS)], __ATOMIC_ACQUIRE);
    struct stat status;

    if (file > 0 && fstat(file, &status) != 0)
        expect(errno == EBADF, "fstat", "a shared number");
}

/* Closes sockets, some of them while in an epoll set. */
static void use_epoll(void)
{
    int set = epoll_create1(0), pair[2];
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = any(1u << 24)}, found;

    expect(set >= 0, "epoll_create1", "");
    expect(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "socketpair", "");
    expect(epoll_ctl(set, EPOLL_CTL_ADD, pair[0], &event) == 0, "EPOLL_CTL_ADD", "");
    expect(write(pair[1], "x", 1) == 1, "write", "a socket");
    expect(epoll_wait(set, &found, 1, 1000) == 1 && found.data.u32 == event.data.u32, "epoll_wait",
           "");
    if (any(2))
        expect(epoll_ctl(set, EPOLL_CTL_DEL, pair[0], NULL) == 0, "EPOLL_CTL_DEL", "");
    close(pair[0]);
    close(pair[1]);
    close(set);
}

static void (*const works[])(void) = {make_file,
                                      read_file,
                                      read_file,
                                      look,
                                      look,
                                      move,
                                      take_away,
                                      use_link,
                                      use_folder,
                                      share_descriptor,
                                      share_descriptor,
                                      ask_descriptor,
                                      ask_descriptor,
                                      use_epoll};

static void *work(void *number)
{
    unsigned long operations = 0;

    seed = (unsigned)(size_t)number * 7919 + (unsigned)getpid();
    while (time(NULL) < end)
        for (unsigned i = 0; i < 64; i++, operations++)
            works[any(sizeof works / sizeof *works)]();
    return (void *)operations;
}

static void process(void)
{
    pthread_t threads[THREADS];
    unsigned long operations = 0;

    for (size_t i = 0; i < THREADS; i++)
        expect(pthread_create(&threads[i], NULL, work, (void *)i) == 0, "pthread_create", "");
    for (size_t i = 0; i < THREADS; i++) {
        void *result;

        pthread_join(threads[i], &result);
        operations += (unsigned long)result;
    }
    printf("SMOKE process %d: %lu operations\n", (int)getpid(), operations);
}

int main(int count, char **arguments)
{
    int status, failed = 0;
    unsigned processes;

    if (count != 4 || chdir(arguments[1]) != 0) {
        fprintf(stderr, "usage: smoke DIRECTORY PROCESSES SECONDS\n");
        return 2;
    }
    processes = (unsigned)strtoul(arguments[2], NULL, 0);
    end = time(NULL) + atoi(arguments[3]);
    for (unsigned i = 0; i < processes; i++) {
        pid_t child = fork();

        if (child < 0)
            fail("fork", "");
        if (child == 0) {
            process();
            exit(0);
        }
    }
    while (wait(&status) > 0)
        failed |= status != 0;
    printf("SMOKE %s\n", failed ? "failed" : "ok");
    return failed;
}
