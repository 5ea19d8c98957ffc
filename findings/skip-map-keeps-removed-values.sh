#!/bin/bash
# SPDX-License-Identifier: MIT
# A value that was removed from a SkipMap of crossbeam is never dropped while its thread removes few others, whatever the map is used for.
#
# Guess, written before the run: crossbeam-skiplist 0.1: a removed entry's value is dropped within 200 pins. drop(map) drops all remaining at once.
#
# Seen (crossbeam-skiplist 0.1.3 with crossbeam-epoch 0.9.21, x86-64): after a million pins and a million lookups the value is still there, and
# dropping the map does not change that. Pins move the epoch, but the value lies in a bag of the thread that removed it, and the bag goes to the others
# when it is full or its thread ends. pin().flush() of crossbeam-epoch hands it over, and a few of them drop it. SkipMap has no method for that, so
# its user has to know that it is made with this crate, and to depend on a version that shares the collector. A removed value that is a file, a
# lock or the last sender of a channel stays open. (That a function deferred with crossbeam-epoch itself needs a flush was guessed right.)
#
# For us: what a thread has deferred is safe when the grace period is over, with few deferrals as with many. A comparison with SkipMap flushes.
. "$(dirname "$0")/common.sh"

cat >main.rs <<'END'
use crossbeam_skiplist::SkipMap;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

static DROPPED: AtomicUsize = AtomicUsize::new(0);

struct Value;

impl Drop for Value {
    fn drop(&mut self) {
        DROPPED.fetch_add(1, SeqCst);
    }
}

/// Says how many values were dropped since the last call.
fn tell(step: &str) {
    print!("{step} {}; ", DROPPED.swap(0, SeqCst));
}

fn main() {
    let map = SkipMap::new();
    for key in 0..10 {
        map.insert(key, Value);
    }
    map.remove(&1);
    tell("remove");
    for _ in 0..1_000_000 {
        drop(crossbeam_epoch::pin());
    }
    tell("pins");
    for _ in 0..1_000_000 {
        map.get(&2);
    }
    tell("lookups");
    drop(map);
    tell("drop of the map");
    for _ in 0..10 {
        crossbeam_epoch::pin().flush();
    }
    tell("flushes");
    println!();
}
END
build_rust 'crossbeam-skiplist = "=0.1.3"' 'crossbeam-epoch = "=0.9.21"'
found=$(./program)
echo "crossbeam-skiplist 0.1.3: $found"
expect "$found" "remove 0; pins 0; lookups 0; drop of the map 9; flushes 1; "
