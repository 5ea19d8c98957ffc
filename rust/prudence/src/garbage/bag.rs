// SPDX-License-Identifier: MIT
//! A bag: entries that wait for one grace period, in one object of the library.
//!
//! A bag has one owner at a time: the thread that fills it, then the library until readers have left,
//! then the thread that calls its entries.

use super::{Entry, Garbage};
use crate::global;
use prudence_sys as sys;
use std::alloc::{handle_alloc_error, Layout};
use std::mem::{self, MaybeUninit};
use std::ptr::{self, NonNull};

/// Entries of a bag, so that it has 2,048 bytes.
pub(crate) const CAPACITY: usize = 62;

/// The head is first, so that both have one address.
#[repr(C)]
pub(super) struct Bag {
    pub(super) head: sys::prudence_head,
    pub(super) garbage: *const Garbage,
    /// Neighbours among the closed bags of a collector; see [`super::closed`].
    pub(super) next: *mut Bag,
    pub(super) previous: *mut Bag,
    /// The sections of threads that were open when the bag was closed have ended; now it waits for
    /// those of owned guards.
    pub(super) threads_left: bool,
    /// The two that use a bag which was taken from the closed ones, under their lock: the thread that
    /// took it, and the library. The last frees it.
    pub(super) users: u32,
    count: u32,
    entries: [MaybeUninit<Entry>; CAPACITY],
}

impl Bag {
    /// Makes an empty bag. Ends the process if there is no memory.
    pub(super) fn new() -> NonNull<Bag> {
        let layout = Layout::new::<Bag>();
        let bag = NonNull::new(global::allocate(layout).cast::<Bag>());
        let bag = bag.unwrap_or_else(|| handle_alloc_error(layout));
        // SAFETY: the memory is new and of this layout. The entries are written when they are pushed.
        unsafe {
            let bag = bag.as_ptr();
            ptr::addr_of_mut!((*bag).head)
                .write(sys::prudence_head { next: ptr::null_mut(), func: None });
            ptr::addr_of_mut!((*bag).garbage).write(ptr::null());
            ptr::addr_of_mut!((*bag).next).write(ptr::null_mut());
            ptr::addr_of_mut!((*bag).previous).write(ptr::null_mut());
            ptr::addr_of_mut!((*bag).threads_left).write(false);
            ptr::addr_of_mut!((*bag).users).write(0);
            ptr::addr_of_mut!((*bag).count).write(0);
        }
        bag
    }

    /// Adds an entry to a bag that is not full, and returns how many it has now.
    #[inline]
    pub(super) fn push(&mut self, entry: Entry) -> usize {
        let count = self.count as usize;
        self.entries[count] = MaybeUninit::new(entry);
        self.count += 1;
        count + 1
    }

    /// Calls the entries, oldest first, and leaves the bag empty.
    pub(super) fn call(&mut self, garbage: &Garbage) {
        let count = mem::take(&mut self.count) as usize;
        for entry in &self.entries[..count] {
            // SAFETY: `push` wrote these, and each is moved out once.
            unsafe { entry.as_ptr().read() }.call(garbage);
        }
    }

    /// # Safety
    ///
    /// The caller owns the bag, whose entries have been called.
    pub(super) unsafe fn free(bag: NonNull<Bag>) {
        // SAFETY: `new` allocated it; an entry that was moved out needs no drop.
        unsafe { sys::prudence_free(bag.as_ptr().cast()) }
    }
}
