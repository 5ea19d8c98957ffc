#!/bin/bash
# SPDX-License-Identifier: MIT
# ck_hs_stat of Concurrency Kit counts more tombstones than its table has slots, and ck_hs_gc takes none away.
#
# Guess, written before the run: a ck_hs with 100 keys, into which a million new keys are put and removed one by one, has the same capacity
# afterwards. Its tombstones are at most half of it.
#
# Seen (Concurrency Kit 0.7.1 of Debian 12, x86-64): the manual page calls the figure the current number of tombstones. It is the number of removals
# since the table was made anew: with one key that was removed and put back a thousand times in 64 slots, it is a thousand. ck_hs_gc, which
# cleans up, leaves it as it is; ck_hs_rebuild sets it to 0. So a writer that rebuilds at a share of tombstones does it far too often. (That the
# table keeps its size was guessed right: each put takes a slot that a removal has left.)
#
# For us: a counter falls when the thing that it counts goes away, or is named for what it adds up.
. "$(dirname "$0")/common.sh"
only_x86_64

unpack libck-dev=0.7.1-10 libck0=0.7.1-10

cat >set.c <<'END'
#include <ck_hs.h>
#include <stdio.h>
#include <stdlib.h>

enum { SLOTS = 64 };

static unsigned long key = 42;
static ck_hs_t set;

static unsigned long hash(const void *object, unsigned long seed)
{
    (void)seed;
    return *(const unsigned long *)object * 0xff51afd7ed558ccdul;
}

static bool same(const void *left, const void *right)
{
    return *(const unsigned long *)left == *(const unsigned long *)right;
}

static void *get(size_t bytes)
{
    return malloc(bytes);
}

static void put_back(void *memory, size_t bytes, bool defer)
{
    (void)bytes, (void)defer;
    free(memory);
}

static struct ck_malloc memory = {.malloc = get, .free = put_back};

static void show(const char *step)
{
    struct ck_hs_stat figures;

    ck_hs_stat(&set, &figures);
    printf("%s: %lu key, %lu tombstones, probe %u; ", step, figures.n_entries, figures.tombstones, figures.probe_maximum);
}

int main(void)
{
    if (!ck_hs_init(&set, CK_HS_MODE_SPMC | CK_HS_MODE_OBJECT | CK_HS_MODE_DELETE, hash, same, &memory, SLOTS, 0))
        return 1;
    ck_hs_put(&set, CK_HS_HASH(&set, hash, &key), &key);
    show("put");
    for (int i = 0; i < 1000; i++) {
        ck_hs_remove(&set, CK_HS_HASH(&set, hash, &key), &key);
        ck_hs_put(&set, CK_HS_HASH(&set, hash, &key), &key);
    }
    show("a thousand times");
    ck_hs_gc(&set, 0, 0);
    show("gc");
    ck_hs_rebuild(&set);
    show("rebuild");
    return 0;
}
END
library=root/usr/lib/x86_64-linux-gnu
gcc -O1 -isystem root/usr/include -isystem root/usr/include/x86_64-linux-gnu set.c -L "$library" -lck -o set
found=$(LD_LIBRARY_PATH="$folder/$library" ./set)
echo "Concurrency Kit 0.7.1: $found"
right="put: 1 key, 0 tombstones, probe 1; a thousand times: 1 key, 1000 tombstones, probe 1; "
right+="gc: 1 key, 1000 tombstones, probe 1; rebuild: 1 key, 0 tombstones, probe 1; "
expect "$found" "$right"
