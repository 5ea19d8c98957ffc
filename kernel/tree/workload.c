/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Measures a kernel (tools/kernel/tree figures) by one operation, repeated many times in several
 * rounds. Prints "WORK name operations ns-per-operation" for each round; the first warms up. In a
 * guest whose clock counts instructions, ns are instructions. Exits with 1 if an operation fails.
 *
 *     workload DIRECTORY NAME OPERATIONS ROUNDS      the table at the end lists the names
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define OPEN_FILES 512
#define STORM      8 /* files opened and closed after each name */

static void check(int result, const char *what)
{
    if (result >= 0)
        return;
    fprintf(stderr, "workload: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int open_checked(const char *path, int flags)
{
    int file = open(path, flags, 0600);

    check(file, path);
    return file;
}

static void open_close(unsigned operations)
{
    close(open_checked("file", O_RDWR | O_CREAT));
    for (unsigned i = 0; i < operations; i++)
        close(open_checked("file", O_RDONLY));
}

/* Closes the oldest of 512 files and opens another. The files stay open from the first round on. */
static void open_close_512(unsigned operations)
{
    static int files[OPEN_FILES];

    if (!files[0]) {
        close(open_checked("file", O_RDWR | O_CREAT));
        for (unsigned i = 0; i < OPEN_FILES; i++)
            files[i] = open_checked("file", O_RDONLY);
    }
    for (unsigned i = 0; i < operations; i++) {
        close(files[i % OPEN_FILES]);
        files[i % OPEN_FILES] = open_checked("file", O_RDONLY);
    }
}

static void create_unlink(unsigned operations, const char *format)
{
    char name[128];

    for (unsigned i = 0; i < operations; i++) {
        int file;

        snprintf(name, sizeof name, format, i % 64);
        file = open_checked(name, O_RDWR | O_CREAT | O_EXCL);
        check(unlink(name), name);
        close(file);
    }
}

static void create(unsigned operations)
{
    create_unlink(operations, "new-%u");
}

/* Creates and removes names too long to lie in a dentry. */
static void create_long(unsigned operations)
{
    create_unlink(operations, "a-name-that-has-more-than-the-forty-characters-of-a-dentry-%u");
}

/* Makes names without opening a file, so that the cache used by a storm of opened files is not
 * touched. */
static void names(unsigned operations, unsigned storm)
{
    char name[32];

    close(open_checked("file", O_RDWR | O_CREAT));
    for (unsigned i = 0; i < operations; i++) {
        snprintf(name, sizeof name, "name-%u", i % 64);
        check(mknod(name, S_IFREG | 0600, 0), name);
        check(unlink(name), name);
        for (unsigned j = 0; j < storm; j++)
            close(open_checked("file", O_RDONLY));
    }
}

static void name(unsigned operations)
{
    names(operations, 0);
}

static void name_storm(unsigned operations)
{
    names(operations, STORM);
}

/* Opens and closes as many files as name_storm(), without names. */
static void storm(unsigned operations)
{
    open_close(operations * STORM);
}

static void sockets(unsigned operations, int family)
{
    for (unsigned i = 0; i < operations; i++) {
        int file = socket(family, SOCK_STREAM, 0);

        check(file, "socket");
        close(file);
    }
}

static void unix_socket(unsigned operations)
{
    sockets(operations, AF_UNIX);
}

static void tcp_socket(unsigned operations)
{
    sockets(operations, AF_INET);
}

static void epoll(unsigned operations)
{
    int poll = epoll_create1(0), file = eventfd(0, 0);

    check(poll, "epoll_create1");
    check(file, "eventfd");
    for (unsigned i = 0; i < operations; i++) {
        struct epoll_event event = {.events = EPOLLIN};

        check(epoll_ctl(poll, EPOLL_CTL_ADD, file, &event), "EPOLL_CTL_ADD");
        check(epoll_ctl(poll, EPOLL_CTL_DEL, file, NULL), "EPOLL_CTL_DEL");
    }
    close(file);
    close(poll);
}

static const struct {
    const char *name;
    void (*run)(unsigned operations);
} kinds[] = {
    {"open_close", open_close},
    {"open_close_512", open_close_512},
    {"create", create},
    {"create_long", create_long},
    {"name", name},
    {"name_storm", name_storm},
    {"storm", storm},
    {"unix_socket", unix_socket},
    {"tcp_socket", tcp_socket},
    {"epoll", epoll},
};

static unsigned long long now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ull + (unsigned long long)time.tv_nsec;
}

static void measure(const char *name, void (*run)(unsigned operations), unsigned operations,
                    unsigned rounds)
{
    for (unsigned round = 0; round < rounds; round++) {
        unsigned long long begin = now();

        run(operations);
        printf("WORK %s %u %llu\n", name, operations,
               (now() - begin + operations / 2) / operations);
    }
}

int main(int count, char **arguments)
{
    unsigned operations, rounds;

    if (count != 5) {
        fprintf(stderr, "usage: workload DIRECTORY NAME OPERATIONS ROUNDS\n");
        return 2;
    }
    check(chdir(arguments[1]), arguments[1]);
    operations = (unsigned)strtoul(arguments[3], NULL, 0);
    rounds = (unsigned)strtoul(arguments[4], NULL, 0);
    for (size_t i = 0; operations && i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(kinds[i].name, arguments[2])) {
            measure(arguments[2], kinds[i].run, operations, rounds);
            return 0;
        }
    fprintf(stderr, "workload: no workload '%s' of %s operations\n", arguments[2], arguments[3]);
    return 2;
}
