// SPDX-License-Identifier: MIT
//! The closed bags of a collector. A collector that is dropped has no readers, and calls them itself.
//!
//! The lock is held for a few instructions, never while entries are called.

use super::bag::Bag;
use super::Garbage;
use std::cell::Cell;
use std::ptr::{self, NonNull};
use std::sync::{Condvar, Mutex, MutexGuard};

thread_local! {
    /// The garbage whose entries this thread is calling, as the library's callback.
    static CALLING: Cell<*const Garbage> = const { Cell::new(ptr::null()) };
}

pub(super) struct Closed {
    list: Mutex<List>,
    /// A callback has returned from the entries of a bag.
    returned: Condvar,
}

struct List {
    newest: *mut Bag,
    /// Callbacks that are calling entries.
    calling: usize,
}

// SAFETY: the list has the bags, whose entries may go to other threads.
unsafe impl Send for List {}

impl Closed {
    pub(super) fn new() -> Closed {
        let list = List { newest: ptr::null_mut(), calling: 0 };
        Closed { list: Mutex::new(list), returned: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap() // nothing panics under the lock
    }

    /// Adds a bag.
    ///
    /// # Safety
    ///
    /// The caller owns the bag, and queues it with the library next.
    pub(super) unsafe fn add(&self, bag: NonNull<Bag>) {
        // SAFETY: as the caller promises. Bags in the list are there until they leave it.
        unsafe { self.lock().add(bag.as_ptr()) }
    }

    /// Takes a bag out of the list. The caller calls its entries, and then [`gives up`](Closed::give_up)
    /// the bag.
    pub(super) fn take(&self) -> Option<NonNull<Bag>> {
        let mut list = self.lock();
        let bag = NonNull::new(list.newest)?;
        // SAFETY: bags in the list are there until they leave it.
        unsafe {
            list.remove(bag.as_ptr());
            (*bag.as_ptr()).users = 2;
        }
        Some(bag)
    }

    /// Returns whether the caller frees a bag that was taken, because the other user has given it up.
    ///
    /// # Safety
    ///
    /// The caller is one of the two users, and does not use the bag afterwards, except to free it.
    pub(super) unsafe fn give_up(&self, bag: NonNull<Bag>) -> bool {
        let _list = self.lock();
        // SAFETY: as the caller promises.
        unsafe {
            (*bag.as_ptr()).users -= 1;
            (*bag.as_ptr()).users == 0
        }
    }

    /// Calls a bag's entries, unless the bag was taken. Returns whether the caller frees the bag.
    ///
    /// # Safety
    ///
    /// The library calls this, once, after readers have left.
    pub(super) unsafe fn call(&self, bag: NonNull<Bag>, garbage: &Garbage) -> bool {
        let (given, bag) = (bag, bag.as_ptr());
        let mut list = self.lock();
        // SAFETY: as long as the bag is in the list, it is there; out of it, it is this call's.
        unsafe {
            if (*bag).users != 0 {
                drop(list);
                return self.give_up(given);
            }
            list.remove(bag);
            list.calling += 1;
            drop(list);
            let outer = CALLING.with(|calling| calling.replace(garbage));
            (*bag).call(garbage);
            CALLING.with(|calling| calling.set(outer));
        }
        self.lock().calling -= 1;
        self.returned.notify_all();
        true
    }

    /// Waits until no other thread is calling entries. Returns whether one was.
    pub(super) fn wait(&self, garbage: &Garbage) -> bool {
        let own = CALLING.with(|calling| ptr::eq(calling.get(), garbage)) as usize;
        let mut list = self.lock();
        let waits = list.calling > own;
        while list.calling > own {
            list = self.returned.wait(list).unwrap();
        }
        waits
    }
}

impl List {
    unsafe fn add(&mut self, bag: *mut Bag) {
        // SAFETY: the caller has the bag, and the list has the others.
        unsafe {
            (*bag).next = self.newest;
            if !self.newest.is_null() {
                (*self.newest).previous = bag;
            }
        }
        self.newest = bag;
    }

    unsafe fn remove(&mut self, bag: *mut Bag) {
        // SAFETY: the bag and its neighbours are in the list.
        unsafe {
            let (next, previous) = ((*bag).next, (*bag).previous);
            if previous.is_null() {
                self.newest = next;
            } else {
                (*previous).next = next;
            }
            if !next.is_null() {
                (*next).previous = previous;
            }
        }
    }
}
