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
    prudence::barrier().unwrap();
    prudence::barrier().unwrap();
    assert_eq!(receiver.try_recv(), Ok(2));
}

#[test]
#[cfg_attr(miri, ignore)] // only the library has statistics; miri searches for leaks itself
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
    // SAFETY: no other code has it.
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
fn a_collector_ends_what_was_deferred_with_it() {
    let census = common::Census::new();
    let collector = epoch::Collector::new();
    let handle = collector.register();
    assert!(collector != epoch::Collector::default() && collector == collector.clone());
    assert_eq!(handle.collector(), &collector);
    drop(collector);
    let guard = handle.pin();
    assert!(handle.is_pinned() && epoch::is_pinned());
    drop(handle); // the guard has the collector
    (0..100).for_each(|number| guard.defer_value(common::Counted::new(&census, number)));
    guard.flush();
    assert_eq!(guard.collector().unwrap().pending(), 100);
    let pinned = epoch::pin(); // so that no grace period ends
    drop(guard);
    assert_eq!(census.counts(), (100, 100));
    drop(pinned);
}

#[test]
fn no_thread_ends_what_was_deferred_with_another_collector() {
    let here = thread::current().id();
    let ran = Arc::new(AtomicUsize::new(0));
    let collector = epoch::Collector::new();
    let handle = collector.register();
    let end = |ran: &Arc<AtomicUsize>| {
        let ran = ran.clone();
        move || {
            assert_eq!(thread::current().id(), here);
            ran.fetch_add(1, SeqCst)
        }
    };
    let many = if cfg!(miri) { 70 } else { 1_000 };
    for _ in 0..many {
        handle.pin().defer(end(&ran));
    }
    let pinned = handle.pin();
    pinned.flush();
    thread::spawn(move || (0..many).for_each(|_| epoch::pin().flush())).join().unwrap();
    drop(pinned);
    drop((handle, collector));
    assert_eq!(ran.load(SeqCst), many);
}

/// Only code without `unsafe` of its own: objects that a leaked guard protects live for ever.
#[test]
#[cfg_attr(miri, ignore)] // the stand-in for the library has no threads that end inside
fn a_leaked_guard_protects_for_ever() {
    const SECTION: &str = "PRUDENCE_TEST_LEAKED_GUARD"; // a process of its own: nothing ends there any more
    let ended = match std::env::var_os(SECTION) {
        Some(_) => return leak_a_guard(),
        None => std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "a_leaked_guard_protects_for_ever"])
            .env(SECTION, "1")
            .output()
            .unwrap(),
    };
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    assert!(!String::from_utf8_lossy(&ended.stderr).contains("exits inside"));
}

fn leak_a_guard() {
    let census = common::Census::new();
    thread::spawn(|| std::mem::forget(epoch::pin())).join().unwrap();
    epoch::pin().defer_value(common::Counted::new(&census, 1));
    for _ in 0..200 {
        epoch::pin().flush();
        thread::sleep(Duration::from_millis(1)); // drivers ask for a reader that is gone after 5 ms
    }
    assert_eq!(census.counts(), (1, 0));
    assert_eq!(epoch::default_collector().pending(), 1);
}

#[test]
#[allow(deprecated)]
fn older_names_are_there() {
    static PLACE: Atomic<u64> = Atomic::null();
    const NOTHING: Shared<'static, u64> = Shared::null();
    let guard = &epoch::pin();
    let first = PLACE.compare_and_set(NOTHING, Owned::init(1), AcqRel, guard).unwrap();
    let error = PLACE.compare_and_set(NOTHING, Owned::init(2), (AcqRel, Acquire), guard);
    assert_eq!(error.unwrap_err().current, first);
    while PLACE.compare_and_set_weak(first, NOTHING, SeqCst, guard).is_err() {}
    // SAFETY: the exchange unlinked it, for this thread alone.
    unsafe { guard.defer_destroy(first) };
    // SAFETY: no other code has it.
    assert_eq!(*unsafe { Atomic::init(3).into_owned() }, 3);
}

/// A pointer to a longer life is one to a shorter life.
#[test]
fn pointers_are_covariant() {
    fn shorter<'a, 'g>(shared: Shared<'g, &'static str>, _: &'a str) -> Shared<'g, &'a str> {
        shared
    }
    fn owned<'a>(owned: Owned<&'static str>, _: &'a str) -> Owned<&'a str> {
        owned
    }
    let text = String::from("short");
    assert!(shorter(Shared::null(), &text).is_null());
    assert_eq!(**owned(Owned::new("long"), &text), *"long");
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
    // SAFETY: no thread changes it.
    assert_eq!(unsafe { found.deref() }, &1);
    assert_eq!(Owned::new(0_u8).with_tag(1).tag(), 0); // bytes have no room for tags
                                                       // SAFETY: no other code has it.
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
    // SAFETY: no other code has them, and neither is in both places.
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
    // SAFETY: no other code has it.
    let boxed = unsafe { shared.into_owned() }.into_box();
    assert_eq!((&*boxed as *const i32, *boxed), (address, 5));
    let raw = Box::into_raw(boxed) as *const i32;
    // SAFETY: the pointer is that of a box, deferred once.
    unsafe { guard.defer_destroy(Shared::from(raw)) };
    // SAFETY: null is ignored.
    unsafe { guard.defer_destroy(Shared::<String>::null()) };
}
