#!/bin/bash
# SPDX-License-Identifier: MIT
# The worker thread of liburcu's call_rcu blocks no signal, so it runs the handlers of the program.
#
# Guess, written before the run: the worker that the first call_rcu starts blocks all signals.
#
# Seen (liburcu 0.13.2 of Debian 12, x86-64): it has the mask of the thread that happened to call call_rcu first. Where a program calls call_rcu
# first and then blocks a signal in its own threads to take it with sigwait, the worker is the one thread left that may get it. A signal that
# comes while nobody waits runs the handler there, and the next sigtimedwait finds nothing. Without a call_rcu it finds the signal.
#
# For us: threads of the library start with all signals blocked, whatever the mask of the caller.
. "$(dirname "$0")/common.sh"
only_x86_64

unpack liburcu-dev=0.13.2-1 liburcu8=0.13.2-1

cat >signals.c <<'END'
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include <urcu.h>

static volatile pid_t worker, handler;

static void callback(__attribute__((unused)) struct rcu_head *head)
{
    worker = gettid();
}

static void handle(__attribute__((unused)) int number)
{
    handler = gettid();
}

/* Takes a signal as a program with sigwait does. With an argument, after a call_rcu. */
int main(int count, __attribute__((unused)) char **arguments)
{
    struct rcu_head head;
    sigset_t set;
    int got;

    rcu_register_thread();
    signal(SIGUSR1, handle);
    if (count > 1) {
        call_rcu(&head, callback);
        rcu_barrier();
    }
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    kill(getpid(), SIGUSR1);
    sleep(1);
    got = sigtimedwait(&set, NULL, &(struct timespec){.tv_sec = 1});
    printf("%s, handler %s; ", got == SIGUSR1 ? "there" : "not there", !handler ? "not run" : handler == worker ? "in the worker" : "elsewhere");
    rcu_unregister_thread();
    return 0;
}
END
library=root/usr/lib/x86_64-linux-gnu
gcc -O1 -I root/usr/include -I root/usr/include/x86_64-linux-gnu signals.c -L "$library" -lurcu -lurcu-common -o signals
export LD_LIBRARY_PATH="$folder/$library"
found="without call_rcu $(./signals)with call_rcu $(./signals 1)"
echo "liburcu 0.13.2: $found"
expect "$found" "without call_rcu there, handler not run; with call_rcu not there, handler in the worker; "
