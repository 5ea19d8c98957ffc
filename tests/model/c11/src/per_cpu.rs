// SPDX-License-Identifier: MIT
//! Per-CPU caches (src/core/os/posix/os_percpu.h, src/core/slab/latent_cache.c): restartable fast paths, their
//! owners, and the close of a batch by another CPU.
//!
//! A fast path is a section of single operations with a point before each; interrupted, it starts
//! again (the kernel aborts it). It commits with a plain store. An object is a cell: its holder
//! writes it, so two holders are a race for loom, whatever order they come in.

use crate::machine::{Caller, Cpu, Place};
use loom::cell::UnsafeCell;
use loom::sync::atomic::{fence, AtomicUsize, Ordering, Ordering::*};
use loom::sync::Arc;
use loom::thread;

#[derive(Clone, Copy)]
pub struct Rules {
    pub owner_test: Ordering, // of fast paths
    pub looks_at_owner: bool,
    pub claim: Ordering,
    pub fence: bool, // membarrier RSEQ between claim and confirm
    pub confirms: bool,
    pub release: Ordering,
    pub cookie_early: bool, // of a remote close: before the CPU is owned
    pub cookie_fence: bool,
}

pub const RULES: Rules = Rules {
    owner_test: Acquire,
    looks_at_owner: true,
    claim: SeqCst,
    fence: true,
    confirms: true,
    release: Release,
    cookie_early: false,
    cookie_fence: true,
};

struct Line {
    rules: Rules,
    owner: AtomicUsize,
    count: AtomicUsize,
    slot: [AtomicUsize; 2], // object numbers; written before the count says so
    object: [UnsafeCell<usize>; 3],
}

unsafe impl Sync for Line {}
unsafe impl Send for Line {}

enum Tried<T> {
    Done(T),
    Owned,
    Again,
}

/// The operations of a section: each after a point, at which it may be aborted.
macro_rules! step {
    ($cpu:expr, $operation:expr) => {{
        if $cpu.point() {
            return Tried::Again;
        }
        $operation
    }};
}

impl Line {
    fn new(rules: Rules, objects: usize) -> Line {
        Line {
            rules,
            owner: AtomicUsize::new(0),
            count: AtomicUsize::new(objects),
            slot: [AtomicUsize::new(0), AtomicUsize::new(1)],
            object: [UnsafeCell::new(0), UnsafeCell::new(0), UnsafeCell::new(0)],
        }
    }

    fn use_object(&self, object: usize) {
        self.object[object].with_mut(|uses| unsafe {
            *uses += 1;
            assert!(*uses == 1, "object handed out twice");
        });
    }

    fn owned(&self) -> bool {
        self.rules.looks_at_owner && self.owner.load(self.rules.owner_test) != 0
    }

    fn try_pop(&self, cpu: &mut Cpu) -> Tried<Option<usize>> {
        if step!(cpu, self.owned()) {
            return Tried::Owned;
        }
        let count = step!(cpu, self.count.load(Relaxed));
        if count == 0 {
            return Tried::Done(None);
        }
        let object = step!(cpu, self.slot[count - 1].load(Relaxed));
        step!(cpu, self.count.store(count - 1, Relaxed)); // the commit
        Tried::Done(Some(object))
    }

    fn try_push(&self, cpu: &mut Cpu, object: usize) -> Tried<()> {
        if step!(cpu, self.owned()) {
            return Tried::Owned;
        }
        let count = step!(cpu, self.count.load(Relaxed));
        step!(cpu, self.slot[count].store(object, Relaxed));
        step!(cpu, self.count.store(count + 1, Relaxed));
        Tried::Done(())
    }

    fn pop(&self, cpu: &mut Cpu) {
        loop {
            match self.try_pop(cpu) {
                Tried::Done(Some(object)) => return self.use_object(object),
                Tried::Done(None) | Tried::Owned => return,
                Tried::Again => {}
            }
        }
    }

    /// False: owned, the caller keeps the object.
    fn push(&self, cpu: &mut Cpu, object: usize) -> bool {
        loop {
            match self.try_push(cpu, object) {
                Tried::Done(()) => return true,
                Tried::Owned => return false,
                Tried::Again => {}
            }
        }
    }

    fn take_remote(&self, token: usize, membarrier: &mut Caller) -> bool {
        let claim = match self.rules.claim {
            Relaxed => Relaxed,
            _ => Acquire,
        };
        if self.owner.compare_exchange(0, token, self.rules.claim, claim).is_err() {
            return false;
        }
        if self.rules.fence {
            membarrier.fence();
        }
        !self.rules.confirms || self.owner.load(Acquire) == token
    }

    /// Under ownership: everything that is there goes elsewhere.
    fn empty(&self) -> usize {
        let count = self.count.load(Relaxed);
        for i in 0..count {
            self.use_object(self.slot[i].load(Relaxed));
        }
        self.count.store(0, Relaxed);
        count
    }

    fn release(&self) {
        self.owner.store(0, self.rules.release);
    }
}

const POP_POINTS: usize = 8; // with one restart

/// A fast path that pops, and a remote owner that empties the line.
pub fn pop_and_remote(rules: Rules, plan: &[Place]) {
    let line = Arc::new(Line::new(rules, 2));
    let (mut cpu, mut callers) = Cpu::new(plan, POP_POINTS);
    let mut membarrier = callers.pop().unwrap_or_else(Caller::none);
    let fast = line.clone();
    let popper = thread::spawn(move || {
        fast.pop(&mut cpu);
        cpu.end();
    });
    if line.take_remote(7, &mut membarrier) {
        line.empty();
        crate::noted();
        line.release();
    }
    membarrier.finish();
    popper.join().unwrap();
}

/// A local owner that has moved to another CPU in between puts two objects there and lets go; a
/// fast path of the CPU then pops one.
pub fn moved_owner(rules: Rules, _plan: &[Place]) {
    let line = Arc::new(Line::new(rules, 0));
    line.owner.store(5, Relaxed); // a commit of this CPU, before the others are started
    let fast = line.clone();
    let popper = thread::spawn(move || {
        let (mut cpu, _) = Cpu::new(&[], POP_POINTS);
        fast.pop(&mut cpu);
    });
    for i in 0..2 {
        line.object[i].with_mut(|uses| unsafe { *uses = 0 }); // formats it
        line.slot[i].store(i, Relaxed);
    }
    line.count.store(2, Relaxed);
    crate::noted();
    line.release();
    popper.join().unwrap();
}

/// Two remote takers in a row; what the first one did is seen by the second.
pub fn two_remotes(rules: Rules, plan: &[Place]) {
    let line = Arc::new(Line::new(rules, 2));
    let (mut cpu, mut callers) = Cpu::new(plan, POP_POINTS);
    let mut a = callers.pop().unwrap_or_else(Caller::none);
    let mut b = callers.pop().unwrap_or_else(Caller::none);
    let (fast, other) = (line.clone(), line.clone());
    let popper = thread::spawn(move || {
        fast.pop(&mut cpu);
        cpu.end();
    });
    let second = thread::spawn(move || {
        if other.take_remote(8, &mut b) {
            other.empty();
            other.release();
        }
        b.finish();
    });
    if line.take_remote(7, &mut a) {
        line.empty();
        crate::noted();
        line.release();
    }
    a.finish();
    popper.join().unwrap();
    second.join().unwrap();
}

/// Who closes the batch of another CPU: object 1 is unlinked and pushed there by a fast path. The
/// grace period of the batch's cookie is started, barred and scanned by the closer itself, as soon
/// as the batch is detached; a reader may be inside.
pub fn remote_close(rules: Rules, plan: &[Place]) {
    let line = Arc::new(Line::new(rules, 1));
    let word = Arc::new(AtomicUsize::new(0));
    let sequence = Arc::new(AtomicUsize::new(1));
    let p = Arc::new(AtomicUsize::new(1));
    let (mut cpu, mut callers) = Cpu::new(plan, POP_POINTS);
    let mut membarrier = callers.pop().unwrap_or_else(Caller::none);

    let (fast, q) = (line.clone(), p.clone());
    let pusher = thread::spawn(move || {
        q.store(0, Relaxed);
        fast.push(&mut cpu, 1);
        cpu.end();
    });
    let (reads, published, now, q) = (line.clone(), word.clone(), sequence.clone(), p.clone());
    let reader = thread::spawn(move || {
        published.store(now.load(Acquire), Relaxed);
        fence(SeqCst);
        if q.load(Relaxed) != 0 {
            reads.object[1].with(|uses| assert!(unsafe { *uses } == 0, "freed object in use"));
        }
        published.store(0, Release);
    });
    let read_cookie = || {
        if rules.cookie_fence {
            fence(SeqCst);
        }
        sequence.fetch_add(0, AcqRel) + 1
    };
    // Another driver's grace period, which an early cookie mistakes for its own.
    let early = rules.cookie_early.then(read_cookie);
    let drive = || {
        let goal = sequence.fetch_add(1, SeqCst) + 1;
        fence(SeqCst);
        let held = word.load(Acquire);
        if held != 0 && held < goal { held } else { goal }
    };
    let before = drive();
    if line.take_remote(7, &mut membarrier) {
        let count = line.count.load(Relaxed);
        let last = if count > 1 { line.slot[1].load(Relaxed) } else { 0 };
        line.count.store(0, Relaxed);
        let cookie = early.unwrap_or_else(read_cookie);
        line.release();
        let completed = if before >= cookie { before } else { drive() };
        if completed >= cookie && last == 1 {
            crate::noted();
            line.use_object(1);
        }
    }
    membarrier.finish();
    pusher.join().unwrap();
    reader.join().unwrap();
}
