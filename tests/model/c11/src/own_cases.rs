// SPDX-License-Identifier: MIT
// A module has these with one text of the crate (build.rs).

use garbage::{Entry, Garbage};
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use loom::sync::Arc;

struct World {
    garbage: Garbage,
    called: AtomicUsize, // entries
}

unsafe impl Sync for World {}
unsafe impl Send for World {}

impl World {
    fn new(limit: usize) -> Arc<World> {
        Arc::new(World { garbage: Garbage::new(limit, usize::MAX), called: AtomicUsize::new(0) })
    }

    /// Adds an entry, which finds what this thread wrote before.
    fn add(&self, object: &Arc<UnsafeCell<bool>>) {
        let (object, called) = (object.clone(), &self.called as *const AtomicUsize as usize);
        object.with_mut(|unlinked| unsafe { *unlinked = true });
        let entry = move |_: &Garbage| {
            object.with_mut(|unlinked| unsafe { assert!(std::mem::take(&mut *unlinked), "handed out twice") });
            unsafe { &*(called as *const AtomicUsize) }.fetch_add(1, Relaxed);
        };
        unsafe { self.garbage.add(Entry::new(entry)) }
    }

    fn ends(&self, entries: usize) {
        assert!(self.called.load(Relaxed) == entries, "an entry is forgotten");
        assert!(self.garbage.pending() == 0, "an entry is forgotten");
    }
}

fn object() -> Arc<UnsafeCell<bool>> {
    Arc::new(UnsafeCell::new(false))
}

/// Two threads add to a lane, and a third closes it and calls what was there. The bags have room for more.
pub fn lane() {
    let world = World::new(4);
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let world = world.clone();
            loom::thread::spawn(move || world.add(&object()))
        })
        .collect();
    world.garbage.close_all();
    world.garbage.collect_outside();
    if world.called.load(Relaxed) != 0 {
        crate::noted();
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    unsafe { world.garbage.call_all() };
    world.ends(2);
}

/// A thread adds an entry that fills its bag, and a reader looks when it leaves. One of the two calls it.
pub fn gate() {
    let world = World::new(1);
    let adder = world.clone();
    crate::own::thread::pin();
    let seen = world.garbage.events();
    let adds = loom::thread::spawn(move || adder.add(&object()));
    crate::own::thread::unpin();
    if world.garbage.events() != seen {
        crate::noted();
    }
    world.garbage.look(seen);
    adds.join().unwrap();
    world.ends(1);
}

/// The same without a fence where the reader leaves. Neither may see the other: then a later guard calls it.
pub fn later() {
    let world = World::new(1);
    let adder = world.clone();
    crate::own::thread::pin();
    let seen = world.garbage.events();
    let adds = loom::thread::spawn(move || adder.add(&object()));
    crate::own::thread::unpin_without_fence();
    world.garbage.look(seen);
    adds.join().unwrap();
    if world.called.load(Relaxed) == 0 {
        crate::noted();
    }
    crate::own::thread::pin();
    let seen = world.garbage.events();
    crate::own::thread::unpin_without_fence();
    world.garbage.look(seen);
    world.ends(1);
}

/// A thread adds to the lane while another, which has added before, waits until its entry is called.
pub fn barrier() {
    crate::own::thread::COUNTED.store(true, Relaxed);
    let world = World::new(4);
    world.add(&object());
    let adder = world.clone();
    let adds = loom::thread::spawn(move || adder.add(&object()));
    assert!(world.garbage.finish(None).is_ok());
    match world.called.load(Relaxed) {
        0 => panic!("an entry is forgotten"),
        1 => (),
        _ => crate::noted(),
    }
    adds.join().unwrap();
    unsafe { world.garbage.call_all() };
    world.ends(2);
}
