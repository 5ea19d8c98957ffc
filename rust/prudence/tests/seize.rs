// SPDX-License-Identifier: MIT
//! Collectors, one behaviour each.
mod common;

use common::{Census, Counted};
use prudence::seize::{reclaim, Collector, Guard};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering::*};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

fn counted(census: &Arc<Census>, number: usize) -> *mut Counted {
    Box::into_raw(Box::new(Counted::new(census, number)))
}

#[test]
fn a_collector_that_is_dropped_reclaims_everything() {
    let pinned = prudence::pin(); // no grace period ends
    for retired in [1, 31, 32, 33, 100, 1_000] {
        let census = Census::new();
        let collector = Collector::new();
        for number in 0..retired {
            let guard = collector.enter();
            // SAFETY: a box that no other code has.
            unsafe { guard.defer_retire(counted(&census, number), reclaim::boxed) };
        }
        assert_eq!(census.counts(), (retired, 0));
        drop(collector);
        assert_eq!(census.counts(), (retired, retired));
    }
    drop(pinned);
}

#[test]
#[cfg_attr(miri, ignore)] // only the library has statistics; miri searches for leaks itself
fn collectors_leave_no_memory() {
    let census = Census::new();
    let before = common::objects_live();
    for number in 0..10_000 {
        let collector = Collector::new();
        // SAFETY: a box that no other code has.
        unsafe { collector.retire(counted(&census, number), reclaim::boxed) };
        collector.enter().flush(); // the bag is empty afterwards
    }
    assert!(common::objects_live() < before + 5_000); // other tests of this program have some
}

#[test]
fn values_may_borrow_what_outlives_the_collector() {
    let drops = Cell::new(0);
    struct Borrows<'a>(&'a Cell<i32>);
    impl Drop for Borrows<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }
    let collector = Collector::new();
    let pinned = collector.enter(); // so that no other thread reclaims
    for _ in 0..100 {
        // SAFETY: a box that no other code has, which only this thread drops.
        unsafe { collector.retire(Box::into_raw(Box::new(Borrows(&drops))), reclaim::boxed) };
    }
    assert_eq!(drops.get(), 0);
    let others = prudence::pin();
    drop(pinned);
    drop(collector);
    assert_eq!(drops.get(), 100);
    drop(others);
}

#[test]
fn a_barrier_reclaims_what_other_threads_retired() {
    let census = Census::new();
    let collector = Collector::new().batch_size(1_000_000);
    thread::scope(|scope| {
        scope.spawn(|| {
            // SAFETY: a box that no other code has.
            unsafe { collector.retire(counted(&census, 1), reclaim::boxed) };
        });
    });
    let guard = collector.enter();
    assert_eq!(collector.barrier().unwrap_err().raw_os_error(), Some(35));
    drop(guard);
    collector.barrier().unwrap();
    assert_eq!(census.counts(), (1, 1));
    assert_eq!(format!("{collector:?}"), "Collector { batch_size: 62 }");
}

/// Values with an `Rc` may be retired by the only thread that has the collector.
#[test]
fn values_end_where_the_collector_is() {
    struct Local(Rc<()>, thread::ThreadId);
    impl Drop for Local {
        fn drop(&mut self) {
            assert_eq!(thread::current().id(), self.1);
        }
    }
    let shared = Rc::new(());
    let collector = Collector::new();
    let retire = |count: usize| {
        for _ in 0..count {
            let local = Local(shared.clone(), thread::current().id());
            // SAFETY: a box that no other code has; only this thread has the collector.
            unsafe {
                collector.enter().defer_retire(Box::into_raw(Box::new(local)), reclaim::boxed)
            };
        }
    };
    retire(if cfg!(miri) { 200 } else { 10_000 });
    thread::sleep(Duration::from_millis(50)); // for threads of the library
    collector.barrier().unwrap();
    assert_eq!(Rc::strong_count(&shared), 1);
    retire(10);
    drop(collector);
    assert_eq!(Rc::strong_count(&shared), 1);
}

/// Values retired with a leaked collector may borrow data that ends then, so they never end.
#[test]
#[cfg_attr(miri, ignore)] // which searches for leaks
fn what_is_leaked_with_its_collector_never_ends() {
    let census = Census::new();
    let collector = Collector::new();
    for number in 0..200 {
        // SAFETY: a box that no other code has.
        unsafe { collector.enter().defer_retire(counted(&census, number), reclaim::boxed) };
    }
    let ended = census.counts().1;
    std::mem::forget(collector);
    prudence::barrier().unwrap();
    thread::sleep(Duration::from_millis(50));
    assert_eq!(census.counts(), (200, ended));
}

/// The last reader that was blocking reclaims, whether it began before or after the others.
#[test]
fn the_last_guard_reclaims() {
    let census = Census::new();
    let collector = Collector::new().batch_size(1);
    let (first, second) = (collector.enter(), collector.enter());
    thread::scope(|scope| {
        let retire = || {
            // SAFETY: a box that no other code has.
            unsafe { collector.enter().defer_retire(counted(&census, 1), reclaim::boxed) };
        };
        scope.spawn(retire);
    });
    assert_eq!(census.counts(), (1, 0));
    drop(first);
    assert_eq!(census.counts(), (1, 0));
    drop(second);
    let more = collector.enter(); // other tests of this program have guards
    drop(more);
    collector.barrier().unwrap();
    assert_eq!(census.counts(), (1, 1));
}

#[test]
fn retired_values_wait_for_guards() {
    let census = Census::new();
    let collector = Collector::new();
    let (inside, leave) = (Barrier::new(2), Barrier::new(2));
    thread::scope(|scope| {
        scope.spawn(|| {
            let guard = collector.enter();
            inside.wait();
            leave.wait();
            drop(guard);
        });
        inside.wait();
        // SAFETY: a box that no other code has.
        unsafe { collector.enter().defer_retire(counted(&census, 1), reclaim::boxed) };
        collector.enter().flush();
        assert_eq!(census.counts(), (1, 0));
        leave.wait();
    });
    collector.barrier().unwrap();
    assert_eq!(census.counts(), (1, 1));
}

#[test]
fn retired_values_wait_for_owned_guards() {
    let census = Census::new();
    let collector = Collector::new();
    let place = AtomicPtr::new(counted(&census, 1));
    let plain = AtomicPtr::new(Box::into_raw(Box::new(7_u64)));
    let guard = thread::scope(|scope| scope.spawn(|| collector.enter_owned()).join().unwrap());
    let found = guard.protect(&place, Acquire);
    let number = guard.protect(&plain, Acquire);
    // SAFETY: the swaps unlink boxes that no thread retires a second time.
    unsafe {
        let new = counted(&census, 2);
        collector.retire(guard.swap(&place, new, AcqRel), reclaim::boxed);
        let next = Box::into_raw(Box::new(8_u64));
        let old = guard.compare_exchange(&plain, number, next, AcqRel, Acquire).unwrap();
        collector.retire(old, reclaim::boxed);
        guard.flush();
    }
    prudence::synchronize(); // grace periods of threads do not end the owned section
    (0..200).for_each(|_| collector.enter().flush());
    // SAFETY: both were loaded under the guard.
    unsafe {
        (*found).check();
        assert_eq!(*number, 7);
    }
    assert_eq!(census.counts(), (2, 0));
    thread::scope(|scope| scope.spawn(move || drop(guard)).join().unwrap());
    collector.barrier().unwrap();
    assert_eq!(census.counts(), (2, 1));
    // SAFETY: no other code has them.
    unsafe {
        collector.retire(place.into_inner(), reclaim::boxed);
        collector.retire(plain.into_inner(), reclaim::boxed);
    }
    drop(collector);
    assert_eq!(census.counts(), (2, 2));
}

#[test]
fn a_refreshed_guard_protects_anew() {
    let census = Census::new();
    let collector = Collector::new();
    let mut owned = collector.enter_owned();
    // SAFETY: a box that no other code has.
    unsafe { owned.defer_retire(counted(&census, 1), reclaim::boxed) };
    while census.counts() != (1, 1) {
        owned.flush();
        owned.refresh(); // a guard that kept its section would keep the value
        thread::sleep(Duration::from_millis(1));
    }
    drop(owned);
    let mut local = collector.enter();
    local.refresh();
    assert!(prudence::epoch::is_pinned());
    drop(local);
    assert!(!prudence::epoch::is_pinned());
}

#[test]
fn reclaimers_may_retire_and_know_their_collector() {
    static ENDED: AtomicUsize = AtomicUsize::new(0);
    unsafe fn again(number: *mut usize, collector: &Collector) {
        ENDED.fetch_add(1, Relaxed);
        // SAFETY: the box that `retire` was given.
        let mut number = unsafe { Box::from_raw(number) };
        if *number != 0 {
            *number -= 1;
            let guard = collector.enter();
            assert!(guard.collector() == collector);
            // SAFETY: a box that no other code has.
            unsafe { guard.defer_retire(Box::into_raw(number), again) };
        }
    }
    let collector = Collector::new();
    // SAFETY: boxes that no other code has.
    unsafe { collector.retire(Box::into_raw(Box::new(10)), again) };
    while ENDED.load(Relaxed) < 11 {
        collector.barrier().unwrap();
    }
    // SAFETY: as above; there is no guard.
    unsafe {
        collector.retire(Box::into_raw(Box::new(10)), again);
        collector.reclaim_all();
    }
    assert_eq!(ENDED.load(Relaxed), 22);
    assert!(collector != Collector::new());
}

#[test]
fn a_reclaimer_that_panics_ends_alone() {
    unsafe fn fails(_: *mut u8, _: &Collector) {
        panic!("expected: a reclaimer");
    }
    let census = Census::new();
    let collector = Collector::new();
    // SAFETY: `fails` ignores the pointer; the other is a box that no other code has.
    unsafe {
        collector.retire(std::ptr::null_mut(), fails);
        collector.retire(counted(&census, 1), reclaim::boxed);
    }
    drop(collector);
    assert_eq!(census.counts(), (1, 1));
}

#[test]
fn values_in_place_and_numbers_of_threads() {
    let census = Census::new();
    let collector = Collector::default();
    let mut place = std::mem::MaybeUninit::new(Counted::new(&census, 1));
    // SAFETY: the memory outlives the collector, and no thread reads it.
    unsafe { collector.retire(place.as_mut_ptr(), reclaim::in_place) };
    let own = collector.enter().thread_id();
    let other =
        thread::scope(|scope| scope.spawn(|| collector.enter_owned().thread_id()).join().unwrap());
    assert_ne!(own, other);
    drop(collector);
    assert_eq!(census.counts(), (1, 1));
}

/// Collectors come and go while threads replace values that are reached through them.
#[test]
fn collectors_are_dropped_under_load() {
    let rounds = if cfg!(miri) { 2 } else { 60 };
    for round in 0..rounds {
        let census = Census::new();
        let collector = Collector::new().batch_size(1 + round % 40);
        let place = AtomicPtr::new(counted(&census, 0));
        let done = AtomicBool::new(false);
        let each = if cfg!(miri) { 30 } else { 1_000 };
        thread::scope(|scope| {
            let readers: Vec<_> = (0..2)
                .map(|reader| {
                    let (collector, place, done) = (&collector, &place, &done);
                    scope.spawn(move || {
                        while !done.load(Relaxed) {
                            if reader == 0 {
                                look(&collector.enter(), place);
                            } else {
                                look(&collector.enter_owned(), place);
                            }
                        }
                    })
                })
                .collect();
            let writers: Vec<_> = (0..2)
                .map(|_| {
                    scope.spawn(|| {
                        for number in 0..each {
                            let guard = collector.enter();
                            let old = guard.swap(&place, counted(&census, number), AcqRel);
                            // SAFETY: the swap unlinked it, for this thread alone.
                            unsafe { guard.defer_retire(old, reclaim::boxed) };
                        }
                    })
                })
                .collect();
            writers.into_iter().for_each(|writer| writer.join().unwrap());
            done.store(true, Relaxed);
            readers.into_iter().for_each(|reader| reader.join().unwrap());
        });
        // SAFETY: no other code has it.
        unsafe { collector.retire(place.into_inner(), reclaim::boxed) };
        drop(collector);
        assert_eq!(census.counts(), (2 * each + 1, 2 * each + 1));
    }
}

fn look(guard: &impl Guard, place: &AtomicPtr<Counted>) {
    // SAFETY: loaded under a guard, never null, and published by the swap.
    let value = unsafe { &*guard.protect(place, Acquire) };
    value.check();
    thread::yield_now();
    value.check();
}
