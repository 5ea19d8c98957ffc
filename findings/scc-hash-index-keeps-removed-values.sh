#!/bin/bash
# SPDX-License-Identifier: MIT
# Values that were removed from a HashIndex of the crate scc stay in the table, whatever the epoch, until others are inserted in their place.
#
# Guess, written before the run: HashIndex with 1000 living entries, insert i and remove i-1000 for a million: after 1000 accelerated guards fewer than
# 100 removed values are not dropped. TreeIndex: the same. With a big table (100000 inserted, 99000 removed): fewer than 100 as well.
#
# Seen (scc 3.8.8 with sdd 4.8.11, x86-64): remove() marks the entry. Its value stays in the bucket, and guards of the epoch do not drop it. After a
# million removals hundreds are left. In a table with room for more, of which half is removed, all removed values stay. The README of scc says that
# they are dropped when their bucket is accessed again. Neither reading each key nor retain() over all does that, only insertions do. TreeIndex has
# none left after a million. HashMap of the same crate drops at once. So a HashIndex holds the memory, and the files or locks in its values, of as
# many removed entries as it has room for.
#
# For us: a deferred object waits for a grace period, not for an insertion. A comparison with HashIndex says how many values are held.
. "$(dirname "$0")/common.sh"

cat >main.rs <<'END'
use scc::{HashIndex, HashMap, TreeIndex};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

static DROPPED: AtomicUsize = AtomicUsize::new(0);

#[derive(Clone)]
struct Value;

impl Drop for Value {
    fn drop(&mut self) {
        DROPPED.fetch_add(1, SeqCst);
    }
}

/// Says whether removed values are left after many turns of the epoch.
fn tell(step: &str, removed: usize) {
    for _ in 0..1000 {
        sdd::Guard::new().accelerate();
    }
    let left = removed - DROPPED.load(SeqCst);
    let size = match left {
        0 => "none",
        1..=99 => "few",
        _ if left < removed => "hundreds",
        _ => "all",
    };
    print!("{step} {size}; ");
}

fn main() {
    let index = HashIndex::new();
    for key in 0..1_000_000u32 {
        let _ = index.insert_sync(key, Value);
        if key >= 1000 {
            index.remove_sync(&(key - 1000));
        }
    }
    tell("million", 999_000);

    DROPPED.store(0, SeqCst);
    let index = HashIndex::with_capacity(65536);
    for key in 0..20_000u32 {
        let _ = index.insert_sync(key, Value);
    }
    for key in 0..10_000 {
        index.remove_sync(&key);
    }
    tell("half", 10_000);
    for key in 0..20_000 {
        index.peek_with(&key, |_, _| ());
    }
    tell("read", 10_000);
    index.retain_sync(|_, _| true);
    tell("retained", 10_000);

    DROPPED.store(0, SeqCst);
    let tree = TreeIndex::new();
    for key in 0..1_000_000u32 {
        let _ = tree.insert_sync(key, Value);
        if key >= 1000 {
            tree.remove_sync(&(key - 1000));
        }
    }
    tell("tree", 999_000);

    DROPPED.store(0, SeqCst);
    let map = HashMap::new();
    for key in 0..1000u32 {
        let _ = map.insert_sync(key, Value);
        map.remove_sync(&key);
    }
    tell("map", 1000);
    println!();
}
END
build_rust 'scc = "=3.8.8"' 'sdd = "=4.8.11"'
found=$(./program)
echo "scc 3.8.8: $found"
expect "$found" "million hundreds; half all; read all; retained all; tree none; map none; "
