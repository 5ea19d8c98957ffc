// SPDX-License-Identifier: MIT
//! Lines without sequences (src/core/os/posix/bias.c): a thread that holds a number steps into its line by a store in its own
//! record and no fence; another claims the line's owner word by compare-and-swap and then checks who holds the number.
//!
//! loom knows sequential consistency of fences only, so the claim and the check that follows (both SeqCst in the source) have a
//! fence between them here. On AArch64 they are casal (or ldaxr, stlxr) and ldar, which are performed in this order, too.

use crate::machine::{Caller, Cpu, Place};
use loom::cell::UnsafeCell;
use loom::sync::atomic::{fence, AtomicUsize, Ordering, Ordering::*};
use loom::sync::Arc;
use loom::thread;

#[derive(Clone, Copy)]
pub struct Rules {
    pub begin_fence: bool, // after a thread became the holder, before it checks whether the line is claimed
    pub claim_fence: bool, // between the claim and the check of the number
    pub barrier: bool,     // membarrier
    pub owner_test: Ordering,
    pub leave: Ordering,
    pub look: Ordering, // at the holder's record
    pub release: Ordering,
}

pub const RULES: Rules = Rules {
    begin_fence: true,
    claim_fence: true,
    barrier: true,
    owner_test: Acquire,
    leave: Release,
    look: Acquire,
    release: Release,
};

pub const POINTS: usize = 4;

const SHARED: usize = 1;
const CHANGING: usize = 2;
const FIRST: usize = 3; // a thread's record
const SECOND: usize = 4;

struct World {
    rules: Rules,
    number: AtomicUsize,
    inside: [AtomicUsize; 2], // of FIRST and SECOND
    owner: AtomicUsize,
    line: UnsafeCell<usize>,
}

unsafe impl Sync for World {}
unsafe impl Send for World {}

impl World {
    fn new(rules: Rules, number: usize) -> Arc<World> {
        Arc::new(World {
            rules,
            number: AtomicUsize::new(number),
            inside: [AtomicUsize::new(0), AtomicUsize::new(0)],
            owner: AtomicUsize::new(0),
            line: UnsafeCell::new(0),
        })
    }

    fn work(&self) {
        self.line.with_mut(|uses| unsafe { *uses += 1 });
    }

    /// bias_begin(): the number is CHANGING.
    fn begin(&self, me: usize) {
        self.number.store(me, Release);
        if self.rules.begin_fence {
            fence(SeqCst);
        }
    }

    /// Returns whether the thread was in the line.
    fn step_in(&self, me: usize, mut point: impl FnMut()) -> bool {
        let inside = &self.inside[me - FIRST];
        point();
        inside.store(1, Relaxed);
        point();
        let holds = self.number.load(Relaxed) == me;
        point();
        let enters = holds && self.owner.load(self.rules.owner_test) == 0;
        if enters {
            self.work();
        }
        point();
        inside.store(0, self.rules.leave);
        enters
    }

    fn is_out(&self, me: usize) -> bool {
        self.inside[me - FIRST].load(self.rules.look) == 0
    }

    /// os_percpu_claim(), then bias_is_out(). Before FIRST no thread held the number.
    fn claim(&self, membarrier: &mut Caller) {
        if self.owner.compare_exchange(0, 9, SeqCst, Acquire).is_err() {
            return;
        }
        if self.rules.claim_fence {
            fence(SeqCst);
        }
        let out = match self.number.load(Acquire) {
            CHANGING => false,
            SHARED => true,
            holder => {
                if self.rules.barrier {
                    membarrier.fence();
                }
                self.is_out(holder)
            }
        };
        if out {
            self.work();
            crate::noted();
        }
        self.owner.store(0, self.rules.release);
    }
}

/// The number was shared. A thread becomes the holder and steps in, while another one claims the
/// line.
pub fn begins(rules: Rules, plan: &[Place]) {
    let world = World::new(rules, SHARED);
    let (mut cpu, mut callers) = Cpu::new(plan, POINTS);
    let mut membarrier = callers.pop().unwrap_or_else(Caller::none);
    let holder = world.clone();
    let first = thread::spawn(move || {
        if holder.number.compare_exchange(SHARED, CHANGING, SeqCst, Acquire).is_ok() {
            holder.begin(FIRST);
            holder.step_in(FIRST, || {
                cpu.point();
            });
        }
        cpu.end();
    });
    world.claim(&mut membarrier);
    membarrier.finish();
    first.join().unwrap();
}

/// The holder steps in while a thread claims the line.
pub fn held(rules: Rules, plan: &[Place]) {
    let world = World::new(rules, FIRST);
    let (mut cpu, mut callers) = Cpu::new(plan, POINTS);
    let mut membarrier = callers.pop().unwrap_or_else(Caller::none);
    let holder = world.clone();
    let first = thread::spawn(move || {
        holder.step_in(FIRST, || {
            cpu.point();
        });
        cpu.end();
    });
    world.claim(&mut membarrier);
    membarrier.finish();
    first.join().unwrap();
}

/// The holder steps in while a thread takes the number, and steps in if the holder was not inside.
pub fn taken(rules: Rules, plan: &[Place]) {
    let world = World::new(rules, FIRST);
    let (mut cpu, mut callers) = Cpu::new(plan, POINTS);
    let mut membarrier = callers.pop().unwrap_or_else(Caller::none);
    let holder = world.clone();
    let first = thread::spawn(move || {
        holder.step_in(FIRST, || {
            cpu.point();
        });
        cpu.end();
    });
    world.number.compare_exchange(FIRST, CHANGING, SeqCst, Acquire).unwrap();
    if rules.barrier {
        membarrier.fence();
    }
    if world.is_out(FIRST) {
        world.begin(SECOND);
        if world.step_in(SECOND, || ()) {
            crate::noted();
        }
    }
    membarrier.finish();
    first.join().unwrap();
}
