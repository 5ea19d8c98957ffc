// SPDX-License-Identifier: MIT
//! Pointers without the library, so that miri can run this: `cargo miri test --test pointers`.

use prudence::epoch::{unprotected, Atomic, Owned, Shared};
use std::sync::atomic::Ordering::*;
use std::sync::Arc;
use std::thread;

#[test]
fn tags_keep_what_a_pointer_may_point_to() {
    // SAFETY: nothing is shared here.
    let nobody = unsafe { unprotected() };
    let place = Atomic::new([1_u32, 2]);
    for tag in 0..8 {
        let found = place.fetch_or(tag, AcqRel, nobody);
        place.store(found.with_tag(tag ^ 3), Release);
        // SAFETY: no other code has it.
        assert_eq!(unsafe { place.load(Acquire, nobody).deref() }, &[1, 2]);
    }
    // SAFETY: no other code has it.
    let mut owned = unsafe { place.into_owned() }.with_tag(1);
    owned[0] += 4;
    assert_eq!(*owned.into_box(), [5, 2]);
}

#[test]
fn a_list_is_made_and_dropped() {
    struct Node {
        text: String,
        next: Atomic<Node>,
    }
    // SAFETY: nothing is shared here.
    let nobody = unsafe { unprotected() };
    let head = Atomic::null();
    for number in 0..10 {
        let next = Atomic::from(head.load(Relaxed, nobody));
        let node = Owned::new(Node { text: number.to_string(), next });
        let old = head.load(Relaxed, nobody);
        assert!(head.compare_exchange(old, node, AcqRel, Acquire, nobody).is_ok());
        let late = Owned::new(Node { text: String::from("late"), next: Atomic::null() });
        let error = head.compare_exchange(old, late, AcqRel, Acquire, nobody).unwrap_err();
        assert_eq!(error.new.text, "late");
    }
    let mut node = head.swap(Shared::null(), AcqRel, nobody);
    let mut texts = String::new();
    // SAFETY: no other code has the nodes.
    while let Some(found) = unsafe { node.as_ref() } {
        texts += &found.text;
        let next = found.next.load(Acquire, nobody);
        // SAFETY: as above; called at once.
        unsafe { nobody.defer_destroy(node) };
        node = next;
    }
    assert_eq!(texts, "9876543210");
}

#[test]
fn what_is_published_is_seen() {
    let place = Arc::new(Atomic::<String>::null());
    let reader = thread::spawn({
        let place = Arc::clone(&place);
        move || loop {
            // SAFETY: the object is dropped after this thread.
            let found = unsafe { place.load(Acquire, unprotected()).as_ref() };
            if let Some(text) = found {
                return text.clone();
            }
            thread::yield_now();
        }
    });
    place.store(Owned::new(String::from("published")), Release);
    assert_eq!(reader.join().unwrap(), "published");
    // SAFETY: the reader is gone.
    drop(unsafe { Arc::try_unwrap(place).ok().unwrap().into_owned() });
}
