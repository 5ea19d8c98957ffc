// SPDX-License-Identifier: MIT
//! What no thread found over when the blocking section ended is called by a later guard. Alone in its
//! program, so that no other test closes bags.

use prudence::epoch;
use std::sync::atomic::{AtomicUsize, Ordering::*};
use std::sync::{Arc, Barrier};
use std::thread;

#[test]
fn a_later_guard_calls_what_was_missed() {
    let ran = Arc::new(AtomicUsize::new(0));
    let handles = [0; 3].map(|_| epoch::Collector::new().register());
    let [busy, used, in_turn] = &handles;
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
    for handle in [used, in_turn] {
        let guard = handle.pin();
        let counted = ran.clone();
        guard.defer(move || counted.fetch_add(1, SeqCst));
        guard.flush();
        drop(guard); // checks, and the reader's guard is blocking
    }
    leave.wait();
    reader.join().unwrap();
    assert_eq!(ran.load(SeqCst), 0);
    for _ in 0..1_000 {
        let guard = busy.pin(); // has something to do each time, which keeps no other waiting
        guard.defer(|| {});
        guard.flush();
        drop(guard);
        drop(used.pin());
        drop(in_turn.pin());
    }
    assert_eq!(ran.load(SeqCst), 2);
}
