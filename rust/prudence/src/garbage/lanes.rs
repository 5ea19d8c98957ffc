// SPDX-License-Identifier: MIT
//! Where bags are filled.
//!
//! Each thread has a lane, which it may share with others. To add an entry it takes the bag out of
//! the lane, and puts it back. So a bag in use is in no lane: no thread waits for another, a signal
//! handler finds an empty lane, and a forked child loses only the bags that other threads held.
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
    bag: AtomicPtr<Bag>,
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
        for bag in self.all.iter().filter_map(Lane::take) {
            // SAFETY: a bag that is in no lane is this thread's. `Garbage::call_all` has called all
            // entries.
            unsafe { Bag::free(bag) }
        }
    }
}

impl Lane {
    /// Takes the bag, if there is one.
    #[inline]
    pub(super) fn take(&self) -> Option<NonNull<Bag>> {
        NonNull::new(self.bag.swap(ptr::null_mut(), AcqRel))
    }

    /// Puts a bag back. Returns false if another bag is in the lane.
    #[inline]
    pub(super) fn put(&self, bag: NonNull<Bag>) -> bool {
        self.bag.compare_exchange(ptr::null_mut(), bag.as_ptr(), AcqRel, Relaxed).is_ok()
    }

    /// Works like [`take`](Lane::take), for a thread whose own lane it need not be.
    pub(super) fn take_if_any(&self) -> Option<NonNull<Bag>> {
        if self.bag.load(Relaxed).is_null() {
            return None;
        }
        self.take()
    }
}
