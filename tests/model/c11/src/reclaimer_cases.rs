// SPDX-License-Identifier: MIT
// A module has these with the text of the crate's reclaimer (build.rs).

use loom::cell::UnsafeCell;
use loom::thread;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::Arc;
use text::{Home, Reclaimer};

/// A value that its sender has written, and that counts its end.
struct Value {
    written: UnsafeCell<bool>,
    ended: Arc<AtomicUsize>,
    home: thread::ThreadId,
}

impl Drop for Value {
    fn drop(&mut self) {
        self.written.with_mut(|written| unsafe { assert!(std::mem::take(&mut *written), "handed out twice") });
        assert!(thread::current().id() == self.home, "a value ends on another thread");
        self.ended.fetch_add(1, Relaxed);
    }
}

fn send(home: Home, ended: &Arc<AtomicUsize>) -> thread::JoinHandle<()> {
    let (ended, reclaimers) = (ended.clone(), thread::current().id());
    thread::spawn(move || {
        let value = Value { written: UnsafeCell::new(false), ended, home: reclaimers };
        value.written.with_mut(|written| unsafe { *written = true });
        home.defer_value(value)
    })
}

/// Two threads send values while the reclaimer's thread drains.
pub fn drains() {
    let (reclaimer, ended) = (Reclaimer::new(), Arc::new(AtomicUsize::new(0)));
    let threads = [send(reclaimer.home(), &ended), send(reclaimer.home(), &ended)];
    let drained = reclaimer.drain();
    if drained != 0 {
        crate::noted();
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert!(drained + reclaimer.drain() == 2, "an entry is forgotten");
    assert!(ended.load(Relaxed) == 2, "an entry is forgotten");
}

/// The reclaimer ends while two threads send. A value that comes later is leaked, and does not end elsewhere.
pub fn ends() {
    let (reclaimer, ended) = (Reclaimer::new(), Arc::new(AtomicUsize::new(0)));
    let threads = [send(reclaimer.home(), &ended), send(reclaimer.home(), &ended)];
    drop(reclaimer);
    let before = ended.load(Relaxed);
    if before == 1 {
        crate::noted();
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert!(ended.load(Relaxed) == before, "a value ends after its reclaimer");
}
