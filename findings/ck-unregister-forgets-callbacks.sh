#!/bin/bash
# SPDX-License-Identifier: MIT
# ck_epoch_unregister of Concurrency Kit forgets the callbacks that are still pending in the record. They never run.
#
# Guess, written before the run: callbacks that are pending when a thread unregisters its record run later, in a ck_epoch_barrier. If not, the
# manual page says so.
#
# Seen (Concurrency Kit 0.7.1 of Debian 12, x86-64): the record is wiped, with its lists of callbacks and its counts. No barrier, neither of
# another record nor of the same one after ck_epoch_recycle, runs them, so the memory is lost. The manual page of ck_epoch_unregister does
# not say that the record must be empty, and n_pending of the record is zero afterwards. ck_epoch_barrier before the call is right.
#
# For us: a thread that ends hands its pending frees on. A benchmark with Concurrency Kit has to call ck_epoch_barrier at the end of each thread.
. "$(dirname "$0")/common.sh"
only_x86_64

unpack libck-dev=0.7.1-10 libck0=0.7.1-10

cat >leave.c <<'END'
#include <ck_epoch.h>
#include <stdio.h>

static int ran;

static void callback(__attribute__((unused)) ck_epoch_entry_t *entry)
{
    ran++;
}

/* Unregisters a record with a pending callback. With an argument, after a barrier. */
int main(int count, __attribute__((unused)) char **arguments)
{
    static ck_epoch_t epoch;
    static ck_epoch_record_t leaving, other;
    static ck_epoch_entry_t entry;
    ck_epoch_record_t *again;

    ck_epoch_init(&epoch);
    ck_epoch_register(&epoch, &leaving, NULL);
    ck_epoch_register(&epoch, &other, NULL);
    ck_epoch_call(&leaving, &entry, callback);
    printf("%u pending, ", leaving.n_pending);
    if (count > 1)
        ck_epoch_barrier(&leaving);
    ck_epoch_unregister(&leaving);
    printf("then %u, ", leaving.n_pending);
    ck_epoch_barrier(&other);
    again = ck_epoch_recycle(&epoch, NULL);
    if (again != &leaving)
        return 1;
    ck_epoch_barrier(again);
    printf("%d ran; ", ran);
    return 0;
}
END
library=root/usr/lib/x86_64-linux-gnu
gcc -O1 -isystem root/usr/include -isystem root/usr/include/x86_64-linux-gnu leave.c -L "$library" -lck -o leave
export LD_LIBRARY_PATH="$folder/$library"
found="unregister $(./leave)barrier first $(./leave 1)"
echo "Concurrency Kit 0.7.1: $found"
expect "$found" "unregister 1 pending, then 0, 0 ran; barrier first 1 pending, then 0, 1 ran; "
