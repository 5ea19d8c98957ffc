// SPDX-License-Identifier: MIT
//! The grace period protocol of src/core/gp/user/drive.c, mode.c and <prudence/rcu.h>, order by order.
//!
//! `p` is 1 while the object can be found, `cookie` 0 until it has one. The object is a cell whose
//! every access loom checks: a reader's check that is not ordered before the free is a race, and a
//! check after it finds a freed object.
//!
//! C11 gives less than the processors do in one pattern: a thread fences and then reads an old value;
//! that it did is not ordered before the work of a reader that acquires the next value, from a
//! third thread. Where a store reaches all others at once (x86-64, aarch64) it is. It happens
//! twice: a closer reads the sequence, a driver the mode. `Reads::Plain` is the program as C11 has
//! it; `Reads::AtOnce` reads by a read-modify-write, which is what such a machine makes of fence
//! and load: no newer value is there at the moment of the read (and writes that value by one: it
//! comes after the read).

use crate::machine::{Caller, Cpu, Place};
use loom::cell::UnsafeCell;
use loom::sync::atomic::{fence, AtomicUsize, Ordering, Ordering::*};
use loom::sync::Arc;
use loom::thread;

#[derive(Clone, Copy, PartialEq)]
pub enum Reads {
    Plain,
    AtOnce,
}

/// What the protocol does; a mutant changes one line of it.
#[derive(Clone, Copy)]
pub struct Rules {
    pub reads: Reads,
    pub cookie_steps: usize,       // 1: the next grace period to start
    pub cookie_early: bool,        // before the object is unlinked and detached
    pub close_fence: bool,
    pub sequence: Ordering,        // of the reader's load
    pub mode: Ordering,            // likewise
    pub mode_before_publish: bool,
    pub exit: Ordering,
    pub barrier: bool,
    pub goal_after_barrier: bool,
    pub goal_old: bool,            // the goal was read before the grace period was started
    pub mode_before_goal: bool,
    pub note_early: bool,          // a barrier, for other drivers, before it was made
    pub switch_barrier: bool,
    pub scan: Ordering,
    pub scan_ignored: bool,
    pub complete: Ordering,
    pub poll: Ordering,
    pub poll_slack: usize,
    pub register_fence: bool,
    pub slots_before_goal: bool,
    pub slots_ignored: bool,
    pub repin: Ordering,           // of the store that moves a pin
    pub repin_sequence: Ordering,  // of the load before
    pub repin_by_zero: bool,
    pub repin_ahead: usize,
    pub repin_keeps: bool,         // a pointer that was loaded before
}

pub const RULES: Rules = Rules {
    reads: Reads::AtOnce,
    cookie_steps: 1,
    cookie_early: false,
    close_fence: true,
    sequence: Acquire,
    mode: Acquire,
    mode_before_publish: false,
    exit: Release,
    barrier: true,
    goal_after_barrier: false,
    goal_old: false,
    mode_before_goal: false,
    note_early: false,
    switch_barrier: true,
    scan: Acquire,
    scan_ignored: false,
    complete: SeqCst,
    poll: Acquire,
    poll_slack: 0,
    register_fence: true,
    slots_before_goal: false,
    slots_ignored: false,
    repin: Release,
    repin_sequence: Acquire,
    repin_by_zero: false,
    repin_ahead: 0,
    repin_keeps: false,
};

/// Who takes part.
#[derive(Clone, Copy)]
pub struct Cast {
    pub sections: usize,
    pub fenced: bool,     // the mode at the start
    pub closer: bool,     // a thread of its own; else driver A closes first
    pub drivers: usize,   // A, B: each makes at most one barrier
    pub flip: Flip,       // to fenced: by driver A, before it drives; to free: by another thread
    pub starter: bool,    // which, in the end, starts a grace period
    pub at_once: bool,    // A drives by gp_try, with a reader that registers first
    pub repins: bool,     // a section moves to the newest epoch, and reads again
}

#[derive(Clone, Copy, PartialEq)]
pub enum Flip {
    None,
    ToFenced,
    ToFree,
}

/// The programs of a cast skip words that only one thread touches, or that no thread changes.
struct World {
    rules: Rules,
    two_drivers: bool,
    modes: bool,
    repins: bool,
    fenced_for_good: usize,
    sequence: AtomicUsize,
    completed: AtomicUsize,
    barrier_goal: AtomicUsize,
    word: AtomicUsize,
    claimed: AtomicUsize, // the reader's slot
    fenced: AtomicUsize,
    fence_themselves: AtomicUsize,
    p: AtomicUsize,
    cookie: AtomicUsize,
    reclaimed: AtomicUsize,
    object: UnsafeCell<bool>, // freed?
}

unsafe impl Sync for World {}
unsafe impl Send for World {}

impl World {
    fn section(&self, cpu: &mut Cpu) {
        let r = &self.rules;
        let mut fenced = self.fenced_for_good;
        if self.modes && r.mode_before_publish {
            cpu.point();
            fenced = self.fenced.load(r.mode);
        }
        cpu.point();
        let sequence = self.sequence.load(r.sequence);
        cpu.point();
        // A swap stands for the library's store. In C11 a store by the same thread continues the release
        // sequence of the end of the section before, and so it does on Arm ([L]; lws). loom knows C++20,
        // where only an update does.
        self.word.swap(sequence, Relaxed);
        if self.modes && !r.mode_before_publish {
            cpu.point();
            fenced = self.fenced.load(r.mode);
        }
        if fenced != 0 {
            fence(SeqCst);
        }
        cpu.point();
        let found = self.p.load(Relaxed) != 0;
        if found {
            cpu.point();
            self.use_object();
        }
        if self.repins {
            self.repin(cpu, sequence, found);
        }
        cpu.point();
        self.word.store(0, r.exit);
    }

    fn use_object(&self) {
        self.object.with(|freed| assert!(!unsafe { *freed }, "freed object in use"));
    }

    /// prudence_epoch_repin(), and another check. No fence, and no load of the mode.
    fn repin(&self, cpu: &mut Cpu, before: usize, found: bool) {
        let r = &self.rules;
        cpu.point();
        let newest = self.sequence.load(r.repin_sequence);
        if newest != before {
            cpu.point();
            if r.repin_by_zero {
                self.word.store(0, Release);
            }
            self.word.store(newest + r.repin_ahead, r.repin);
        }
        cpu.point();
        if if r.repin_keeps { found } else { self.p.load(Relaxed) != 0 } {
            cpu.point();
            self.use_object();
        }
    }

    fn read_behind_fence(&self, value: &AtomicUsize, order: Ordering) -> usize {
        match self.rules.reads {
            Reads::Plain => value.load(order),
            Reads::AtOnce => value.fetch_add(0, AcqRel),
        }
    }

    fn read_cookie(&self) -> usize {
        self.read_behind_fence(&self.sequence, Relaxed) + self.rules.cookie_steps
    }

    /// Unlink (and with it: push, detach), fence, cookie.
    fn close(&self) {
        let early = self.rules.cookie_early.then(|| {
            fence(SeqCst);
            self.read_cookie()
        });
        self.p.store(0, Relaxed);
        if self.rules.close_fence {
            fence(SeqCst);
        }
        let cookie = early.unwrap_or_else(|| self.read_cookie());
        self.cookie.store(cookie, Release);
    }

    fn barrier(&self, goal: usize, fenced: usize, membarrier: &mut Caller) {
        let r = &self.rules;
        if !r.barrier || (self.two_drivers && self.barrier_goal.load(Acquire) >= goal) {
            return;
        }
        if fenced != 0 {
            fence(SeqCst);
            return;
        }
        if r.note_early {
            self.barrier_goal.fetch_max(goal, SeqCst);
        }
        membarrier.fence();
        if self.two_drivers && !r.note_early {
            self.barrier_goal.fetch_max(goal, SeqCst);
        }
    }

    fn drivers_mode(&self) -> usize {
        if self.modes {
            self.read_behind_fence(&self.fence_themselves, Acquire)
        } else {
            self.fenced_for_good
        }
    }

    /// gp_request of a thread that wants a later grace period than has started.
    fn start(&self) -> usize {
        self.sequence.fetch_add(1, SeqCst)
    }

    fn drive(&self, membarrier: &mut Caller) {
        let r = &self.rules;
        let old = self.start();
        let mut fenced = if r.mode_before_goal { self.drivers_mode() } else { 0 };
        let mut goal = if r.goal_old { old } else { self.sequence.load(Acquire) };
        if !r.mode_before_goal {
            fenced = self.drivers_mode();
        }
        self.barrier(goal, fenced, membarrier);
        if r.goal_after_barrier {
            goal = self.sequence.load(Acquire);
        }
        let word = self.word.load(r.scan);
        let held = word != 0 && word < goal && !r.scan_ignored;
        let mut completed = if held { word } else { goal };
        if self.two_drivers {
            self.completed.fetch_max(completed, r.complete);
            completed = self.completed.load(r.poll);
        }
        self.reclaim(completed);
    }

    fn register(&self) {
        self.claimed.swap(1, SeqCst);
        if self.rules.register_fence {
            fence(SeqCst);
        }
    }

    /// gp_try: without a membarrier, if no thread is registered.
    fn drive_at_once(&self) {
        let r = &self.rules;
        self.start();
        let look = || self.claimed.load(Acquire) != 0 && !r.slots_ignored;
        let early = r.slots_before_goal && look();
        let goal = self.sequence.load(Acquire);
        fence(SeqCst);
        if early || (!r.slots_before_goal && look()) {
            return;
        }
        self.reclaim(goal);
    }

    /// Polls; the thread that finds it over frees the object, once.
    fn reclaim(&self, completed: usize) {
        let cookie = self.cookie.load(Acquire);
        if cookie == 0 || completed + self.rules.poll_slack < cookie {
            return;
        }
        if !self.two_drivers || self.reclaimed.swap(1, AcqRel) == 0 {
            crate::noted();
            self.object.with_mut(|freed| unsafe { *freed = true });
        }
    }

    /// Membarriers of switches are drivers', too.
    fn flip(&self, flip: Flip, membarrier: &mut Caller) {
        match flip {
            Flip::None => {}
            Flip::ToFenced => {
                self.fenced.store(1, Release);
                if self.rules.switch_barrier {
                    membarrier.fence();
                }
                self.fence_themselves.store(1, Release);
            }
            Flip::ToFree => {
                match self.rules.reads {
                    Reads::Plain => self.fence_themselves.store(0, Release),
                    Reads::AtOnce => drop(self.fence_themselves.swap(0, AcqRel)),
                }
                self.fenced.store(0, Release);
            }
        }
    }
}

/// Points that a section passes, and a pin that moves.
const POINTS: usize = 6;
const REPIN_POINTS: usize = 4;

fn points(cast: &Cast) -> usize {
    POINTS * cast.sections + REPIN_POINTS * cast.repins as usize
}

/// Remote fences that the reader may see, and points of its program.
pub fn shape(rules: &Rules, cast: &Cast) -> (usize, usize) {
    let switches = (cast.flip == Flip::ToFenced && rules.switch_barrier) as usize;
    let always_fenced = cast.fenced && cast.flip == Flip::None;
    let barriers = if rules.barrier && !always_fenced && !cast.at_once { cast.drivers } else { 0 };
    (switches + barriers, points(cast))
}

pub fn run(rules: Rules, cast: Cast, plan: &[Place]) {
    if cast.flip == Flip::ToFenced && plan.len() == 2 && plan[0] > plan[1] {
        return; // one thread makes both, in this order
    }
    let world = Arc::new(World {
        rules,
        two_drivers: cast.drivers > 1,
        modes: cast.flip != Flip::None,
        repins: cast.repins,
        fenced_for_good: cast.fenced as usize,
        sequence: AtomicUsize::new(1),
        completed: AtomicUsize::new(1),
        barrier_goal: AtomicUsize::new(1),
        word: AtomicUsize::new(0),
        claimed: AtomicUsize::new(0),
        fenced: AtomicUsize::new(cast.fenced as usize),
        fence_themselves: AtomicUsize::new(cast.fenced as usize),
        p: AtomicUsize::new(1),
        cookie: AtomicUsize::new(0),
        reclaimed: AtomicUsize::new(0),
        object: UnsafeCell::new(false),
    });
    let (mut cpu, mut callers) = Cpu::new(plan, points(&cast));
    let mut next = || callers.pop().unwrap_or_else(Caller::none);
    let (mut a, mut b, mut switching) = (next(), next(), next());
    if cast.drivers == 1 {
        std::mem::swap(&mut b, &mut switching);
    }
    let mut threads = Vec::new();

    let reader = world.clone();
    threads.push(thread::spawn(move || {
        if cast.at_once {
            reader.register();
        }
        for _ in 0..cast.sections {
            reader.section(&mut cpu);
        }
        cpu.end();
    }));
    if cast.closer {
        let closer = world.clone();
        threads.push(thread::spawn(move || closer.close()));
    }
    if cast.drivers > 1 || cast.starter || cast.flip == Flip::ToFree {
        let other = world.clone();
        threads.push(thread::spawn(move || {
            if cast.flip == Flip::ToFree {
                other.flip(Flip::ToFree, &mut Caller::none());
            }
            if cast.starter {
                other.start();
            }
            if cast.drivers > 1 {
                other.drive(&mut b);
            }
            b.finish();
        }));
    } else {
        b.finish();
    }
    if !cast.closer {
        world.close();
    }
    if cast.flip == Flip::ToFenced {
        world.flip(cast.flip, &mut switching);
    }
    if cast.at_once {
        world.drive_at_once();
    } else {
        world.drive(&mut a);
    }
    a.finish();
    switching.finish();
    for thread in threads {
        thread.join().unwrap();
    }
}
