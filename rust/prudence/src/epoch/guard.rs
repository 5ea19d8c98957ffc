// SPDX-License-Identifier: MIT
//! Guards: sections of the library's default domain, as values.
//!
//! A thread counts its guards, and only the first enters a section. So there may be any number of
//! them, although sections of C nest 1,023 deep. Guards may be dropped in any order.
//!
//! A signal handler may pin, if it drops what it pins: the count changes after the section was
//! entered and before it is left, so a handler that sees the old count enters a nested section.

use super::{Collector, Shared};
use crate::garbage::{Entry, EPOCHS};
use crate::global;
use prudence_sys as sys;
use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::mem;
use std::process;

thread_local! {
    /// Guards of this thread. Without a destructor, so that it lasts as long as the thread.
    static GUARDS: Cell<usize> = const { Cell::new(0) };
}

#[inline]
fn enter() {
    GUARDS.with(|guards| {
        if guards.get() == 0 {
            // SAFETY: takes nothing; `leave` ends the section.
            unsafe { sys::prudence_read_lock() }
        }
        match guards.get().checked_add(1) {
            Some(more) => guards.set(more),
            None => process::abort(), // guards were forgotten
        }
    });
}

#[inline]
fn leave() {
    GUARDS.with(|guards| {
        guards.set(guards.get() - 1);
        if guards.get() == 0 {
            // SAFETY: `enter` entered this section, in this thread, because guards are not sent.
            unsafe { sys::prudence_read_unlock() }
        }
    });
}

/// Keeps what is deferred from now on alive until it is dropped.
///
/// ```compile_fail
/// // A guard stays in its thread.
/// let guard = prudence::pin();
/// std::thread::spawn(move || drop(guard));
/// ```
pub struct Guard {
    protects: bool,
    /// The section belongs to a thread, so a guard is neither `Send` nor `Sync`.
    thread: PhantomData<*mut ()>,
}

/// Pins the current thread: enters a section that ends when the guard is dropped. Never waits.
#[inline]
pub fn pin() -> Guard {
    enter();
    Guard { protects: true, thread: PhantomData }
}

/// Returns whether this thread has a guard.
#[inline]
pub fn is_pinned() -> bool {
    GUARDS.with(Cell::get) != 0
}

/// Returns a guard that protects nothing. What is deferred with it ends at once.
///
/// # Safety
///
/// While pointers that were loaded with it are used, no other thread changes what they were loaded
/// from. What is deferred with it is used by nobody else.
#[inline]
pub unsafe fn unprotected() -> &'static Guard {
    struct Shareable(Guard);
    // SAFETY: a guard that protects nothing has nothing of a thread.
    unsafe impl Sync for Shareable {}
    static UNPROTECTED: Shareable = Shareable(Guard { protects: false, thread: PhantomData });
    &UNPROTECTED.0
}

impl Guard {
    /// Calls `function` on a thread of the library, once all guards that exist now are gone.
    ///
    /// ```compile_fail
    /// // What a function takes along must be allowed to go to another thread.
    /// let local = std::rc::Rc::new(1);
    /// prudence::pin().defer(move || drop(local));
    /// ```
    ///
    /// ```compile_fail
    /// // It must not borrow what ends before the function is called.
    /// let number = 1;
    /// prudence::pin().defer(|| assert_eq!(number, 1));
    /// ```
    pub fn defer<F, R>(&self, function: F)
    where
        F: FnOnce() -> R + Send + 'static,
    {
        // SAFETY: by the bounds of `F`.
        unsafe { self.defer_unchecked(function) }
    }

    /// Works like [`defer`](Guard::defer), without its bounds.
    ///
    /// # Safety
    ///
    /// `function` may be called on another thread, and whenever it may be called, what it borrows is
    /// still there.
    pub unsafe fn defer_unchecked<F, R>(&self, function: F)
    where
        F: FnOnce() -> R,
    {
        if self.protects {
            // SAFETY: as the caller promises. The reference is to a static.
            unsafe { EPOCHS.add(Entry::new(move |_| drop(function()))) }
        } else {
            drop(function());
        }
    }

    /// Drops `value` on a thread of the library, once all guards that exist now are gone: for values
    /// that readers reach by other ways than a pointer, such as an index or a file descriptor.
    ///
    /// ```compile_fail
    /// // A value that stays in its thread is not deferred.
    /// prudence::pin().defer_value(std::rc::Rc::new(1));
    /// ```
    pub fn defer_value<T: Send + 'static>(&self, value: T) {
        self.defer(move || drop(value));
    }

    /// Drops the object and frees its memory, once all guards that exist now are gone. If the type has
    /// no drop glue, and [`global_allocator!`](crate::global_allocator) installed the allocator, the
    /// memory is deferred to the allocator, and no callback runs. Null is ignored.
    ///
    /// # Safety
    ///
    /// The object is unlinked, so that later guards cannot find it; it is not deferred or dropped a
    /// second time; it came from an `Owned` or a `Box`; and it may be dropped on another thread.
    pub unsafe fn defer_destroy<T>(&self, shared: Shared<'_, T>) {
        if shared.is_null() {
            return;
        }
        if mem::needs_drop::<T>() || !global::is_plain() || !self.protects {
            // SAFETY: as the caller promises.
            unsafe { self.defer_unchecked(move || shared.into_owned()) }
        } else if mem::size_of::<T>() != 0 {
            // SAFETY: the pointer is that of a box whose memory the library has, and dropping the box
            // would do nothing but free it.
            unsafe { sys::prudence_free_deferred(shared.as_raw() as *mut _) }
        }
    }

    /// Requests a grace period, so that what was deferred ends soon. Never waits.
    pub fn flush(&self) {
        if self.protects {
            // SAFETY: takes nothing; may be called in any thread.
            unsafe { sys::prudence_gp_start_poll() };
        }
    }

    /// Leaves the section and enters a new one, unless the thread has other guards. Pointers that
    /// were loaded before cannot be used after, because they borrow the guard.
    ///
    /// ```compile_fail
    /// use prudence::epoch::{self, Atomic};
    /// use std::sync::atomic::Ordering::Acquire;
    /// let place = Atomic::new(1);
    /// let mut guard = epoch::pin();
    /// let found = place.load(Acquire, &guard);
    /// guard.repin();
    /// assert!(!found.is_null());
    /// ```
    pub fn repin(&mut self) {
        // `prudence_epoch_repin` is slower here, because each call would look for the thread's record.
        if self.protects {
            leave();
            enter();
        }
    }

    /// Calls `function` with this guard's protection suspended.
    pub fn repin_after<F, R>(&mut self, function: F) -> R
    where
        F: FnOnce() -> R,
    {
        /// Enters again, also when `function` panics, because the guard will leave.
        struct Enter(bool);
        impl Drop for Enter {
            fn drop(&mut self) {
                if self.0 {
                    enter();
                }
            }
        }
        if self.protects {
            leave();
        }
        let _enter = Enter(self.protects);
        function()
    }

    /// Returns the collector that this guard belongs to, if it protects anything.
    pub fn collector(&self) -> Option<&Collector> {
        self.protects.then(super::default_collector)
    }
}

impl Drop for Guard {
    #[inline]
    fn drop(&mut self) {
        if self.protects {
            leave();
        }
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("protects", &self.protects).finish_non_exhaustive()
    }
}
