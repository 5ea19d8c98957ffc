// SPDX-License-Identifier: MIT
//! Where bags are filled.
//!
//! Each thread has a lane, which it may share with others. To add an entry it takes the bag out of
//! the lane, and puts it back. So a bag in use is in no lane: no thread waits for another, a signal
//! handler finds no bag, and a forked child loses only the bags that other threads held.
//!
//! The thread leaves a mark in the lane, and puts the bag back only in place of that. If the mark is
//! gone, another thread has used the lane or closed it, and the thread closes the bag. It is in a
//! section until then. So after a thread has closed all lanes and waited for a grace period, everything
//! that was added before is in closed bags ([`Garbage::finish`](super::Garbage::finish)).
//!
//! Order: the swaps of a lane hand the bag's contents from thread to thread. An object unlinked
//! before an entry was added was unlinked before the bag was closed, and its grace period begins
//! later.

use super::bag::Bag;
use crate::thread::thread_id;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering::*};

const LANES: usize = 8;

/// A lane has the cache lines of a pair, because the processor fetches those together.
#[repr(align(128))]
pub(super) struct Lane {
    bag: AtomicPtr<Bag>, // or a mark, or null
}

pub(super) struct Lanes {
    all: [Lane; LANES],
}

impl Lanes {
    pub(super) const fn new() -> Lanes {
        #[allow(clippy::declare_interior_mutable_const)] // each lane is a copy
        const LANE: Lane = Lane { bag: AtomicPtr::new(ptr::null_mut()) };
        Lanes { all: [LANE; LANES] }
    }

    /// This thread's lane.
    #[inline]
    pub(super) fn own(&self) -> &Lane {
        &self.all[thread_id() % LANES]
    }

    pub(super) fn all(&self) -> &[Lane] {
        &self.all
    }
}

impl Drop for Lanes {
    fn drop(&mut self) {
        for bag in self.all.iter().filter_map(Lane::take_all) {
            // SAFETY: a bag that is in no lane is this thread's. `Garbage::call_all` has called all
            // entries.
            unsafe { Bag::free(bag) }
        }
    }
}

/// Returns the mark of the call that has `place` on its stack: no other call that is under way has
/// that address. It is odd, and the addresses of bags are even.
#[inline]
pub(super) fn mark(place: &u16) -> *mut Bag {
    (place as *const u16 as *mut u8).wrapping_add(1).cast()
}

impl Lane {
    /// Takes the bag, if there is one, and leaves a mark.
    #[inline]
    pub(super) fn take(&self, mark: *mut Bag) -> Option<NonNull<Bag>> {
        let found = NonNull::new(self.bag.swap(mark, AcqRel));
        found.filter(|found| found.as_ptr() as usize % 2 == 0)
    }

    /// Puts a bag in place of the mark. Returns false if the mark is gone.
    #[inline]
    pub(super) fn put(&self, bag: NonNull<Bag>, mark: *mut Bag) -> bool {
        self.bag.compare_exchange(mark, bag.as_ptr(), AcqRel, Relaxed).is_ok()
    }

    /// Takes the bag or the mark, so that the lane is empty.
    pub(super) fn take_all(&self) -> Option<NonNull<Bag>> {
        self.take(ptr::null_mut())
    }

    /// Returns whether there is neither a bag nor a mark.
    pub(super) fn is_empty(&self) -> bool {
        self.bag.load(Relaxed).is_null()
    }
}
