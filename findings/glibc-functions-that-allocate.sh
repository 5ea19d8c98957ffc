#!/bin/bash
# SPDX-License-Identifier: MIT
# localtime, mktime and pthread_getattr_np of glibc call malloc each time, and other functions that seem to need memory never do.
#
# Guess, written before the run: Of glibc 2.36 these allocate at their first call and not at the second: localtime, strerror(12345), backtrace,
# atexit's 33rd. These allocate each time: setenv of a new name, qsort of 10000 ints, dlsym of a name that is not there, pthread_create, snprintf with
# a width of 2000, sem_open, opendir, syslog, perror, psignal, getpwuid, pthread_getattr_np in main. These never: gmtime, timegm, strftime,
# snprintf("%.300f"), strerror(5), qsort of 100 ints, dlsym of a name that is there, sysconf of processors, posix_spawn, arc4random, fnmatch, inet_ntoa,
# pthread_getattr_np of another thread, pthread_setname_np, sscanf("%s"), strtod of 2000 digits, usleep, pthread_atfork, timegm, mktime (after
# localtime), localtime_r (after localtime), system("true"), getloadavg, dlopen(NULL).
#
# Seen (glibc 2.36 of Debian 12, x86-64): where TZ is not set, as it mostly is, or names a rule with summer time, localtime and mktime allocate at each
# call. localtime_r does not, and neither of them with TZ=UTC0. gmtime allocates at its first call. strerror of an unknown number and
# pthread_getattr_np of any thread allocate each time, the latter in main to read its place from /proc. pthread_create does so only for the first
# thread, whose stack is kept. snprintf with a large width, perror and psignal do not. So a hook of malloc that logs the time, or an allocator that
# asks for the bounds of the stack at its first call, calls itself.
#
# For us: nothing below malloc calls these. Times in messages are from clock_gettime, bounds of stacks are asked for outside of the allocator.
. "$(dirname "$0")/common.sh"
only_x86_64

unpack libc6=2.36-9+deb12u14

cat >count.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);

static volatile int calls;

void *malloc(size_t size)
{
    calls++;
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    calls++;
    return __libc_calloc(count, size);
}

void *realloc(void *block, size_t size)
{
    calls++;
    return __libc_realloc(block, size);
}

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static pthread_t other;
static const time_t then = 1000000000;
static struct tm parts;
static char text[4096];
static int numbers[10000];

static void *wait_for_main(void *unused)
{
    pthread_mutex_lock(&held);
    return unused;
}

static void *end(void *unused)
{
    return unused;
}

static int compare(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static void ask(pthread_t thread)
{
    pthread_attr_t attributes;

    pthread_getattr_np(thread, &attributes);
    pthread_attr_destroy(&attributes);
}

static void call(int function)
{
    pthread_t thread;

    switch (function) {
    case 0: gmtime(&then); break;
    case 1: localtime(&then); break;
    case 2: localtime_r(&then, &parts); break;
    case 3: mktime(&parts); break;
    case 4: strerror(5); break;
    case 5: strerror(12345); break;
    case 6: pthread_create(&thread, NULL, end, NULL); pthread_join(thread, NULL); break;
    case 7: ask(pthread_self()); break;
    case 8: ask(other); break;
    case 9: snprintf(text, sizeof text, "%2000d", 1); break;
    case 10: perror("a message"); break;
    case 11: psignal(SIGTRAP, "a message"); break;
    case 12: qsort(numbers, 10000, sizeof(int), compare); break;
    case 13: dlsym(RTLD_DEFAULT, "no_such_name"); break;
    }
}

int main(void)
{
    static const char *const names[] = {"gmtime", "localtime", "localtime_r", "mktime", "strerror(5)", "strerror(12345)", "pthread_create",
        "getattr of main", "getattr of another", "wide snprintf", "perror", "psignal", "qsort", "dlsym"};
    char found[4096] = "";
    int first, third;

    pthread_mutex_lock(&held);
    for (int i = 0; i < 14; i++) {
        if (i == 7) /* after pthread_create */
            pthread_create(&other, NULL, wait_for_main, NULL);
        calls = 0;
        call(i);
        first = calls;
        call(i);
        calls = 0;
        call(i);
        third = calls;
        sprintf(found + strlen(found), "%s %s; ", names[i], first && third ? "each" : first ? "first" : third ? "later" : "never");
    }
    fputs(found, stdout);
    fflush(stdout);
    _Exit(0);
}
END
gcc -O1 -fno-builtin -Wno-deprecated-declarations count.c -o count
library=root/lib/x86_64-linux-gnu
found="" right=""
for zone in "" CET-1CEST UTC0; do
    found+="TZ ${zone:-not set}: "
    found+=$(env -u TZ ${zone:+"TZ=$zone"} "$library/ld-linux-x86-64.so.2" --library-path "$library" ./count 2>/dev/null)
    local=each
    [ "$zone" != UTC0 ] || local=never
    right+="TZ ${zone:-not set}: gmtime first; localtime $local; localtime_r never; mktime $local; strerror(5) never; strerror(12345) each; "
    right+="pthread_create first; getattr of main each; getattr of another each; wide snprintf never; perror never; psignal never; "
    right+="qsort each; dlsym each; "
done
echo "glibc 2.36: $found"
expect "$found" "$right"
