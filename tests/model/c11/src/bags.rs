// SPDX-License-Identifier: MIT
//! What the crate of Rust keeps until readers have left (rust/prudence/src/garbage/lanes.rs): a lane with one bag, whose sweep
//! the library calls, and the word that says whether owned guards exist.

use loom::cell::UnsafeCell;
use loom::sync::atomic::{fence, AtomicUsize, Ordering, Ordering::*};
use loom::sync::Arc;
use loom::thread;

#[derive(Clone, Copy)]
pub struct Rules {
    pub put: Ordering,
    pub take: Ordering,
    pub cleared_late: bool, // the sweep clears `swept` after it has taken the bag
    pub tell_fence: bool,   // between telling of an owned guard and its first load
    pub look_fence: bool,   // between unlinking and looking for owned guards
}

pub const RULES: Rules =
    Rules { put: AcqRel, take: AcqRel, cleared_late: false, tell_fence: true, look_fence: true };

const NONE: usize = 0;
const BAGS: usize = 3;

struct Lane {
    rules: Rules,
    bag: AtomicUsize, // its number, or NONE
    swept: AtomicUsize,
    queued: AtomicUsize, // with the library
    made: AtomicUsize,
    entries: [UnsafeCell<usize>; BAGS], // in a bag
    called: AtomicUsize,
}

unsafe impl Sync for Lane {}
unsafe impl Send for Lane {}

impl Lane {
    /// Garbage::add(), with bags that never become full.
    fn add(&self) {
        let mut bag = self.bag.swap(NONE, self.rules.take);
        if bag == NONE {
            bag = 1 + self.made.fetch_add(1, Relaxed);
        }
        self.entries[bag - 1].with_mut(|entries| unsafe { *entries += 1 });
        if self.bag.compare_exchange(NONE, bag, self.rules.put, Relaxed).is_err() {
            self.close(bag);
        } else if self.swept.load(Relaxed) == 0 && self.swept.swap(1, Acquire) == 0 {
            self.queued.swap(1, AcqRel);
        }
    }

    /// The grace period of a closed bag is not here; grace_period.rs has it.
    fn close(&self, bag: usize) {
        let entries = self.entries[bag - 1].with_mut(|entries| unsafe { std::mem::take(&mut *entries) });
        self.called.fetch_add(entries, Relaxed);
    }

    /// The library calls the sweep, if it is queued. It swaps, although a store would do: loom lets a store come between a swap
    /// and what that swap has read.
    fn library(&self) -> bool {
        if self.queued.swap(0, Acquire) == 0 {
            return false;
        }
        if !self.rules.cleared_late {
            self.swept.swap(0, Release);
        }
        let bag = self.bag.swap(NONE, self.rules.take);
        if bag != NONE {
            self.close(bag);
        }
        if self.rules.cleared_late {
            self.swept.swap(0, Release);
        }
        true
    }
}

/// Two threads add two entries and one to a lane, beside the library.
pub fn swept(rules: Rules) {
    let lane = Arc::new(Lane {
        rules,
        bag: AtomicUsize::new(NONE),
        swept: AtomicUsize::new(0),
        queued: AtomicUsize::new(0),
        made: AtomicUsize::new(0),
        entries: [UnsafeCell::new(0), UnsafeCell::new(0), UnsafeCell::new(0)],
        called: AtomicUsize::new(0),
    });
    let (first, second) = (lane.clone(), lane.clone());
    let adds = thread::spawn(move || {
        first.add();
        first.add();
    });
    let other = thread::spawn(move || second.add());
    if lane.library() {
        crate::noted();
    }
    adds.join().unwrap();
    other.join().unwrap();
    while lane.library() {}
    assert!(lane.called.load(Relaxed) == 3, "an entry is forgotten");
}

struct World {
    place: AtomicUsize, // 1: the object is linked
    owned: AtomicUsize,
    object: UnsafeCell<bool>, // freed?
}

unsafe impl Sync for World {}
unsafe impl Send for World {}

/// Collector::retire() of memory that needs no reclaimer, beside the first owned guard.
pub fn owned(rules: Rules) {
    let world = Arc::new(World {
        place: AtomicUsize::new(1),
        owned: AtomicUsize::new(0),
        object: UnsafeCell::new(false),
    });
    let guard = world.clone();
    let reader = thread::spawn(move || {
        guard.owned.store(1, Relaxed);
        if rules.tell_fence {
            fence(SeqCst);
        }
        if guard.place.load(Acquire) == 1 {
            guard.object.with(|freed| assert!(!unsafe { *freed }, "freed object in use"));
        }
    });
    world.place.store(0, Release);
    if rules.look_fence {
        fence(SeqCst);
    }
    if world.owned.load(Relaxed) == 0 {
        world.object.with_mut(|freed| unsafe { *freed = true });
        crate::noted();
    }
    reader.join().unwrap();
}
