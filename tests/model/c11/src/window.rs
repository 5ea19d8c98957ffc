// SPDX-License-Identifier: MIT
//! Windows (src/core/pages/window.c, docs/adr/0050): inlined code recognizes an object by two words
//! that it reads without order, or by the page map.
//!
//! Places of the window are PLACE, PLACE + 1, ... Of a place with a slab the page map has an entry.

use crate::machine::Place;
use loom::sync::atomic::{AtomicUsize, Ordering, Ordering::*};
use loom::sync::Arc;
use loom::thread;

#[derive(Clone, Copy)]
pub struct Rules {
    /// How a thread loads the address of an object that another has published. C11 has no order for addresses that depend on a
    /// loaded one, so Acquire stands for this order here.
    pub found: Ordering,
    pub published: Ordering,
    pub shown: Ordering,    // store of the extent
    pub hidden_late: bool,  // after the slab is said to be gone
    pub base_twice: bool,   // the window of a cache moves
}

pub const RULES: Rules =
    Rules { found: Acquire, published: Release, shown: Relaxed, hidden_late: false, base_twice: false };

const NOWHERE: usize = 1 << 63;
const PLACE: usize = 10;
const ELSEWHERE: usize = 40; // a slab outside

struct World {
    rules: Rules,
    base: AtomicUsize,
    extent: AtomicUsize,
    map: [AtomicUsize; 2], // of the first two places
    outside: AtomicUsize,  // of the slab outside
    link: AtomicUsize,     // an object's address; 0: none
}

impl World {
    fn new(rules: Rules, places: usize) -> Arc<World> {
        Arc::new(World {
            rules,
            base: AtomicUsize::new(if places > 0 { PLACE } else { NOWHERE }),
            extent: AtomicUsize::new(places),
            map: [AtomicUsize::new((places > 0) as usize), AtomicUsize::new((places > 1) as usize)],
            outside: AtomicUsize::new(0),
            link: AtomicUsize::new(0),
        })
    }

    /// prudence_inline_is_of()
    fn is_of(&self, address: usize) -> bool {
        let base = self.base.load(Relaxed);
        if address.wrapping_sub(base) < self.extent.load(Relaxed) {
            return true;
        }
        match address {
            PLACE => self.map[0].load(Relaxed) != 0,
            a if a == PLACE + 1 => self.map[1].load(Relaxed) != 0,
            ELSEWHERE => self.outside.load(Relaxed) != 0,
            _ => false,
        }
    }

    fn show(&self, base: usize, extent: usize) {
        self.base.store(base, Relaxed);
        self.extent.store(extent, self.rules.shown);
    }

    fn reader(world: &Arc<World>, dead: usize) -> thread::JoinHandle<()> {
        let world = world.clone();
        thread::spawn(move || {
            let object = world.link.load(world.rules.found);
            if object == dead {
                crate::noted();
                assert!(!world.is_of(object), "a dead object is taken for a live one");
            } else if object != 0 {
                crate::noted();
                assert!(world.is_of(object), "a live object is not found");
            }
            assert!(!world.is_of(PLACE + 2), "a place without a slab is taken for one");
        })
    }
}

const NOBODY: usize = usize::MAX;

/// A cache gets its window and two slabs in it. The object of one of them is published.
pub fn grown(rules: Rules, _plan: &[Place]) {
    let world = World::new(rules, 0);
    let reader = World::reader(&world, NOBODY);
    if rules.base_twice {
        world.show(PLACE - 5, 3);
        world.show(PLACE - 5, 0);
    }
    for place in 0..2 {
        world.map[place].store(1, Release);
        world.show(PLACE, place + 1);
    }
    world.link.store(PLACE + 1, rules.published);
    reader.join().unwrap();
}

/// The window is shown while an object of a slab outside is published.
pub fn outside(rules: Rules, _plan: &[Place]) {
    let world = World::new(rules, 0);
    let reader = World::reader(&world, NOBODY);
    world.outside.store(1, Release);
    world.map[0].store(1, Release);
    world.show(PLACE, 1);
    world.link.store(ELSEWHERE, rules.published);
    reader.join().unwrap();
}

/// The second slab goes and comes, while an object of the first is published.
pub fn regrown(rules: Rules, _plan: &[Place]) {
    let world = World::new(rules, 2);
    let reader = World::reader(&world, NOBODY);
    world.show(PLACE, 1);
    world.map[1].store(0, Release);
    world.link.store(PLACE, rules.published);
    world.map[1].store(1, Release);
    world.show(PLACE, 2);
    reader.join().unwrap();
}

/// The second slab has gone, and a thread that knows it frees an object there once more.
pub fn gone(rules: Rules, _plan: &[Place]) {
    let world = World::new(rules, 2);
    let reader = World::reader(&world, PLACE + 1);
    if !rules.hidden_late {
        world.show(PLACE, 1);
    }
    world.map[1].store(0, Release);
    world.link.store(PLACE + 1, rules.published);
    if rules.hidden_late {
        world.show(PLACE, 1);
    }
    reader.join().unwrap();
}
