// SPDX-License-Identifier: MIT
//! What no thread has called when the blocking section ended, or that a thread left, is called by a
//! later guard. Alone in its program and one after the other, so that no other guard is blocking.

use prudence::{epoch, seize};
use std::sync::atomic::{AtomicUsize, Ordering::*};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn a_later_guard_calls_what_was_missed() {
    let _alone = ALONE.lock().unwrap();
    let ran = Arc::new(AtomicUsize::new(0));
    let [busy, used] = [0; 2].map(|_| epoch::Collector::new().register());
    let blocked = seize::Collector::new().batch_size(1);
    let owned = blocked.enter_owned(); // keeps what this collector has
    let (inside, leave) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    let reader = thread::spawn({
        let (inside, leave) = (inside.clone(), leave.clone());
        move || {
            let _guard = epoch::pin(); // of another collector, so its end checks nothing of these
            inside.wait();
            leave.wait();
        }
    });
    inside.wait();
    // SAFETY: a box that no other code has.
    unsafe { blocked.retire(Box::into_raw(Box::new(1)), seize::reclaim::boxed) };
    let guard = used.pin();
    let counted = ran.clone();
    guard.defer(move || counted.fetch_add(1, SeqCst));
    guard.flush();
    drop(guard); // checks, and the reader's guard is blocking
    leave.wait();
    reader.join().unwrap();
    assert_eq!(ran.load(SeqCst), 0);
    for _ in 0..1_000 {
        let guard = busy.pin(); // has something to do each time, which keeps no other waiting
        guard.defer(|| {});
        guard.flush();
        drop(guard);
        drop(used.pin());
        drop(blocked.enter());
    }
    assert_eq!(ran.load(SeqCst), 1);
    drop(owned);
}

/// Defers a function that does the same with one less.
fn defer_chain(collector: &epoch::Collector, rest: usize, ran: &Arc<AtomicUsize>) {
    let handle = collector.register();
    let guard = handle.pin();
    let (ran, again) = (ran.clone(), collector.clone());
    guard.defer(move || {
        ran.fetch_add(1, SeqCst);
        if rest > 1 {
            defer_chain(&again, rest - 1, &ran);
        }
    });
    guard.flush();
}

#[test]
fn a_later_guard_calls_what_a_thread_left() {
    let _alone = ALONE.lock().unwrap();
    let (collector, ran) = (epoch::Collector::new(), Arc::new(AtomicUsize::new(0)));
    let handle = collector.register();
    defer_chain(&collector, 20, &ran);
    for _ in 0..100_000 {
        drop(handle.pin());
    }
    assert_eq!(ran.load(SeqCst), 20);
}

#[test]
fn a_later_guard_calls_what_was_flushed_inside_a_guard_of_another_collector() {
    let _alone = ALONE.lock().unwrap();
    let ran = Arc::new(AtomicUsize::new(0));
    let [handle, other] = [0; 2].map(|_| epoch::Collector::new().register());
    let outer = other.pin();
    let guard = handle.pin();
    let counted = ran.clone();
    guard.defer(move || counted.fetch_add(1, SeqCst));
    guard.flush();
    drop(guard); // is not the thread's last, and the last is not of this collector
    drop(outer);
    for _ in 0..100_000 {
        drop(handle.pin());
    }
    assert_eq!(ran.load(SeqCst), 1);
}
