// SPDX-License-Identifier: MIT
//! A workload on a crate, `program NAME`: prints the CPU time of an operation in ns, the peak of resident
//! memory in MB, and operations a second. lab/run/crates builds this twice, with the crates as they are
//! and with ours in the place of their dependencies, and runs both in turns.
//!
//! Two threads, each with half of the operations: three lookups for each replacement of a value. Values
//! are strings of 64 bytes. `-pinned`: a third thread is inside a guard from begin to end.
//!
//! `-dropped`: 10,000 values replace as many others, then the crate's map or cache is dropped. Prints how
//! many of the 20,000 values have been dropped when readers have ended, and how many were made.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use std::time::Instant;

prudence::global_allocator!();

const KEYS: u64 = 10_000;

fn value(number: u64) -> String {
    format!("{:064}", number)
}

/// Returns pseudo-random keys.
fn keys(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % KEYS
    }
}

/// Runs `operation` (whether it replaces, and a key) on two threads, while `pinned` holds its guard.
fn run(
    operations: u64,
    operation: impl Fn(bool, u64) + Sync,
    pinned: Option<&(dyn Fn(&dyn Fn()) + Sync)>,
) {
    (0..KEYS).for_each(|key| operation(true, key));
    let (inside, done) = (AtomicBool::new(pinned.is_none()), AtomicBool::new(false));
    std::thread::scope(|scope| {
        if let Some(pinned) = pinned {
            let (inside, done) = (&inside, &done);
            scope.spawn(move || {
                pinned(&|| {
                    inside.store(true, Release);
                    while !done.load(Acquire) {
                        std::thread::sleep(std::time::Duration::from_millis(1));
                    }
                })
            });
        }
        while !inside.load(Acquire) {
            std::thread::yield_now();
        }
        let workers: Vec<_> = (1..=2)
            .map(|seed| {
                let operation = &operation;
                scope.spawn(move || {
                    let mut key = keys(seed);
                    (0..operations / 2).for_each(|number| operation(number % 4 == 0, key()));
                })
            })
            .collect();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        done.store(true, Release);
    });
}

fn papaya(operations: u64, pinned: bool) {
    let map = papaya::HashMap::new();
    let stay = |inside: &dyn Fn()| {
        let _guard = map.guard();
        inside();
    };
    let operation = |replaces: bool, key: u64| {
        if replaces {
            map.pin().insert(key, value(key));
        } else {
            assert!(map.pin().get(&key).is_some());
        }
    };
    run(operations, operation, pinned.then_some(&stay));
}

fn skiplist(operations: u64, pinned: bool) {
    let map = crossbeam_skiplist::SkipMap::new();
    let stay = |inside: &dyn Fn()| {
        let _guard = crossbeam_epoch::pin();
        inside();
    };
    let operation = |replaces: bool, key: u64| {
        if replaces {
            map.insert(key, value(key));
        } else {
            map.get(&key);
        }
    };
    run(operations, operation, pinned.then_some(&stay));
}

fn moka(operations: u64, pinned: bool) {
    let cache = moka::sync::Cache::new(2 * KEYS);
    let stay = |inside: &dyn Fn()| {
        let _guard = crossbeam_epoch::pin();
        inside();
    };
    let operation = |replaces: bool, key: u64| {
        if replaces {
            cache.insert(key, value(key));
        } else {
            cache.get(&key);
        }
    };
    run(operations, operation, pinned.then_some(&stay));
}

static MADE: AtomicU64 = AtomicU64::new(0);
static DROPPED: AtomicU64 = AtomicU64::new(0);

struct Counted(String);

impl Counted {
    fn new(number: u64) -> Counted {
        MADE.fetch_add(1, Relaxed);
        Counted(value(number))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        DROPPED.fetch_add(1, Relaxed);
    }
}

fn dropped(name: &str) {
    let numbers = || (0..2 * KEYS).map(|number| (number % KEYS, Counted::new(number)));
    match name {
        "papaya-dropped" => {
            let map = papaya::HashMap::new();
            numbers().for_each(|(key, value)| drop(map.pin().insert(key, value).is_some()));
        }
        "skiplist-dropped" => {
            let map = crossbeam_skiplist::SkipMap::new();
            numbers().for_each(|(key, value)| assert_eq!(map.insert(key, value).value().0.len(), 64));
        }
        "moka-dropped" => {
            let cache = moka::sync::Cache::new(2 * KEYS);
            numbers().for_each(|(key, value)| cache.insert(key, std::sync::Arc::new(value)));
        }
        _ => panic!("no workload {name}"),
    }
    prudence::barrier().unwrap();
    println!("{} {}", DROPPED.load(Relaxed), MADE.load(Relaxed));
}

/// A number of /proc/self/status, in KB.
fn status(name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// CPU time of the process in ns, of all threads.
fn cpu() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap();
    let after = &text[text.rfind(')').unwrap()..];
    let words: Vec<f64> =
        after.split_whitespace().skip(11).take(2).map(|w| w.parse().unwrap()).collect();
    (words[0] + words[1]) * 1e7
}

fn main() {
    let name = std::env::args().nth(1).expect("the name of a workload");
    if name.ends_with("-dropped") {
        return dropped(&name);
    }
    let begin = Instant::now();
    let operations = match &*name {
        "papaya" => 4_000_000,
        "skiplist" | "moka" => 1_000_000,
        _ => 400_000,
    };
    match &*name {
        "papaya" | "papaya-pinned" => papaya(operations, name != "papaya"),
        "skiplist" | "skiplist-pinned" => skiplist(operations, name != "skiplist"),
        "moka" | "moka-pinned" => moka(operations, name != "moka"),
        _ => panic!("no workload {name}"),
    }
    let (time, peak) = (cpu() / operations as f64, status("VmHWM:") as f64 / 1024.0);
    println!("{time:.0} {peak:.1} {:.0}", operations as f64 / begin.elapsed().as_secs_f64());
}
