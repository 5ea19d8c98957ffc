// SPDX-License-Identifier: MIT
//! States that last too shortly for a program to meet them.

use super::*;
use crate::garbage::CAPACITY;
use std::mem;
use std::sync::Arc;

/// Adds an entry, of which the result has a second reference until it was called.
fn add(garbage: &Garbage) -> Arc<()> {
    let alive = Arc::new(());
    let counted = alive.clone();
    // SAFETY: any thread may drop the value.
    unsafe { garbage.add(Entry::new(move |_| drop(counted))) };
    alive
}

fn was_called(entry: &Arc<()>) -> bool {
    Arc::strong_count(entry) == 1
}

#[test]
fn a_barrier_waits_for_a_bag_that_a_thread_has_in_its_hands() {
    static GARBAGE: Garbage = Garbage::new(CAPACITY, usize::MAX);
    let entry = add(&GARBAGE);
    let (lane, place) = (GARBAGE.lanes.own(), 0);
    thread::within(|| {
        let bag = lane.take(lanes::mark(&place)).unwrap();
        let others = || GARBAGE.finish(Some(Instant::now()));
        let found = std::thread::spawn(others).join().unwrap();
        assert!(matches!(found, Err(Unfinished::Late)));
        assert!(!lane.put(bag, lanes::mark(&place)), "the bag would wait for another barrier");
        // SAFETY: a bag that is in no lane is this thread's.
        unsafe { GARBAGE.close(bag) }
    });
    assert!(GARBAGE.finish(None).is_ok());
    assert!(was_called(&entry));
}

/// A thread of the parent has appended a bag to those that wait, and not yet stored the rest.
#[test]
fn a_child_mends_stages_that_were_being_changed() {
    static GARBAGE: Garbage = Garbage::new(1, usize::MAX);
    let entries = thread::within(|| {
        let first = add(&GARBAGE);
        let mut parents = GARBAGE.enter().unwrap();
        parents.take_next();
        parents.cookie = Cookie::OVER;
        parents.waiting.last = ptr::null_mut();
        mem::forget(parents);
        let parent = process() + 1;
        GARBAGE.gate.store(parent, Relaxed);
        // SAFETY: no other thread is at the cell.
        unsafe { *GARBAGE.process.get() = parent };
        GARBAGE.collect();
        assert!(!was_called(&first), "this thread's section is open");
        [first, add(&GARBAGE)]
    });
    assert!(GARBAGE.finish(None).is_ok());
    assert!(entries.iter().all(was_called));
}

#[test]
fn a_bag_that_comes_while_the_holder_of_the_gate_leaves_is_not_forgotten() {
    static GARBAGE: Garbage = Garbage::new(1, usize::MAX);
    let held = GARBAGE.enter().unwrap();
    let entry = thread::within(|| add(&GARBAGE)); // closes the bag, and collects nothing
    held.say_what_is_kept(false);
    drop(held);
    assert_ne!(GARBAGE.news.kept.load(Relaxed) & WAITING, 0);
    assert!(GARBAGE.finish(None).is_ok());
    assert!(was_called(&entry));
}
