// SPDX-License-Identifier: MIT
//! Hazard pointers (src/core/gp/user/hazard*.c, <prudence/hazard.h>): a reader names the object and reads its link again; a
//! thread that was given the object after its unlink makes a barrier, reads the name, and frees what no hazard pointer names.
//! The object is a cell, as in grace_period.rs. The name: 1 is the object, 0 nothing.

use crate::machine::{Caller, Cpu, Place};
use loom::cell::UnsafeCell;
use loom::sync::atomic::{fence, AtomicUsize, Ordering, Ordering::*};
use loom::sync::Arc;
use loom::thread;

#[derive(Clone, Copy)]
pub struct Rules {
    pub fenced: bool,         // readers fence, and the thread that checks only fences
    pub reader_fence: bool,   // where readers do
    pub look_again: bool,     // at the link, after the name was written
    pub named_late: bool,     // the name is written after the last check of the link
    pub barrier: bool,        // before the check of names
    pub names_first: bool,    // the check of names comes before the barrier
    pub unlinked_late: bool,  // the object is retired before it is unlinked
    pub reset: Ordering,      // of the store that ends a protection
    pub look: Ordering,       // at names
    pub handed_over: bool,    // a second slot takes the protection over from the first
    pub upwards: bool,        // the first slot is read before the second, as in a row
    pub hand_over: Ordering,  // of the store to the first slot after that to the second
    pub from_section: bool,   // the object is found in a section, which ends after the name is written
    pub leaves_first: bool,   // or before
    pub sections_last: bool,  // names are read before sections
}

pub const RULES: Rules = Rules {
    fenced: false,
    reader_fence: true,
    look_again: true,
    named_late: false,
    barrier: true,
    names_first: false,
    unlinked_late: false,
    reset: Release,
    look: Acquire,
    handed_over: false,
    upwards: true,
    hand_over: Release,
    from_section: false,
    leaves_first: false,
    sections_last: false,
};

/// Points that the reader passes.
pub const POINTS: usize = 8;

pub fn fences(rules: &Rules) -> usize {
    (rules.barrier && !rules.fenced) as usize
}

struct World {
    rules: Rules,
    link: AtomicUsize,
    names: [AtomicUsize; 2],
    inside: AtomicUsize, // a section, for `from_section`
    retired: AtomicUsize,
    object: UnsafeCell<bool>, // freed?
}

unsafe impl Sync for World {}
unsafe impl Send for World {}

impl World {
    fn use_object(&self) {
        self.object.with(|freed| assert!(!unsafe { *freed }, "freed object in use"));
    }

    fn name(&self, slot: usize) {
        self.names[slot].store(1, Release);
        if self.rules.fenced && self.rules.reader_fence {
            fence(SeqCst);
        }
    }

    /// prudence_hazard_protect(), a use, and prudence_hazard_reset().
    fn protect(&self, cpu: &mut Cpu) {
        cpu.point();
        if self.link.load(Relaxed) == 0 {
            return;
        }
        cpu.point();
        if !self.rules.named_late {
            self.name(0);
        }
        cpu.point();
        let linked = !self.rules.look_again || self.link.load(Acquire) == 1;
        cpu.point();
        if self.rules.named_late {
            self.name(0);
        }
        if linked {
            self.use_named(cpu);
        }
        cpu.point();
        self.names[0].store(0, self.rules.reset);
    }

    fn use_named(&self, cpu: &mut Cpu) {
        cpu.point();
        if self.rules.handed_over {
            self.name(1);
            cpu.point();
            self.names[0].store(0, self.rules.hand_over);
        }
        self.use_object();
        if self.rules.handed_over {
            cpu.point();
            self.names[1].store(0, Release);
        }
    }

    /// A reader that was asked to name what it uses, and then leaves its section (src/toolkit/domains/set.c).
    fn move_over(&self, cpu: &mut Cpu) {
        cpu.point();
        self.inside.store(1, Relaxed);
        if self.rules.fenced {
            fence(SeqCst);
        }
        cpu.point();
        if self.link.load(Acquire) == 1 {
            self.use_object();
            cpu.point();
            if self.rules.leaves_first {
                self.inside.store(0, Release);
                cpu.point();
            }
            self.names[0].store(1, Release);
            cpu.point();
            self.inside.store(0, Release);
            cpu.point();
            self.use_object();
        }
        cpu.point();
        self.inside.store(0, Release);
        self.names[0].store(0, Release);
    }

    /// The writer. Another thread may search for the object's name.
    fn retire(&self) {
        if self.rules.unlinked_late {
            self.retired.store(1, Release);
        }
        self.link.store(0, Relaxed);
        self.retired.store(1, Release);
    }

    fn barrier(&self, membarrier: &mut Caller) {
        if self.rules.barrier {
            fence(SeqCst);
            if !self.rules.fenced {
                membarrier.fence();
            }
        }
    }

    fn is_named(&self) -> bool {
        let named = |name: &AtomicUsize| name.load(self.rules.look) == 1;
        if self.rules.upwards { self.names.iter().any(named) } else { self.names.iter().rev().any(named) }
    }

    /// hazard_barrier(), then a check of each slot; in a set, sections come first.
    fn reclaim(&self, membarrier: &mut Caller) {
        if self.retired.load(Acquire) == 0 {
            return;
        }
        let r = &self.rules;
        let early = r.names_first && self.is_named();
        self.barrier(membarrier);
        let named_first = r.sections_last && self.is_named();
        if r.from_section && self.inside.load(Acquire) != 0 {
            return;
        }
        let named = if r.names_first || r.sections_last { early || named_first } else { self.is_named() };
        if !named {
            crate::noted();
            self.object.with_mut(|freed| unsafe { *freed = true });
        }
    }
}

/// One reader, the writer, and a thread that searches for names.
pub fn run(rules: Rules, plan: &[Place]) {
    let world = Arc::new(World {
        rules,
        link: AtomicUsize::new(1),
        names: [AtomicUsize::new(0), AtomicUsize::new(0)],
        inside: AtomicUsize::new(0),
        retired: AtomicUsize::new(0),
        object: UnsafeCell::new(false),
    });
    let (mut cpu, mut callers) = Cpu::new(plan, POINTS);
    let mut membarrier = callers.pop().unwrap_or_else(Caller::none);
    let (reader, writer) = (world.clone(), world.clone());
    let reads = thread::spawn(move || {
        if reader.rules.from_section {
            reader.move_over(&mut cpu);
        } else {
            reader.protect(&mut cpu);
        }
        cpu.end();
    });
    let writes = thread::spawn(move || writer.retire());
    world.reclaim(&mut membarrier);
    membarrier.finish();
    reads.join().unwrap();
    writes.join().unwrap();
}
