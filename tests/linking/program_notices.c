/* SPDX-License-Identifier: MIT */
/*
 * A program whose descriptor 2 becomes something else, and which then gives the library a reason to
 * write. arguments: KIND REASON [PATH]
 */
#define _GNU_SOURCE /* posix_openpt */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <prudence/prudence.h>
#include <prudence/rcu.h>
#include <prudence/stats.h>

static int other_end = -1; /* where text comes out that was written to 2 */

/* Puts a new descriptor in the place of 2. */
static void become(int fd)
{
    if (fd < 0 || dup2(fd, STDERR_FILENO) < 0)
        abort();
    close(fd);
}

static void become_pair(int ends[2])
{
    other_end = ends[0];
    become(ends[1]);
}

static void change(const char *kind, const char *path)
{
    int ends[2];

    if (strcmp(kind, "database") == 0) {
        close(STDERR_FILENO); /* the next file has the number, as in a daemon */
        if (open(path, O_RDWR) != STDERR_FILENO)
            abort();
    } else if (strcmp(kind, "data") == 0) {
        become(open(path, O_WRONLY));
    } else if (strcmp(kind, "log") == 0) {
        become(open(path, O_WRONLY | O_APPEND));
    } else if (strcmp(kind, "null") == 0) {
        become(open("/dev/null", O_WRONLY));
    } else if (strcmp(kind, "closed") == 0) {
        close(STDERR_FILENO);
    } else if (strcmp(kind, "pipe") == 0 && pipe(ends) == 0) {
        become_pair(ends);
    } else if (strcmp(kind, "socket") == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0) {
        become_pair(ends);
    } else if (strcmp(kind, "terminal") == 0) {
        other_end = posix_openpt(O_RDWR | O_NOCTTY);
        if (grantpt(other_end) || unlockpt(other_end))
            abort();
        become(open(ptsname(other_end), O_RDWR | O_NOCTTY));
    } else if (strcmp(kind, "same") != 0) {
        abort();
    }
}

static void *leave_inside(void *unused)
{
    prudence_read_lock();
    return unused;
}

static void give_reason(const char *reason)
{
    pthread_t thread;

    if (strcmp(reason, "notice") == 0) {
        prudence_option_set("nonsense", "1");
    } else if (strcmp(reason, "threads") == 0) {
        for (int i = 0; i < 200; i++)
            if (pthread_create(&thread, NULL, leave_inside, NULL) || pthread_join(thread, NULL))
                abort();
    } else if (strcmp(reason, "fault") == 0) {
        prudence_free((char *)prudence_malloc(100) + 1);
    } else if (strcmp(reason, "dump") == 0) {
        raise(SIGUSR1);
    } else if (strcmp(reason, "few") == 0) {
        prudence_option_set("sandbox", "1");
        prudence_option_set("nonsense", "1");
    } else if (strcmp(reason, "few-fault") == 0) {
        prudence_option_set("sandbox", "1");
        prudence_free((char *)prudence_malloc(100) + 1);
    } else {
        abort();
    }
}

int main(int count, char **arguments)
{
    char text[4096];
    ssize_t length;

    if (count < 3)
        return 2;
    prudence_free(prudence_malloc(1));
    change(arguments[1], count > 3 ? arguments[3] : "");
    give_reason(arguments[2]);
    if (other_end >= 0 && (length = read(other_end, text, sizeof text)) > 0)
        fwrite(text, 1, (size_t)length, stdout);
    fflush(stdout);
    prudence_dump(STDOUT_FILENO);
    return 0;
}
