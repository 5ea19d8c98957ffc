// SPDX-License-Identifier: MIT
//! Guards and pointers, one behaviour each.
mod common;

use prudence::epoch::{self, Atomic, Owned, Shared};
use prudence::Flush;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering::*};
use std::sync::{mpsc, Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

const EDEADLK: i32 = 35;

#[test]
fn any_number_of_guards_in_any_order() {
    assert!(!epoch::is_pinned());
    let mut guards: Vec<_> = (0..5_000).map(|_| epoch::pin()).collect();
    while let Some(guard) = guards.pop() {
        drop(guard);
        if !guards.is_empty() {
            drop(guards.swap_remove(0));
        }
        assert_eq!(epoch::is_pinned(), !guards.is_empty());
    }
}

#[test]
fn what_is_deferred_waits_for_guards_of_all_threads() {
    let ran = Arc::new(AtomicUsize::new(0));
    let (inside, leave) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    let reader = thread::spawn({
        let (inside, leave) = (inside.clone(), leave.clone());
        move || {
            let first = epoch::pin();
            let _second = epoch::pin();
            drop(first); // the second still protects
            inside.wait();
            leave.wait();
        }
    });
    inside.wait();
    for _ in 0..1_000 {
        let ran = ran.clone();
        epoch::pin().defer(move || ran.fetch_add(1, SeqCst));
    }
    epoch::pin().defer_value(common::Counted::new(&common::Census::new(), 1));
    epoch::pin().flush();
    let soon = Instant::now() + Duration::from_millis(20);
    assert_eq!(prudence::flush_until(soon).unwrap(), Flush::Late);
    assert_eq!(ran.load(SeqCst), 0);
    leave.wait();
    reader.join().unwrap();
    let late = Instant::now() + Duration::from_secs(100);
    assert_eq!(prudence::flush_until(late).unwrap(), Flush::Done);
    assert_eq!(ran.load(SeqCst), 1_000);
    prudence::synchronize();
}

#[test]
fn waits_that_could_not_end_are_refused() {
    let guard = epoch::pin();
    assert_eq!(prudence::barrier().unwrap_err().raw_os_error(), Some(EDEADLK));
    let soon = Instant::now() + Duration::from_secs(100);
    assert_eq!(prudence::flush_until(soon).unwrap_err().raw_os_error(), Some(EDEADLK));
    drop(guard);
    prudence::barrier().unwrap();
}

#[test]
fn a_deferred_function_that_panics_ends_alone() {
    let (sender, receiver) = mpsc::channel();
    epoch::pin().defer(|| panic!("expected: a deferred function"));
    epoch::pin().defer(move || sender.send(1));
    prudence::barrier().unwrap();
    assert_eq!(receiver.recv(), Ok(1));
}

#[test]
fn deferred_functions_may_defer() {
    let (sender, receiver) = mpsc::channel();
    epoch::pin().defer(move || epoch::pin().defer(move || sender.send(2)));
    assert_eq!(receiver.recv(), Ok(2));
}

#[test]
#[cfg_attr(miri, ignore)] // only the library has statistics; miri looks for leaks itself
fn deferred_functions_leave_no_memory() {
    let before = common::objects_live();
    for _ in 0..20 {
        let guard = epoch::pin();
        (0..1_000).for_each(|number| guard.defer(move || number));
        drop(guard);
        prudence::barrier().unwrap();
    }
    // Other tests of this program defer some 2,000.
    assert!(common::objects_live() < before + 10_000);
}

#[test]
fn unprotected_defers_nothing() {
    // SAFETY: nothing is shared here.
    let nobody = unsafe { epoch::unprotected() };
    let ran = Rc::new(Cell::new(false));
    // SAFETY: called at once, in this thread.
    unsafe { nobody.defer_unchecked(|| ran.set(true)) };
    assert!(ran.get());
    assert!(!epoch::is_pinned());
    let census = common::Census::new();
    let owned = Owned::new(common::Counted::new(&census, 1)).into_shared(nobody);
    // SAFETY: nobody else has it.
    unsafe { nobody.defer_destroy(owned) };
    assert_eq!(census.counts(), (1, 1));
    nobody.flush();
    assert!(nobody.collector().is_none());
}

#[test]
fn repin_leaves_and_enters() {
    let mut guard = epoch::pin();
    assert!(guard.repin_after(|| !epoch::is_pinned()));
    guard.repin();
    assert!(epoch::is_pinned());
    let other = epoch::pin();
    assert!(guard.repin_after(epoch::is_pinned));
    drop(other);
    let panics = std::panic::AssertUnwindSafe(|| guard.repin_after(|| panic!("expected")));
    assert!(std::panic::catch_unwind(panics).is_err());
    assert!(epoch::is_pinned());
    drop(guard);
    assert!(!epoch::is_pinned());
}

#[test]
fn all_collectors_are_one() {
    let collector = epoch::Collector::new();
    let handle = collector.register();
    let guard = handle.pin();
    assert!(handle.is_pinned() && epoch::is_pinned());
    assert_eq!(guard.collector(), Some(&collector));
    assert_eq!(handle.collector(), epoch::default_collector());
}

#[test]
fn tags_change_nothing_else() {
    let guard = &epoch::pin();
    let owned = Owned::new(1_u64).with_tag(5);
    assert_eq!((owned.tag(), *owned), (5, 1));
    let place: Atomic<u64> = Atomic::from(owned);
    let before = place.fetch_or(2, AcqRel, guard);
    assert_eq!(before.tag(), 5);
    assert_eq!(place.fetch_and(6, AcqRel, guard).tag(), 7);
    assert_eq!(place.fetch_xor(8 + 3, SeqCst, guard).tag(), 6); // 8 is a bit of the address
    let found = place.load(Acquire, guard);
    assert_eq!((found.tag(), found.as_raw()), (5, before.as_raw()));
    assert_eq!(found.with_tag(0), Shared::from(found.as_raw()));
    assert_ne!(found, found.with_tag(1));
    // SAFETY: nobody changes it.
    assert_eq!(unsafe { found.deref() }, &1);
    assert_eq!(Owned::new(0_u8).with_tag(1).tag(), 0); // bytes have no room for tags
                                                       // SAFETY: nobody else has it.
    let mut owned = unsafe { place.into_owned() };
    *owned += 1;
    assert_eq!((owned.clone().tag(), *owned.into_box()), (5, 2));
    assert!(Shared::<u64>::null().with_tag(3).is_null());
    // SAFETY: null has no owner.
    assert!(unsafe { Atomic::<u64>::from(Shared::null().with_tag(3)).try_into_owned() }.is_none());
}

#[test]
#[should_panic(expected = "not aligned")]
fn a_pointer_with_stray_bits_is_refused() {
    let _ = Shared::<u64>::from((&1_u64 as *const u64).cast::<u8>().wrapping_add(1).cast::<u64>());
}

#[test]
fn exchanges() {
    let guard = &epoch::pin();
    let place = Atomic::new(1);
    let first = place.load(Acquire, guard);
    let error =
        place.compare_exchange(Shared::null(), Owned::new(2), AcqRel, Acquire, guard).unwrap_err();
    assert_eq!((error.current, *error.new), (first, 2));
    assert!(format!("{error:?}").contains("CompareExchangeError"));
    let second = place.compare_exchange(first, error.new, AcqRel, Acquire, guard).unwrap();
    assert_eq!(place.load_consume(guard), second);
    assert_eq!(place.clone().load(Acquire, guard), second);
    let mut expected = second;
    while let Err(error) = place.compare_exchange_weak(expected, first, AcqRel, Acquire, guard) {
        expected = error.current;
    }
    assert_eq!(
        place.fetch_update(AcqRel, Acquire, guard, |found| Some(found.with_tag(1))),
        Ok(first)
    );
    let tagged = first.with_tag(1);
    assert_eq!(place.fetch_update(AcqRel, Acquire, guard, |_| None), Err(tagged));
    place.store(second, Release);
    assert_eq!(format!("{place:p}"), format!("{second:p}"));
    // SAFETY: nobody else has them, and neither is in both places.
    unsafe {
        drop(place.try_into_owned());
        drop(tagged.try_into_owned());
    }
    assert!(Atomic::<i32>::default().load(Acquire, guard).is_null());
}

#[test]
fn boxes_come_and_go() {
    let guard = &epoch::pin();
    let boxed = Box::new(5);
    let address = &*boxed as *const i32;
    let shared = Owned::<i32>::from(boxed).into_shared(guard);
    assert_eq!(shared.as_raw(), address);
    // SAFETY: nobody else has it.
    let boxed = unsafe { shared.into_owned() }.into_box();
    assert_eq!((&*boxed as *const i32, *boxed), (address, 5));
    let raw = Box::into_raw(boxed) as *const i32;
    // SAFETY: the pointer is that of a box, deferred once.
    unsafe { guard.defer_destroy(Shared::from(raw)) };
    // SAFETY: null is ignored.
    unsafe { guard.defer_destroy(Shared::<String>::null()) };
}
