// SPDX-License-Identifier: MIT
//! Drops on the reclaimer's thread, one behaviour each.
mod common;

use common::{Census, Counted};
use prudence::epoch::{self, Atomic, Owned, Shared};
use prudence::Reclaimer;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::Ordering::*;
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

/// Notes where it is dropped.
struct Noted(usize, Arc<Mutex<Vec<(usize, ThreadId)>>>);

impl Drop for Noted {
    fn drop(&mut self) {
        self.1.lock().unwrap().push((self.0, thread::current().id()));
    }
}

#[test]
fn values_are_dropped_where_the_reclaimer_is() {
    let drops = Arc::default();
    let reclaimer = Reclaimer::new();
    thread::scope(|scope| {
        let home = reclaimer.home();
        scope.spawn(|| {
            let home = home; // another thread sends, and ends
            (0..200).for_each(|number| home.defer_value(Noted(number, Arc::clone(&drops))));
        });
    });
    assert_eq!(reclaimer.barrier().unwrap(), 200);
    let own = thread::current().id();
    let expected: Vec<_> = (0..200).map(|number| (number, own)).collect();
    let mut drops = drops.lock().unwrap().clone();
    drops.sort_by_key(|&(number, _)| number); // bags of two CPUs may change places
    assert_eq!(drops, expected);
    assert_eq!(reclaimer.drain(), 0);
}

#[test]
fn values_need_not_be_send() {
    let log = Rc::new(RefCell::new(Vec::new()));
    struct Local(Rc<RefCell<Vec<i32>>>, i32);
    impl Drop for Local {
        fn drop(&mut self) {
            self.0.borrow_mut().push(self.1);
        }
    }
    let reclaimer = Reclaimer::default();
    (0..3).for_each(|number| reclaimer.defer_value(Local(log.clone(), number)));
    assert!(log.borrow().is_empty());
    drop(reclaimer); // waits
    assert_eq!(*log.borrow(), [0, 1, 2]);
}

#[test]
fn objects_wait_for_readers() {
    let census = Census::new();
    let reclaimer = Reclaimer::new();
    let place = Atomic::new(Counted::new(&census, 1));
    let guard = epoch::pin();
    let old = place.swap(Shared::null(), AcqRel, &guard);
    // SAFETY: the swap unlinked it, for this thread alone.
    unsafe { reclaimer.home().defer_destroy(old) };
    // SAFETY: null is ignored.
    unsafe { reclaimer.home().defer_destroy(Shared::<u8>::null()) };
    guard.flush();
    assert!(reclaimer.barrier().is_err()); // this thread is pinned
    assert_eq!(reclaimer.drain(), 0);
    // SAFETY: loaded under the guard.
    unsafe { old.deref() }.check();
    drop(guard);
    assert_eq!(reclaimer.barrier().unwrap(), 1);
    assert_eq!(census.counts(), (1, 1));
    drop(Owned::new(1));
}

#[test]
#[cfg_attr(miri, ignore)] // the value is leaked
fn what_comes_after_the_end_is_leaked() {
    let census = Census::new();
    let reclaimer = Reclaimer::new();
    let home = reclaimer.home();
    let guard = epoch::pin();
    home.defer_value(Counted::new(&census, 1));
    drop(reclaimer); // cannot wait
    drop(guard);
    home.defer_value(Counted::new(&census, 2));
    prudence::barrier().unwrap();
    assert_eq!(census.counts(), (2, 0));
}

#[test]
fn a_drop_that_panics_keeps_no_other() {
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("expected: a drop");
        }
    }
    let census = Census::new();
    let reclaimer = Reclaimer::new();
    reclaimer.defer_value(Panics);
    (0..5).for_each(|number| reclaimer.defer_value(Counted::new(&census, number)));
    prudence::barrier().unwrap();
    let panics = std::panic::AssertUnwindSafe(|| reclaimer.drain());
    assert!(std::panic::catch_unwind(panics).is_err());
    assert_eq!(census.counts(), (5, 5));
}
