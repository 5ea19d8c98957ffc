// SPDX-License-Identifier: MIT
//! Shared by the tests: values that count how many of them live, and torture of readers and
//! writers.
#![allow(dead_code)] // each program uses a part

use prudence::epoch::{self, Atomic, Owned, Shared};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};
use std::sync::Arc;
use std::thread;

/// Counts its values. A value that ends twice, or is used after its end, is noticed.
#[derive(Debug, Default)]
pub struct Census {
    pub made: AtomicUsize,
    pub dropped: AtomicUsize,
}

#[derive(Debug)]
pub struct Counted {
    census: Arc<Census>,
    state: AtomicUsize,
    pub number: usize,
}

const ALIVE: usize = 0x5eed_a11e;

impl Counted {
    pub fn new(census: &Arc<Census>, number: usize) -> Counted {
        census.made.fetch_add(1, Relaxed);
        Counted { census: Arc::clone(census), state: AtomicUsize::new(ALIVE), number }
    }

    pub fn check(&self) {
        assert_eq!(self.state.load(Relaxed), ALIVE, "a value is used after its end");
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        assert_eq!(self.state.swap(0, Relaxed), ALIVE, "a value ends twice");
        self.census.dropped.fetch_add(1, Relaxed);
    }
}

impl Census {
    pub fn new() -> Arc<Census> {
        Arc::default()
    }

    /// Made and dropped.
    pub fn counts(&self) -> (usize, usize) {
        (self.made.load(SeqCst), self.dropped.load(SeqCst))
    }
}

/// Bytes of queued callbacks of the default domain.
pub fn bytes_called() -> u64 {
    // SAFETY: all zeros are a valid value of the structure, which the library fills.
    unsafe {
        let mut stats: prudence_sys::prudence_domain_stats = std::mem::zeroed();
        let size = std::mem::size_of_val(&stats);
        let domain = prudence_sys::prudence_default_domain();
        assert_eq!(prudence_sys::prudence_domain_stats_sized(domain, &mut stats, size), 0);
        stats.bytes_called
    }
}

/// Objects of the library that are neither free nor deferred.
pub fn objects_live() -> u64 {
    // SAFETY: as above.
    unsafe {
        let mut stats: prudence_sys::prudence_stats = std::mem::zeroed();
        let size = std::mem::size_of_val(&stats);
        assert_eq!(prudence_sys::prudence_stats_sized(&mut stats, size), 0);
        stats.objects_live
    }
}

const ROUNDS: usize = if cfg!(miri) { 60 } else { 60_000 };

/// Writers replace values with drop glue; readers, with many guards each, use them at the same
/// time.
pub fn replace_under_readers() {
    let census = Census::new();
    let places: Arc<Vec<Atomic<Counted>>> =
        Arc::new((0..4).map(|number| Atomic::new(Counted::new(&census, number))).collect());
    let done = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = (0..3)
        .map(|seed| {
            let (places, done) = (Arc::clone(&places), Arc::clone(&done));
            thread::spawn(move || {
                let mut looks = seed;
                while !done.load(Relaxed) || looks < 100 {
                    let outer = epoch::pin();
                    let others: Vec<_> = (0..looks % 7).map(|_| epoch::pin()).collect();
                    let found = places[looks % 4].load(Acquire, &outer);
                    // SAFETY: loaded under a guard, never null, and published by Release.
                    let value = unsafe { found.deref() };
                    value.check();
                    if looks % 64 == 0 {
                        thread::yield_now();
                    }
                    drop(others);
                    value.check();
                    looks += 1;
                }
            })
        })
        .collect();
    let writers: Vec<_> = (0..2)
        .map(|_| {
            let (places, census) = (Arc::clone(&places), Arc::clone(&census));
            thread::spawn(move || {
                for round in 0..ROUNDS {
                    let guard = epoch::pin();
                    let new = Owned::new(Counted::new(&census, round));
                    let old = places[round % 4].swap(new, AcqRel, &guard);
                    // SAFETY: the swap unlinked it, for this thread alone.
                    unsafe { guard.defer_destroy(old) };
                }
            })
        })
        .collect();
    writers.into_iter().for_each(|one| one.join().unwrap());
    done.store(true, Relaxed);
    readers.into_iter().for_each(|one| one.join().unwrap());
    prudence::barrier().unwrap();
    assert_eq!(census.counts(), (2 * ROUNDS + 4, 2 * ROUNDS));
    for place in Arc::try_unwrap(places).ok().unwrap() {
        // SAFETY: no other code has the places.
        drop(unsafe { place.into_owned() });
    }
    assert_eq!(census.counts(), (2 * ROUNDS + 4, 2 * ROUNDS + 4));
}

struct Plain {
    number: usize,
    opposite: usize,
}

/// Replaces values of a type without drop glue, whose memory is soon used again.
pub fn replace_plain_under_readers() {
    let place = Arc::new(Atomic::new(Plain { number: 0, opposite: !0 }));
    let done = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = (0..3)
        .map(|_| {
            let (place, done) = (Arc::clone(&place), Arc::clone(&done));
            thread::spawn(move || {
                let mut looks = 0;
                while !done.load(Relaxed) || looks < 100 {
                    let guard = epoch::pin();
                    // SAFETY: loaded under a guard, never null, and published by Release.
                    let value = unsafe { place.load(Acquire, &guard).deref() };
                    let before = value.number;
                    if looks % 64 == 0 {
                        thread::yield_now();
                    }
                    // SAFETY: a valid reference; volatile, so that the value is read once more.
                    let after = unsafe { std::ptr::read_volatile(&value.number) };
                    assert_eq!((before, !before), (after, value.opposite));
                    looks += 1;
                }
            })
        })
        .collect();
    for number in 1..=2 * ROUNDS {
        let guard = epoch::pin();
        let old = place.swap(Owned::new(Plain { number, opposite: !number }), AcqRel, &guard);
        // SAFETY: the swap unlinked it, for this thread alone.
        unsafe { guard.defer_destroy(old) };
    }
    done.store(true, Relaxed);
    readers.into_iter().for_each(|one| one.join().unwrap());
    // SAFETY: no other code has the place.
    drop(unsafe { Arc::try_unwrap(place).ok().unwrap().into_owned() });
}

struct Node {
    value: Counted,
    next: Atomic<Node>,
}

/// A stack of Treiber's kind.
struct Stack {
    head: Atomic<Node>,
}

impl Stack {
    fn push(&self, value: Counted) {
        let guard = epoch::pin();
        let mut node = Owned::new(Node { value, next: Atomic::null() });
        loop {
            let head = self.head.load(Relaxed, &guard);
            node.next.store(head, Relaxed);
            match self.head.compare_exchange(head, node, Release, Relaxed, &guard) {
                Ok(_) => return,
                Err(error) => node = error.new,
            }
        }
    }

    fn pop(&self) -> Option<usize> {
        let guard = epoch::pin();
        loop {
            let head = self.head.load(Acquire, &guard);
            // SAFETY: loaded under a guard, and published by Release.
            let node = unsafe { head.as_ref() }?;
            node.value.check();
            let next = node.next.load(Relaxed, &guard);
            if self.head.compare_exchange(head, next, AcqRel, Relaxed, &guard).is_ok() {
                let number = node.value.number;
                // SAFETY: this thread unlinked it.
                unsafe { guard.defer_destroy(head) };
                return Some(number);
            }
        }
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: no other code has the stack, so that nothing needs protection.
        unsafe {
            let nobody = epoch::unprotected();
            let mut next = self.head.load(Relaxed, nobody);
            while let Some(owned) = std::mem::take(&mut next).try_into_owned() {
                next = owned.next.load(Relaxed, nobody);
            }
        }
    }
}

/// Threads push and pop; each number comes out once, and each node ends once.
pub fn push_and_pop() {
    let census = Census::new();
    let stack = Arc::new(Stack { head: Atomic::null() });
    let threads: Vec<_> = (0..4)
        .map(|first| {
            let (stack, census) = (Arc::clone(&stack), Arc::clone(&census));
            thread::spawn(move || {
                let mut sum = 0;
                for round in 0..ROUNDS / 4 {
                    stack.push(Counted::new(&census, first * ROUNDS + round));
                    if round % 3 != 0 {
                        sum += stack.pop().unwrap();
                    }
                }
                sum
            })
        })
        .collect();
    let mut sum: usize = threads.into_iter().map(|one| one.join().unwrap()).sum();
    while let Some(number) = stack.pop() {
        sum += number;
        if number % 5 == 0 {
            break; // the rest ends with the stack
        }
    }
    assert!(sum > 0);
    drop(stack);
    prudence::barrier().unwrap();
    assert_eq!(census.counts(), (ROUNDS, ROUNDS));
    assert!(Shared::<Node>::null().is_null());
}
