// SPDX-License-Identifier: MIT
//! A reader that is parked while it stays outside (src/core/gp/user/parking.c): its slot's word, its attention (1: parked), and
//! of its chunk's summary two bits: scans read it, and it was touched. One section with a thread
//! that unlinks, parks, drives and frees. Objects as in grace_period.rs.

use crate::machine::{Caller, Cpu, Place};
use loom::cell::UnsafeCell;
use loom::sync::atomic::{fence, AtomicUsize, Ordering::*};
use loom::sync::Arc;
use loom::thread;

#[derive(Clone, Copy)]
pub struct Rules {
    pub parked_before: bool, // no thread parks any more
    pub fenced: bool,        // the driver makes a fence only
    pub barrier: bool,       // the parker's
    pub wake_fence: bool,
    pub touch: bool,
    pub late_look: bool, // at the attention, after the word is published
    pub look_at_word: bool,
    pub asks: bool, // instead of parking and of the driver's barrier (at_once.c); two sections
    pub mark_behind_goal: bool,
    pub answer_acquired: bool,
}

pub const RULES: Rules = Rules {
    parked_before: false,
    fenced: false,
    barrier: true,
    wake_fence: true,
    touch: true,
    late_look: true,
    look_at_word: true,
    asks: false,
    mark_behind_goal: true,
    answer_acquired: true,
};

const AWAKE: usize = 1;
const TOUCHED: usize = 2;

struct World {
    rules: Rules,
    sequence: AtomicUsize,
    word: AtomicUsize,
    attention: AtomicUsize,
    bits: AtomicUsize,
    p: AtomicUsize,
    object: UnsafeCell<bool>, // freed?
}

unsafe impl Sync for World {}
unsafe impl Send for World {}

impl World {
    fn wake(&self) {
        let touched = if self.rules.touch { TOUCHED } else { 0 };
        if self.rules.wake_fence {
            self.bits.fetch_or(AWAKE | touched, SeqCst);
            fence(SeqCst);
        } else {
            self.bits.fetch_or(AWAKE | touched, Relaxed);
        }
        self.attention.swap(0, if self.rules.wake_fence { SeqCst } else { Relaxed });
    }

    fn section(&self, cpu: &mut Cpu) {
        let mut parked = 0;
        cpu.point();
        let sequence = self.sequence.load(Acquire);
        if !self.rules.late_look {
            parked = self.attention.load(Acquire);
        }
        cpu.point();
        self.word.store(sequence, Relaxed);
        cpu.point();
        if self.rules.late_look {
            parked = self.attention.load(Acquire);
        }
        if parked != 0 {
            self.wake();
        } else if self.rules.fenced {
            fence(SeqCst);
        }
        cpu.point();
        if self.p.load(Relaxed) != 0 {
            cpu.point();
            self.object.with(|freed| assert!(!unsafe { *freed }, "freed object in use"));
        }
        cpu.point();
        self.word.store(0, Release);
    }

    fn park(&self, membarrier: &mut Caller) {
        self.attention.swap(1, SeqCst);
        if self.rules.barrier {
            membarrier.fence();
        }
        if self.rules.look_at_word && self.word.load(Acquire) != 0 {
            return;
        }
        if self.attention.load(Acquire) != 0 {
            let _ = self.bits.compare_exchange(AWAKE, 0, SeqCst, Relaxed);
        }
    }

    fn free_unless(&self, word: usize, goal: usize) {
        if word == 0 || word >= goal {
            crate::noted();
            self.object.with_mut(|freed| unsafe { *freed = true });
        }
    }

    fn mark(&self) {
        self.attention.fetch_or(1, SeqCst);
    }

    /// As drive, but the reader is asked to fence. (In the mutant another thread's unlink is what the mark misses.)
    fn ask(&self) {
        let r = &self.rules;
        if !r.mark_behind_goal {
            self.mark();
        }
        self.p.store(0, Relaxed);
        fence(SeqCst);
        let goal = self.sequence.fetch_add(1, SeqCst) + 1;
        fence(SeqCst);
        if r.mark_behind_goal {
            self.mark();
        }
        thread::yield_now(); // it checks later
        if self.attention.load(if r.answer_acquired { Acquire } else { Relaxed }) == 0 {
            self.free_unless(if r.look_at_word { self.word.load(Acquire) } else { 0 }, goal);
        }
    }

    /// The object is unlinked; the grace period is the next one.
    fn drive(&self, membarrier: &mut Caller) {
        fence(SeqCst);
        let goal = self.sequence.fetch_add(1, SeqCst) + 1;
        if self.rules.fenced {
            fence(SeqCst);
        } else {
            membarrier.fence();
        }
        let word = if self.bits.load(Acquire) & AWAKE != 0 { self.word.load(Acquire) } else { 0 };
        self.free_unless(word, goal);
    }
}

pub const POINTS: usize = 6;

pub fn points(rules: &Rules) -> usize {
    POINTS * (1 + rules.asks as usize)
}

pub fn fences(rules: &Rules) -> usize {
    if rules.asks {
        return 0;
    }
    (rules.barrier && !rules.parked_before) as usize + !rules.fenced as usize
}

pub fn run(rules: Rules, plan: &[Place]) {
    if plan.len() == 2 && plan[0] > plan[1] {
        return; // one thread makes both, in this order
    }
    let world = Arc::new(World {
        rules,
        sequence: AtomicUsize::new(1),
        word: AtomicUsize::new(0),
        attention: AtomicUsize::new(rules.parked_before as usize),
        bits: AtomicUsize::new(if rules.parked_before { 0 } else { AWAKE }),
        p: AtomicUsize::new(1),
        object: UnsafeCell::new(false),
    });
    let (mut cpu, callers) = Cpu::new(plan, points(&rules));
    let mut callers = callers.into_iter();
    let reader = world.clone();
    let thread = thread::spawn(move || {
        reader.section(&mut cpu);
        if reader.rules.asks {
            reader.section(&mut cpu);
        }
        cpu.end();
    });
    if rules.asks {
        world.ask();
        thread.join().unwrap();
        return;
    }
    let mut parks = if rules.parked_before || !rules.barrier {
        Caller::none()
    } else {
        callers.next().unwrap()
    };
    let mut drives = callers.next().unwrap_or_else(Caller::none);
    if !rules.parked_before {
        world.park(&mut parks);
    }
    world.p.store(0, Relaxed);
    world.drive(&mut drives);
    parks.finish();
    drives.finish();
    thread.join().unwrap();
}
