// SPDX-License-Identifier: MIT
//! Guards: sections of the library's default domain, as values.
//!
//! All guards of a thread are one section ([`crate::thread`]).

use super::collector::Local;
use super::{default_collector, Collector, Shared};
use crate::garbage::Entry;
use crate::{global, thread};
use prudence_sys as sys;
use std::fmt;
use std::marker::PhantomData;
use std::mem;
use std::ptr;

/// Keeps objects deferred from now on alive until the guard is dropped.
///
/// ```compile_fail
/// // A guard stays in its thread.
/// let guard = prudence::pin();
/// std::thread::spawn(move || drop(guard));
/// ```
#[must_use = "a guard protects while it is kept"]
pub struct Guard {
    /// Null: the guard protects nothing.
    collector: *const Collector,
    /// The part that counts this guard; null: none does, because the collector is the default one.
    local: *const Local,
    /// Events of the collector when the section began.
    seen: usize,
    /// The section belongs to a thread, so a guard is neither `Send` nor `Sync`.
    thread: PhantomData<*mut ()>,
}

/// Pins the current thread: enters a section that ends when the guard is dropped. Never waits.
#[inline]
pub fn pin() -> Guard {
    // SAFETY: the default collector lasts as long as the process.
    unsafe { Guard::enter(default_collector(), ptr::null()) }
}

/// Returns whether this thread has a guard, of any collector.
#[inline]
#[must_use]
pub fn is_pinned() -> bool {
    thread::is_pinned()
}

/// Returns a guard that protects nothing. Objects deferred with it end at once.
///
/// # Safety
///
/// While pointers that were loaded with it are used, no other thread changes the places they were
/// loaded from. No other thread uses objects deferred with it.
#[inline]
pub unsafe fn unprotected() -> &'static Guard {
    struct Shareable(Guard);
    // SAFETY: a guard that protects nothing has nothing of a thread.
    unsafe impl Sync for Shareable {}
    static UNPROTECTED: Shareable = Shareable(Guard {
        collector: ptr::null(),
        local: ptr::null(),
        seen: 0,
        thread: PhantomData,
    });
    &UNPROTECTED.0
}

impl Guard {
    /// # Safety
    ///
    /// The collector is there until the guard is dropped, for which `local` counts it.
    #[inline]
    pub(super) unsafe fn enter(collector: *const Collector, local: *const Local) -> Guard {
        thread::enter();
        // SAFETY: as the caller promises.
        let seen = unsafe { (*collector).garbage().events() };
        Guard { collector, local, seen, thread: PhantomData }
    }

    /// Leaves the section; the thread's last guard calls functions that waited for it.
    #[inline]
    fn leave(&self, collector: &Collector) {
        if thread::leave() {
            collector.garbage().look(self.seen);
        }
    }

    #[inline]
    fn enter_again(&mut self) {
        thread::enter();
        // SAFETY: the guard protects something, so it has a collector.
        self.seen = unsafe { (*self.collector).garbage().events() };
    }

    /// Calls `function` once all guards that exist now are gone: in a later call on this collector by
    /// any thread, or where the collector ends.
    ///
    /// ```compile_fail
    /// // The captures of a function must be allowed to go to another thread.
    /// let local = std::rc::Rc::new(1);
    /// prudence::pin().defer(move || drop(local));
    /// ```
    ///
    /// ```compile_fail
    /// // The function must not borrow values that end before it is called.
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
    /// A thread that uses the collector may call `function`, and borrowed values live as long
    /// as the collector.
    pub unsafe fn defer_unchecked<F, R>(&self, function: F)
    where
        F: FnOnce() -> R,
    {
        match self.collector() {
            // SAFETY: as the caller promises.
            Some(collector) => unsafe {
                collector.garbage().add(Entry::new(move |_| drop(function())))
            },
            None => drop(function()),
        }
    }

    /// Drops `value` once all guards that exist now are gone, as [`defer`](Guard::defer) does: for values
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
        if mem::needs_drop::<T>() || !global::is_plain() || self.collector.is_null() {
            // SAFETY: as the caller promises.
            unsafe { self.defer_unchecked(move || shared.into_owned()) }
        } else if mem::size_of::<T>() != 0 {
            // SAFETY: the pointer is that of a box whose memory the library has, and dropping the box
            // would do nothing but free it.
            unsafe { sys::prudence_free_deferred(shared.as_raw() as *mut _) }
        }
    }

    /// Closes this thread's bag of deferred functions. They are called when this guard is dropped,
    /// if no other guard is blocking. Never waits.
    pub fn flush(&self) {
        if let Some(collector) = self.collector() {
            collector.garbage().close_own();
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
        // `prudence_epoch_repin` is slower here, because each call would search for the thread's record.
        if let Some(collector) = self.collector() {
            self.leave(collector);
            self.enter_again();
        }
    }

    /// Calls `function` with this guard's protection suspended.
    pub fn repin_after<F, R>(&mut self, function: F) -> R
    where
        F: FnOnce() -> R,
    {
        /// Enters again, also when `function` panics, because the guard will leave.
        struct Enter<'a>(&'a mut Guard);
        impl Drop for Enter<'_> {
            fn drop(&mut self) {
                if !self.0.collector.is_null() {
                    self.0.enter_again();
                }
            }
        }
        if let Some(collector) = self.collector() {
            self.leave(collector);
        }
        let _enter = Enter(self);
        function()
    }

    /// Returns the collector that this guard belongs to, if it protects anything.
    #[inline]
    #[must_use]
    pub fn collector(&self) -> Option<&Collector> {
        // SAFETY: null, or a collector that is there as long as the guard.
        unsafe { self.collector.as_ref() }
    }
}

impl Drop for Guard {
    #[inline]
    fn drop(&mut self) {
        if let Some(collector) = self.collector() {
            self.leave(collector);
            if !self.local.is_null() {
                // SAFETY: the part has counted this guard.
                unsafe { Local::give_up_guard(self.local) }
            }
        }
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("protects", &!self.collector.is_null())
            .finish_non_exhaustive()
    }
}
