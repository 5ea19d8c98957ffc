// SPDX-License-Identifier: MIT
//! A bag: entries that wait for one grace period, in one object of the library. [`Chain`] has bags in
//! the order in which they were closed.
//!
//! A bag has one owner at a time: the thread that fills it, then the chain that has it, then the
//! thread that calls its entries.

use super::lanes::Lane;
use super::{Entry, Garbage};
use crate::global;
use prudence_sys as sys;
use std::alloc::{handle_alloc_error, Layout};
use std::mem;
use std::ptr::{self, NonNull};
use std::sync::atomic::{fence, Ordering::Release};

/// The most entries of a bag, so that it has 2,048 bytes.
pub(crate) const CAPACITY: usize = 62;

/// The head of a bag; room for `capacity` entries follows, of which the first `count` are there.
#[repr(C)]
pub(super) struct Bag {
    pub(super) next: *mut Bag,
    count: usize,
    capacity: usize,
}

impl Bag {
    /// Makes an empty bag. Ends the process if there is no memory.
    pub(super) fn new(capacity: usize) -> NonNull<Bag> {
        let room = Layout::array::<Entry>(capacity).expect("a bag is small");
        let (layout, _) = Layout::new::<Bag>().extend(room).expect("a bag is small");
        let bag = NonNull::new(global::allocate(layout).cast::<Bag>());
        let bag = bag.unwrap_or_else(|| handle_alloc_error(layout));
        // SAFETY: the memory is new and of this layout. The entries are written when they are pushed.
        unsafe { bag.as_ptr().write(Bag { next: ptr::null_mut(), count: 0, capacity }) };
        bag
    }

    /// # Safety
    ///
    /// The caller owns the bag, and `index` is below the capacity.
    #[inline]
    unsafe fn place(bag: NonNull<Bag>, index: usize) -> *mut Entry {
        // SAFETY: the room follows the head, which has the same alignment.
        unsafe { bag.as_ptr().add(1).cast::<Entry>().add(index) }
    }

    /// Adds an entry, and returns whether the bag is full.
    ///
    /// # Safety
    ///
    /// The caller owns the bag, which is not full.
    #[inline]
    pub(super) unsafe fn push(bag: NonNull<Bag>, entry: Entry) -> bool {
        // SAFETY: as the caller promises.
        unsafe {
            let count = (*bag.as_ptr()).count;
            Bag::place(bag, count).write(entry);
            (*bag.as_ptr()).count = count + 1;
            count + 1 >= (*bag.as_ptr()).capacity
        }
    }

    /// # Safety
    ///
    /// The caller owns the bag.
    pub(super) unsafe fn count(bag: NonNull<Bag>) -> usize {
        // SAFETY: as the caller promises.
        unsafe { (*bag.as_ptr()).count }
    }

    /// # Safety
    ///
    /// The caller owns the bag.
    pub(super) unsafe fn is_empty(bag: NonNull<Bag>) -> bool {
        // SAFETY: as the caller promises.
        unsafe { Bag::count(bag) == 0 }
    }

    /// Puts an empty bag into a lane, unless another thread has used that.
    ///
    /// # Safety
    ///
    /// The caller owns the bag, which is empty.
    pub(super) unsafe fn put_back_or_free(bag: NonNull<Bag>, lane: &Lane) {
        if !lane.put(bag, ptr::null_mut()) {
            // SAFETY: as the caller promises.
            unsafe { Bag::free(bag) }
        }
    }

    /// # Safety
    ///
    /// The caller owns the bag, whose entries have been moved out.
    pub(super) unsafe fn free(bag: NonNull<Bag>) {
        // SAFETY: `new` allocated it.
        unsafe { sys::prudence_free(bag.as_ptr().cast()) }
    }

    /// Moves the entries to a bag that has room for no more, if that saves memory. Otherwise returns
    /// `None`, and the bag is as it was.
    ///
    /// # Safety
    ///
    /// The caller owns the bag.
    pub(super) unsafe fn split(bag: NonNull<Bag>) -> Option<NonNull<Bag>> {
        // SAFETY: as the caller promises.
        unsafe {
            let count = (*bag.as_ptr()).count;
            if count > (*bag.as_ptr()).capacity / 2 {
                return None;
            }
            let small = Bag::new(count);
            ptr::copy_nonoverlapping(Bag::place(bag, 0), Bag::place(small, 0), count);
            (*small.as_ptr()).count = count;
            (*bag.as_ptr()).count = 0;
            Some(small)
        }
    }

    /// Calls the entries, oldest first, and frees the bag. Returns how many there were.
    ///
    /// # Safety
    ///
    /// The caller owns the bag.
    unsafe fn call(bag: NonNull<Bag>, garbage: &Garbage) -> usize {
        // SAFETY: as the caller promises: the first `count` are there, and each is moved out once.
        unsafe {
            let count = (*bag.as_ptr()).count;
            for index in 0..count {
                Bag::place(bag, index).read().call(garbage);
            }
            Bag::free(bag);
            count
        }
    }
}

/// Closed bags, oldest first. `last` is of no meaning while `first` is null.
pub(super) struct Chain {
    first: *mut Bag,
    pub(super) last: *mut Bag,
}

// SAFETY: the bags' entries may go to other threads, as the callers of `Garbage::add` promise.
unsafe impl Send for Chain {}

impl Chain {
    pub(super) const fn new() -> Chain {
        Chain { first: ptr::null_mut(), last: ptr::null_mut() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first.is_null()
    }

    /// Takes a stack of bags, the newest of which is on top.
    ///
    /// # Safety
    ///
    /// The caller owns the bags.
    pub(super) unsafe fn of_stack(newest: *mut Bag) -> Chain {
        let mut chain = Chain { first: ptr::null_mut(), last: newest };
        let mut bag = newest;
        while !bag.is_null() {
            // SAFETY: as the caller promises.
            let older = unsafe { mem::replace(&mut (*bag).next, chain.first) };
            chain.first = bag;
            bag = older;
        }
        chain
    }

    /// A child that is forked in the middle finds the bags of `other` in no two chains, and in their
    /// order, because the fence is after all that made `other`. Only `last` may be wrong.
    pub(super) fn append(&mut self, other: Chain) {
        fence(Release);
        if self.is_empty() {
            *self = other;
        } else if !other.is_empty() {
            // SAFETY: the chain has its bags.
            unsafe { (*self.last).next = other.first };
            self.last = other.last;
        }
    }

    /// Finds the last bag, in a child whose parent's thread may have been changing the chain.
    pub(super) fn find_last(&mut self) {
        let mut bag = self.first;
        while !bag.is_null() {
            self.last = bag;
            // SAFETY: the chain has its bags.
            bag = unsafe { (*bag).next };
        }
    }

    pub(super) fn take_all(&mut self) -> Chain {
        mem::replace(self, Chain::new())
    }

    /// Takes up to `most` bags, the oldest.
    pub(super) fn take(&mut self, most: usize) -> Chain {
        let mut last = ptr::null_mut();
        let mut rest = self.first;
        for _ in 0..most {
            if rest.is_null() {
                break;
            }
            last = rest;
            // SAFETY: the chain has its bags.
            rest = unsafe { (*rest).next };
        }
        if last.is_null() {
            return Chain::new();
        }
        let taken = Chain { first: self.first, last };
        // SAFETY: as above.
        unsafe { (*last).next = ptr::null_mut() };
        self.first = rest;
        taken
    }

    /// Calls the entries of all bags, oldest first, and frees the bags. Returns how many entries there
    /// were.
    pub(super) fn call(self, garbage: &Garbage) -> usize {
        let mut count = 0;
        let mut bag = self.first;
        while let Some(present) = NonNull::new(bag) {
            // SAFETY: the chain has its bags, and is consumed.
            unsafe {
                bag = (*bag).next;
                count += Bag::call(present, garbage);
            }
        }
        count
    }
}
