// SPDX-License-Identifier: MIT
//! Remote fences under loom: membarrier, and membarrier RSEQ, as they are documented.
//!
//! Between the call and its return every other thread passes through a full fence, somewhere in its
//! program. So a *plan* says, for each call and each thread, at which point of its program that is,
//! and every plan is explored. At that point the thread waits for the call; both fence, and go on.
//! An execution in which the call is never made is one of the plan that puts it at the thread's end.

use loom::sync::atomic::{fence, Ordering::SeqCst};
use loom::sync::mpsc::{channel, Receiver, Sender};

/// Where one remote fence falls: before the operation of that number; of two before the same
/// operation, the one with the smaller `turn` is first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub point: usize,
    pub turn: usize,
}

/// The caller's end of one remote fence.
pub struct Caller {
    line: Option<(Sender<bool>, Receiver<()>)>,
}

impl Caller {
    /// For a thread that makes none.
    pub fn none() -> Caller {
        Caller { line: None }
    }

    pub fn fence(&mut self) {
        let (ask, done) = self.line.take().expect("model: a remote fence that no plan has");
        fence(SeqCst);
        ask.send(true).unwrap();
        done.recv().unwrap();
        fence(SeqCst);
    }

    /// Must be called in the end: if it was not made, it will not be made any more.
    pub fn finish(self) {
        if let Some((ask, _)) = self.line {
            ask.send(false).unwrap();
        }
    }
}

/// The interrupted thread's end of all of them.
pub struct Cpu {
    waiting: Vec<(Place, Receiver<bool>, Sender<()>)>, // last first
    passed: usize,
    points: usize,
}

impl Cpu {
    /// One caller for each place. `points`: of the longest execution of its program.
    pub fn new(places: &[Place], points: usize) -> (Cpu, Vec<Caller>) {
        let mut cpu = Cpu { waiting: Vec::new(), passed: 0, points };
        let mut callers = Vec::new();
        for &place in places {
            let (ask, asked) = channel();
            let (ready, done) = channel();
            cpu.waiting.push((place, asked, ready));
            callers.push(Caller { line: Some((ask, done)) });
        }
        cpu.waiting.sort_by(|a, b| b.0.cmp(&a.0));
        (cpu, callers)
    }

    /// Between two operations: true if it was interrupted here.
    pub fn point(&mut self) -> bool {
        let mut interrupted = false;
        assert!(self.passed <= self.points, "model: more points than it was planned for");
        while matches!(self.waiting.last(), Some(w) if w.0.point == self.passed) {
            interrupted |= self.serve();
        }
        self.passed += 1;
        interrupted
    }

    pub fn end(mut self) {
        while !self.waiting.is_empty() {
            self.serve();
        }
    }

    fn serve(&mut self) -> bool {
        let (_, asked, ready) = self.waiting.pop().unwrap();
        let made = asked.recv().unwrap();
        if made {
            fence(SeqCst);
            ready.send(()).unwrap();
        }
        made
    }
}

/// Every plan for this many remote fences of one thread.
pub fn plans(fences: usize, points: usize) -> Vec<Vec<Place>> {
    let mut all = vec![vec![]];
    for turn in 0..fences {
        let mut more = Vec::new();
        for plan in &all {
            for point in 0..=points {
                let mut longer: Vec<Place> = plan.clone();
                longer.push(Place { point, turn });
                // Before the same operation, either may be the first.
                if turn > 0 && plan.iter().any(|p: &Place| p.point == point) {
                    let mut first = longer.clone();
                    for p in first.iter_mut() {
                        p.turn = fences - p.turn;
                    }
                    more.push(first);
                }
                more.push(longer);
            }
        }
        all = more;
    }
    all
}
