#!/bin/bash
# SPDX-License-Identifier: MIT
# A value that was removed from a moka cache lives on until somebody uses the cache again, and after invalidate_all until the second time.
#
# Guess, written before the run: moka 0.12 sync: capacity 10 by weight; a key updated to a weight of 20 is gone after run_pending_tasks. A value
# removed with remove() is dropped at once once the caller drops its copy. invalidate_all drops the values in run_pending_tasks. drop(cache) drops all
# values at once.
#
# Seen (moka 0.12.16, x86-64): the update and drop(cache) are as guessed. But after remove() the cache keeps the value in a queue of things to do, which
# no thread of its own works on, so a pause changes nothing. run_pending_tasks drops it. After invalidate_all the first run_pending_tasks drops no
# value, though entry_count() is zero from then on. The second one drops them. So a file, a lock or a connection that is a value stays open after its
# key was removed, in a quiet program for good.
#
# For us: a comparison with moka calls run_pending_tasks twice before it counts.
. "$(dirname "$0")/common.sh"

cat >main.rs <<'END'
use moka::sync::Cache;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::Arc;

static DROPPED: AtomicUsize = AtomicUsize::new(0);

struct Value(u32);

impl Drop for Value {
    fn drop(&mut self) {
        DROPPED.fetch_add(1, SeqCst);
    }
}

/// Says how many values were dropped since the last call.
fn tell(step: &str) {
    print!("{step} {}; ", DROPPED.swap(0, SeqCst));
}

fn filled() -> Cache<u32, Arc<Value>> {
    let cache = Cache::new(1000);
    for key in 0..50 {
        cache.insert(key, Arc::new(Value(key)));
    }
    cache.run_pending_tasks();
    cache
}

fn main() {
    let cache = Cache::builder().max_capacity(10).weigher(|_, value: &Arc<Value>| value.0).build();
    cache.insert(1, Arc::new(Value(5)));
    cache.run_pending_tasks();
    cache.insert(1, Arc::new(Value(20)));
    cache.run_pending_tasks();
    print!("too heavy: {}; ", if cache.contains_key(&1) { "there" } else { "gone" });
    drop(cache);

    let cache = filled();
    DROPPED.store(0, SeqCst);
    drop(cache.remove(&1));
    tell("remove");
    std::thread::sleep(std::time::Duration::from_secs(2));
    tell("pause");
    cache.run_pending_tasks();
    tell("run");
    drop(cache);
    tell("drop");

    let cache = filled();
    cache.invalidate_all();
    tell("invalidate_all");
    cache.run_pending_tasks();
    print!("{} entries, ", cache.entry_count());
    tell("run");
    cache.run_pending_tasks();
    tell("run");
    println!();
}
END
build_rust 'moka = { version = "=0.12.16", features = ["sync"] }' 'crossbeam-epoch = "=0.9.21"'
found=$(./program)
echo "moka 0.12.16: $found"
expect "$found" "too heavy: gone; remove 0; pause 0; run 1; drop 49; invalidate_all 0; 0 entries, run 0; run 50; "
