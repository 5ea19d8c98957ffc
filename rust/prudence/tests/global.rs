// SPDX-License-Identifier: MIT
//! The global allocator: every layout, and deferring without callbacks.
mod common;

use prudence::epoch::{self, Atomic, Owned};
use prudence::seize::{reclaim, Collector, Guard};
use std::alloc::{alloc, alloc_zeroed, dealloc, realloc, Layout};
use std::collections::HashMap;
use std::sync::atomic::Ordering::*;
use std::sync::Mutex;
use std::thread;

prudence::global_allocator!();

/// Waiting objects are counted for the whole process.
static COUNTING: Mutex<()> = Mutex::new(());

fn pending(guard: &epoch::Guard) -> usize {
    guard.flush();
    epoch::default_collector().pending()
}

fn layouts() -> impl Iterator<Item = Layout> {
    let sizes = [1, 7, 8, 16, 17, 100, 1024, 4095, 4096, 5000, 32_768, 70_000];
    (0..=16).flat_map(move |shift| {
        sizes.into_iter().map(move |size| Layout::from_size_align(size, 1 << shift).unwrap())
    })
}

unsafe fn fill(block: *mut u8, size: usize) {
    for at in 0..size {
        // SAFETY: the caller passes a block of this size.
        unsafe { block.add(at).write(at as u8) };
    }
}

unsafe fn is_filled(block: *mut u8, size: usize) -> bool {
    // SAFETY: the caller passes a block of this size.
    (0..size).all(|at| unsafe { block.add(at).read() } == at as u8)
}

#[test]
fn every_layout_is_aligned_and_keeps_its_contents() {
    for layout in layouts() {
        // SAFETY: sizes are not 0; blocks are used within their sizes, and freed once.
        unsafe {
            let mut block = alloc(layout);
            assert!(!block.is_null());
            fill(block, layout.size());
            let mut layout = layout;
            for size in [layout.size() * 3, layout.size() / 2 + 1, 90_000, 5] {
                let kept = size.min(layout.size());
                block = realloc(block, layout, size);
                assert!(!block.is_null());
                assert_eq!(block as usize % layout.align(), 0, "{layout:?} to {size}");
                assert!(is_filled(block, kept), "{layout:?} to {size}");
                layout = Layout::from_size_align(size, layout.align()).unwrap();
                fill(block, size);
            }
            dealloc(block, layout);
        }
    }
}

#[test]
fn zeroed_memory_is_zero() {
    for layout in layouts() {
        // SAFETY: as above.
        unsafe {
            let used = alloc(layout);
            used.write_bytes(0xa5, layout.size());
            dealloc(used, layout);
            let block = alloc_zeroed(layout);
            assert_eq!(block as usize % layout.align(), 0, "{layout:?}");
            assert!((0..layout.size()).all(|at| block.add(at).read() == 0), "{layout:?}");
            dealloc(block, layout);
        }
    }
}

#[test]
fn memory_comes_from_the_library() {
    let mut boxed = Box::new([0_u8; 100]);
    // SAFETY: an object of the library, which would report a foreign pointer as misuse.
    let usable = unsafe { prudence_sys::prudence_usable_size(boxed.as_mut_ptr().cast()) };
    assert!((100..=128).contains(&usable));
}

#[test]
fn too_much_is_refused() {
    assert!(Vec::<u8>::new().try_reserve(isize::MAX as usize - 100).is_err());
}

#[test]
fn threads_and_collections() {
    let threads: Vec<_> = (0..4)
        .map(|seed| {
            thread::spawn(move || {
                let words: HashMap<String, Vec<usize>> =
                    (0..500).map(|n| (format!("{seed}-{n}"), vec![n; n % 50])).collect();
                words
            })
        })
        .collect();
    let words: usize = threads.into_iter().map(|one| one.join().unwrap().len()).sum();
    assert_eq!(words, 2000);
}

#[test]
fn plain_memory_needs_no_function() {
    #[repr(align(64))]
    struct Aligned(u64);
    let _alone = COUNTING.lock();
    let guard = epoch::pin();
    let numbers = Atomic::new(0_u64);
    let aligned = Atomic::new(Aligned(0));
    let nothing = Atomic::new(());
    for number in 1..1000 {
        // SAFETY: each was unlinked by the swap.
        unsafe {
            guard.defer_destroy(numbers.swap(Owned::new(number), AcqRel, &guard));
            guard.defer_destroy(aligned.swap(Owned::new(Aligned(number)), AcqRel, &guard));
            guard.defer_destroy(nothing.swap(Owned::new(()), AcqRel, &guard));
        }
    }
    assert_eq!(pending(&guard), 0);
    // SAFETY: no other code has them.
    unsafe {
        assert_eq!(*numbers.into_owned(), 999);
        assert_eq!(aligned.into_owned().0, 999);
        drop(nothing.into_owned());
    }
}

#[test]
fn drop_glue_needs_a_function() {
    let _alone = COUNTING.lock();
    let guard = epoch::pin();
    let words = Atomic::new(String::from("first"));
    let old = words.swap(Owned::new("second".into()), AcqRel, &guard);
    // SAFETY: unlinked by the swap.
    unsafe { guard.defer_destroy(old) };
    assert_eq!(pending(&guard), 1);
    drop(guard);
    prudence::barrier().unwrap();
    assert_eq!(epoch::default_collector().pending(), 0);
    // SAFETY: no other code has it.
    drop(unsafe { words.into_owned() });
}

#[test]
fn retired_memory_needs_no_reclaimer_unless_owned_guards_exist() {
    let _alone = COUNTING.lock();
    let number = || Box::into_raw(Box::new(7_u64));
    let collector = Collector::new();
    let guard = collector.enter();
    // SAFETY: boxes that no other code has.
    (0..100).for_each(|_| unsafe { guard.defer_retire(number(), reclaim::boxed) });
    guard.flush();
    assert_eq!(collector.pending(), 0);
    drop(guard);
    let owned = collector.enter_owned();
    // SAFETY: as above.
    unsafe { owned.defer_retire(number(), reclaim::boxed) };
    owned.flush();
    assert_eq!(collector.pending(), 1);
    drop(owned);
    assert_eq!(collector.pending(), 0);
}
