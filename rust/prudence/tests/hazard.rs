// SPDX-License-Identifier: MIT
//! Hazard pointers, one behaviour each.
mod common;

use common::{Census, Counted};
use prudence::hazard::{self, AtomicBox, Changed, HazardPointer};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering::*};
use std::sync::{Arc, Barrier, Mutex, MutexGuard};
use std::thread;

/// A multiple of 4.
const MANY: usize = if cfg!(miri) { 40 } else { 20_000 };

/// Waiting objects are counted for the process, so the tests that count it take turns.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(|failed| failed.into_inner())
}

#[test]
fn what_is_named_waits_and_nothing_else() {
    let _turn = alone();
    let census = Census::new();
    let place = AtomicBox::new(Counted::new(&census, 0));
    let mut hazard = HazardPointer::new();
    let found = hazard.protect(&place).unwrap();
    for number in 1..=MANY {
        place.store(Counted::new(&census, number));
    }
    assert_eq!(hazard::reclaim(), 1);
    found.check();
    assert_eq!((found.number, census.counts()), (0, (MANY + 1, MANY - 1)));
    assert_eq!(hazard.protect(&place).unwrap().number, MANY); // now it names this one
    assert_eq!(hazard::reclaim(), 0);
    drop(place);
    assert_eq!(hazard::reclaim(), 1);
    hazard.reset();
    assert_eq!(hazard::reclaim(), 0);
    assert_eq!(census.counts(), (MANY + 1, MANY + 1));
}

fn protect_for<'h>(
    hazard: &'h mut HazardPointer,
    place: &AtomicBox<Counted>,
    found: &Mutex<Option<&'h Counted>>,
) {
    *found.lock().unwrap() = hazard.protect(place);
}

#[test]
fn a_hazard_pointer_protects_beyond_its_thread() {
    let _turn = alone();
    let census = Census::new();
    let place = AtomicBox::new(Counted::new(&census, 1));
    let hazard = Box::into_raw(Box::new(HazardPointer::new()));
    // SAFETY: the box is dropped below, after the last use.
    let borrowed: &'static mut HazardPointer = unsafe { &mut *hazard };
    let (found, linked) = (Mutex::new(None), &place);
    thread::scope(|scope| {
        scope.spawn(|| protect_for(borrowed, linked, &found));
    });
    let found: &'static Counted = found.into_inner().unwrap().unwrap();
    drop(place);
    assert_eq!(hazard::reclaim(), 1);
    found.check();
    // SAFETY: no other code has the box.
    let hazard = unsafe { Box::from_raw(hazard) };
    thread::scope(|scope| scope.spawn(move || drop(hazard)).join().unwrap());
    assert_eq!(hazard::reclaim(), 0);
    assert_eq!(census.counts(), (1, 1));
}

#[test]
fn a_failed_exchange_gives_the_value_back() {
    let _turn = alone();
    let census = Census::new();
    let place = AtomicBox::empty();
    let mut hazard = HazardPointer::new();
    assert!(place.compare_exchange(None, Some(Counted::new(&census, 1))).unwrap().is_none());
    let back = place.compare_exchange(None, Some(Counted::new(&census, 2))).unwrap_err();
    assert_eq!(back.unwrap().number, 2);
    let first = hazard.protect(&place);
    let before = place.compare_exchange(first, Some(Counted::new(&census, 3))).unwrap().unwrap();
    assert_eq!((before.number, first.unwrap().number), (1, 1));
    drop(before); // retired, and named
    assert_eq!(hazard::reclaim(), 1);
    first.unwrap().check();
    assert!(place.compare_exchange(first, None).is_err());
    hazard.reset();
    let last = place.swap(None).unwrap();
    assert!(hazard.protect(&place).is_none());
    last.check();
    drop(last);
    assert_eq!(hazard::reclaim(), 0);
    assert_eq!(census.counts(), (3, 3));
}

#[test]
fn an_attempt_fails_when_the_place_has_changed() {
    let (one, two) = (&mut 1, &mut 2);
    let (first, second) = (one as *mut i32, two as *mut i32);
    let source = AtomicPtr::new(second);
    let mut hazard = HazardPointer::new();
    assert_eq!(hazard.try_protect_ptr(first, &source), Err(second));
    assert_eq!(hazard.try_protect_ptr(second, &source), Ok(()));
    assert_eq!(hazard.protect_ptr(&source), second);
    source.store(ptr::null_mut(), Release);
    assert!(hazard.protect_ptr(&source).is_null());
    assert_eq!(hazard.try_protect(&AtomicBox::new(3)), Ok(Some(&3)));
    assert_eq!(
        Err::<(), _>(Changed).map_err(|changed| format!("{changed:?}")),
        Err("Changed".into())
    );
}

#[test]
fn values_that_own_places_end_without_deep_recursion() {
    struct Link {
        _counted: Counted,
        _next: AtomicBox<Link>,
    }
    let _turn = alone();
    let census = Census::new();
    let mut chain = AtomicBox::empty();
    for number in 0..MANY {
        chain = AtomicBox::new(Link { _counted: Counted::new(&census, number), _next: chain });
    }
    drop(chain);
    while hazard::reclaim() != 0 {}
    assert_eq!(census.counts(), (MANY, MANY));
}

#[test]
fn what_panics_ends_alone() {
    static DROPS: AtomicUsize = AtomicUsize::new(0);
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            DROPS.fetch_add(1, Relaxed);
            panic!("expected: a drop")
        }
    }
    let _turn = alone();
    for _ in 0..3 {
        drop(AtomicBox::new(Panics));
        // SAFETY: a box that no other code has.
        unsafe { hazard::retire(Box::into_raw(Box::new(Panics))) };
    }
    assert_eq!(hazard::reclaim(), 0);
    assert_eq!(DROPS.load(Relaxed), 6);
}

#[test]
fn values_without_size_and_with_a_large_alignment() {
    #[derive(Debug)]
    #[repr(align(512))]
    struct Aligned(u8);
    let _turn = alone();
    let (nothing, aligned) = (AtomicBox::new(()), AtomicBox::new(Aligned(7)));
    let (mut one, mut two) = (HazardPointer::new(), HazardPointer::new());
    let (some, found) = (one.protect(&nothing), two.protect(&aligned));
    assert_eq!((some, found.map(|found| found.0)), (Some(&()), Some(7)));
    assert_eq!(found.unwrap() as *const Aligned as usize % 512, 0);
    assert!(aligned.compare_exchange(found, None).unwrap().is_some());
    assert!(nothing.compare_exchange(some, None).unwrap().is_some());
    assert_eq!(hazard::reclaim(), 2);
    // SAFETY: a box that no other code has.
    unsafe { hazard::retire(Box::into_raw(Box::new(()))) };
    drop((one, two));
    assert_eq!(hazard::reclaim(), 0);
}

#[test]
fn places_are_replaced_under_readers() {
    let _turn = alone();
    let census = Census::new();
    let places: Vec<_> =
        (0..4).map(|number| AtomicBox::new(Counted::new(&census, number))).collect();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for seed in 0..3 {
            let (places, done) = (&places, &done);
            scope.spawn(move || {
                let mut hazards = [HazardPointer::new(), HazardPointer::new()];
                let mut looks: usize = seed;
                while !done.load(Relaxed) || looks < 100 {
                    let [first, second] = &mut hazards;
                    let value = first.protect(&places[looks % 4]).unwrap();
                    let other = second.try_protect(&places[(looks + 1) % 4]);
                    value.check();
                    if looks % 64 == 0 {
                        thread::yield_now();
                    }
                    value.check();
                    other.ok().flatten().map_or((), Counted::check);
                    looks += 1;
                }
            });
        }
        let writers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    for round in 0..MANY {
                        places[round % 4].store(Counted::new(&census, round));
                    }
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        done.store(true, Relaxed);
    });
    drop(places);
    assert_eq!(hazard::reclaim(), 0);
    assert_eq!(census.counts(), (2 * MANY + 4, 2 * MANY + 4));
}

struct Node {
    value: Counted,
    next: *mut Node,
}

// SAFETY: `next` is changed before the node is linked, and by no thread after.
unsafe impl Send for Node {}

/// A stack of Treiber's kind.
struct Stack(AtomicPtr<Node>);

impl Stack {
    fn push(&self, value: Counted) {
        let node = Box::into_raw(Box::new(Node { value, next: ptr::null_mut() }));
        // SAFETY: no other code has the node yet.
        let link = |head| unsafe { (*node).next = head };
        let _ = self.0.fetch_update(Release, Relaxed, |head| {
            link(head);
            Some(node)
        });
    }

    fn pop(&self, hazard: &mut HazardPointer) -> Option<usize> {
        loop {
            let head = hazard.protect_ptr(&self.0);
            if head.is_null() {
                return None;
            }
            // SAFETY: the hazard pointer names the node, so no thread frees it or links it again.
            let (value, next) = unsafe { (&(*head).value, (*head).next) };
            value.check();
            if self.0.compare_exchange(head, next, AcqRel, Relaxed).is_ok() {
                let number = value.number;
                // SAFETY: this thread unlinked the node.
                unsafe { hazard::retire(head) };
                return Some(number);
            }
        }
    }
}

#[test]
fn a_stack_loses_nothing() {
    let _turn = alone();
    let census = Census::new();
    let stack = Stack(AtomicPtr::new(ptr::null_mut()));
    let begin = Barrier::new(4);
    let each = MANY / 4;
    let sums: Vec<usize> = thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|first| {
                let (stack, census, begin): (_, &Arc<Census>, _) = (&stack, &census, &begin);
                scope.spawn(move || {
                    let mut hazard = HazardPointer::new();
                    begin.wait();
                    (0..each).fold(0, |sum, round| {
                        stack.push(Counted::new(census, first * each + round));
                        sum + stack.pop(&mut hazard).unwrap()
                    })
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(sums.iter().sum::<usize>(), MANY * (MANY - 1) / 2);
    assert!(stack.pop(&mut HazardPointer::new()).is_none());
    assert_eq!(hazard::reclaim(), 0);
    assert_eq!(census.counts(), (MANY, MANY));
}
