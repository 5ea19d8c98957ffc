// SPDX-License-Identifier: MIT
//! Drops on a thread of the program's choice.
//!
//! When readers have ended, a thread that uses [`epoch`](crate::epoch) pushes the value on a stack of its
//! reclaimer, whose thread drops it in [`Reclaimer::drain`]. The stack is lock-free, and a value has its node from the
//! start, so the push neither waits nor needs memory. A stack whose reclaimer has ended is closed by
//! [`CLOSED`]; values that come later are leaked, because no other thread may drop them.

use crate::epoch::{Owned, Pointer, Shared};
use crate::garbage::{Entry, EPOCHS};
use crate::wait;
use std::io;
use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::*};
use std::sync::Arc;

/// A value that waits. The head is first, so that both have one address.
#[repr(C)]
struct Node<T> {
    head: Head,
    value: T,
}

struct Head {
    next: *mut Head,
    end: unsafe fn(*mut Head),
}

/// The top of a stack that takes no more. No node has this address, because nodes are aligned.
const CLOSED: *mut Head = 1 as *mut Head;

struct Stack {
    top: AtomicPtr<Head>,
}

impl Stack {
    /// Pushes a node. Release: the reclaimer's thread sees all that readers did.
    ///
    /// # Safety
    ///
    /// The caller owns the node.
    unsafe fn push(&self, node: *mut Head) {
        let mut top = self.top.load(Relaxed);
        while top != CLOSED {
            // SAFETY: as the caller promises, until the exchange.
            unsafe { (*node).next = top };
            match self.top.compare_exchange_weak(top, node, Release, Relaxed) {
                Ok(_) => return,
                Err(found) => top = found,
            }
        }
    }
}

/// Drops values on the thread that made it.
///
/// The thread calls [`drain`](Reclaimer::drain) whenever that suits it, for example once in each round
/// of its event loop.
///
/// ```
/// let reclaimer = prudence::Reclaimer::new();
/// let old = std::rc::Rc::new("stays in this thread");
/// reclaimer.defer_value(old.clone()); // dropped here, when readers have ended
/// # drop(reclaimer);
/// # assert_eq!(std::rc::Rc::strong_count(&old), 1);
/// ```
///
/// Dropping the reclaimer waits until all its values have come back, and drops them. While the
/// thread is pinned nothing can wait; then values that come later are leaked.
///
/// ```compile_fail
/// // A reclaimer stays in its thread.
/// let reclaimer = prudence::Reclaimer::new();
/// std::thread::spawn(move || reclaimer.drain());
/// ```
pub struct Reclaimer {
    home: Home,
    thread: PhantomData<*mut ()>,
}

/// Sends values to a [`Reclaimer`] from any thread.
#[derive(Clone)]
pub struct Home {
    stack: Arc<Stack>,
}

impl Reclaimer {
    /// Makes a reclaimer for the current thread.
    #[must_use]
    pub fn new() -> Reclaimer {
        let stack = Arc::new(Stack { top: AtomicPtr::new(ptr::null_mut()) });
        Reclaimer { home: Home { stack }, thread: PhantomData }
    }

    /// Returns the handle that other threads send values with.
    #[must_use]
    pub fn home(&self) -> Home {
        self.home.clone()
    }

    /// Drops `value` in a later [`drain`](Reclaimer::drain), once all guards that exist now are gone.
    pub fn defer_value<T: 'static>(&self, value: T) {
        // SAFETY: other threads move the value's node, and only this thread drops the value.
        unsafe { self.home.send(value) }
    }

    /// Drops the values whose readers have ended, and returns how many there were. Never waits. Unless the
    /// thread is pinned, deferred functions run here as well.
    pub fn drain(&self) -> usize {
        EPOCHS.close_all();
        EPOCHS.collect_outside();
        self.end_all(self.home.stack.top.swap(ptr::null_mut(), Acquire))
    }

    /// Waits until all values that were deferred before have come back, and drops them. Returns how
    /// many there were.
    ///
    /// # Errors
    ///
    /// As for [`barrier`](crate::barrier).
    pub fn barrier(&self) -> io::Result<usize> {
        wait::barrier()?;
        Ok(self.drain())
    }

    /// Drops the values of a chain that was taken from the stack, oldest first.
    fn end_all(&self, mut newest: *mut Head) -> usize {
        let mut oldest = ptr::null_mut();
        while !newest.is_null() {
            // SAFETY: whoever takes nodes from the stack owns them.
            let next = unsafe { std::mem::replace(&mut (*newest).next, oldest) };
            oldest = newest;
            newest = next;
        }
        let mut rest = Chain { first: oldest, count: 0 };
        while rest.end_first() {}
        rest.count
    }
}

/// Nodes of a reclaimer's thread. If dropping one value panics, the others are dropped as well.
struct Chain {
    first: *mut Head,
    count: usize,
}

impl Chain {
    fn end_first(&mut self) -> bool {
        let head = self.first;
        if head.is_null() {
            return false;
        }
        self.count += 1;
        // SAFETY: this thread owns the nodes, and `end` is that of the node's type.
        unsafe {
            self.first = (*head).next;
            ((*head).end)(head);
        }
        true
    }
}

impl Drop for Chain {
    fn drop(&mut self) {
        while self.end_first() {}
    }
}

impl Home {
    /// Drops `value` on the reclaimer's thread, once all guards that exist now are gone.
    pub fn defer_value<T: Send + 'static>(&self, value: T) {
        // SAFETY: by the bounds of T.
        unsafe { self.send(value) }
    }

    /// Drops the object and frees its memory on the reclaimer's thread, once all guards that exist now
    /// are gone. Null is ignored.
    ///
    /// # Safety
    ///
    /// As for [`Guard::defer_destroy`](crate::Guard::defer_destroy), but the object need not be `Send`
    /// if the reclaimer's thread made it.
    pub unsafe fn defer_destroy<T: 'static>(&self, shared: Shared<'_, T>) {
        if !shared.is_null() {
            // SAFETY: as the caller promises.
            unsafe { self.send(Owned::<T>::from_ptr(shared.into_ptr())) }
        }
    }

    /// # Safety
    ///
    /// The reclaimer's thread may drop the value.
    unsafe fn send<T: 'static>(&self, value: T) {
        let head = Head { next: ptr::null_mut(), end: end::<T> };
        let node = Box::into_raw(Box::new(Node { head, value })).cast::<Head>();
        let stack = Arc::clone(&self.stack);
        // SAFETY: the stack and the node may go to other threads. The garbage is a static.
        unsafe { EPOCHS.add(Entry::new(move |_| stack.push(node))) }
    }
}

unsafe fn end<T>(head: *mut Head) {
    // SAFETY: `send` made the node of a T, and the caller owns it.
    drop(unsafe { Box::from_raw(head.cast::<Node<T>>()) });
}

impl Default for Reclaimer {
    fn default() -> Reclaimer {
        Reclaimer::new()
    }
}

impl Drop for Reclaimer {
    fn drop(&mut self) {
        let _ = self.barrier(); // refused while the thread is pinned
        let last = self.home.stack.top.swap(CLOSED, Acquire);
        self.end_all(last);
    }
}
