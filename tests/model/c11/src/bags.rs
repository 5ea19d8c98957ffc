// SPDX-License-Identifier: MIT
//! What the crate of Rust keeps until readers have ended (rust/prudence/src/garbage): a lane with one bag, the gate of the threads that
//! move bags on, and the word that says whether owned guards exist.

use loom::cell::UnsafeCell;
use loom::sync::atomic::{fence, AtomicUsize, Ordering, Ordering::*};
use loom::sync::Arc;
use loom::thread;

#[derive(Clone, Copy)]
pub struct Rules {
    pub put: Ordering,
    pub take: Ordering,
    pub tells: bool,       // a thread that finds the gate held counts an event, and tries again
    pub looks_again: bool, // the holder compares events after it has let the gate go
    pub leave_fence: bool, // between the end of the reader's section and its look at events; the crate has none
    pub looks_later: bool, // a later guard looks at bags that wait
    pub tell_fence: bool,  // between the notice of an owned guard and its first load
    pub look_fence: bool,  // between unlinking and searching for owned guards
}

pub const RULES: Rules = Rules {
    put: AcqRel,
    take: AcqRel,
    tells: true,
    looks_again: true,
    leave_fence: true,
    looks_later: false,
    tell_fence: true,
    look_fence: true,
};

const NONE: usize = 0;
const BAGS: usize = 3;

struct Lane {
    rules: Rules,
    bag: AtomicUsize, // its number, or NONE
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
            self.call(bag);
        }
    }

    /// The grace period of a closed bag is not here; grace_period.rs has it.
    fn call(&self, bag: usize) {
        let entries = self.entries[bag - 1].with_mut(|entries| unsafe { std::mem::take(&mut *entries) });
        self.called.fetch_add(entries, Relaxed);
    }

    /// Garbage::close_all().
    fn close(&self) -> bool {
        let bag = self.bag.swap(NONE, self.rules.take);
        if bag != NONE {
            self.call(bag);
        }
        bag != NONE
    }
}

/// Two threads add two entries and one to a lane, while another one closes it.
pub fn lane(rules: Rules) {
    let lane = Arc::new(Lane {
        rules,
        bag: AtomicUsize::new(NONE),
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
    if lane.close() {
        crate::noted();
    }
    adds.join().unwrap();
    other.join().unwrap();
    lane.close();
    assert!(lane.called.load(Relaxed) == 3, "an entry is forgotten");
}

struct Gate {
    rules: Rules,
    inside: AtomicUsize, // the reader is
    next: AtomicUsize,   // a closed bag
    gate: AtomicUsize,
    events: AtomicUsize,
    waiting: UnsafeCell<usize>, // bags; whose has the gate
    entries: UnsafeCell<usize>, // in the bag
}

unsafe impl Sync for Gate {}
unsafe impl Send for Gate {}

impl Gate {
    /// loom takes sequentially consistent accesses for acquire and release, hence the fences.
    fn enter(&self) -> bool {
        self.gate.compare_exchange(0, 1, AcqRel, Acquire).is_ok()
    }

    /// Garbage::enter_or_tell().
    fn enter_or_tell(&self) -> bool {
        if self.enter() {
            return true;
        }
        if !self.rules.tells {
            return false;
        }
        self.events.fetch_add(1, AcqRel);
        fence(SeqCst);
        self.enter()
    }

    /// Garbage::collect(). A cookie is over when the reader is not inside.
    fn collect(&self) {
        while self.enter_or_tell() {
            let known = self.events.load(Acquire);
            self.waiting.with_mut(|waiting| unsafe {
                *waiting += self.next.swap(0, Acquire);
                fence(SeqCst); // of the grace period
                if *waiting == 1 && self.inside.load(Acquire) == 0 {
                    *waiting = 0;
                    self.entries.with_mut(|entries| *entries = 0);
                }
            });
            self.gate.store(0, Release);
            fence(SeqCst);
            if !self.rules.looks_again || self.events.load(Acquire) == known {
                return;
            }
        }
    }
}

/// A thread closes a bag and checks, while a reader leaves and checks. If the reader does not fence, neither may see what the other has
/// written: then a later guard finds that bags wait (Garbage::look_again).
pub fn gate(rules: Rules) {
    let gate = Arc::new(Gate {
        rules,
        inside: AtomicUsize::new(1),
        next: AtomicUsize::new(0),
        gate: AtomicUsize::new(0),
        events: AtomicUsize::new(0),
        waiting: UnsafeCell::new(0),
        entries: UnsafeCell::new(0),
    });
    let closer = gate.clone();
    let closes = thread::spawn(move || {
        closer.entries.with_mut(|entries| unsafe { *entries = 1 });
        closer.next.store(1, Release);
        closer.events.fetch_add(1, AcqRel);
        closer.collect();
    });
    gate.inside.store(0, Release);
    if rules.leave_fence {
        fence(SeqCst);
    }
    if gate.events.load(Relaxed) != 0 {
        crate::noted();
        gate.collect();
    }
    closes.join().unwrap();
    if rules.looks_later && gate.waiting.with(|waiting| unsafe { *waiting }) == 1 {
        gate.collect();
    }
    assert!(gate.next.load(Relaxed) == 0 && gate.waiting.with(|waiting| unsafe { *waiting }) == 0, "an entry is forgotten");
}

struct World {
    place: AtomicUsize, // 1: the object is linked
    owned: AtomicUsize,
    object: UnsafeCell<bool>, // freed?
}

unsafe impl Sync for World {}
unsafe impl Send for World {}

/// Collector::retire() of memory that needs no reclaimer, during the first owned guard.
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
