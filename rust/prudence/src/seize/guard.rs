// SPDX-License-Identifier: MIT
//! The methods of both kinds of guards. They differ in how their section begins anew and ends.

use super::Collector;
use crate::thread;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Keeps values retired from now on alive until the guard is dropped.
///
/// A pointer that was loaded while the guard exists is valid until the guard is dropped or refreshed,
/// or until this thread retires the value with [`Collector::retire`]. The methods that load exist for
/// signatures' sake: a plain load is protected as well.
pub trait Guard {
    /// Ends the protection of earlier loads, and protects later ones.
    fn refresh(&mut self);

    /// Closes this thread's bag of retired values. They are reclaimed when this guard is
    /// dropped, if no other guard is blocking. Never waits.
    fn flush(&self) {
        self.collector().garbage().close_own();
    }

    /// Returns the collector that made this guard.
    fn collector(&self) -> &Collector;

    /// Returns a number of the current thread. Numbers begin with 0, and no two threads have the same.
    #[inline]
    fn thread_id(&self) -> usize {
        thread::thread_id()
    }

    /// Loads a pointer.
    #[inline]
    fn protect<T>(&self, ptr: &AtomicPtr<T>, order: Ordering) -> *mut T {
        ptr.load(order)
    }

    /// Stores `value`, and returns the pointer from before.
    #[inline]
    fn swap<T>(&self, ptr: &AtomicPtr<T>, value: *mut T, order: Ordering) -> *mut T {
        ptr.swap(value, order)
    }

    /// Works like [`AtomicPtr::compare_exchange`].
    ///
    /// # Errors
    ///
    /// The pointer that was found.
    #[inline]
    fn compare_exchange<T>(
        &self,
        ptr: &AtomicPtr<T>,
        current: *mut T,
        new: *mut T,
        success: Ordering,
        failure: Ordering,
    ) -> Result<*mut T, *mut T> {
        ptr.compare_exchange(current, new, success, failure)
    }

    /// Works like [`AtomicPtr::compare_exchange_weak`].
    ///
    /// # Errors
    ///
    /// The pointer that was found.
    #[inline]
    fn compare_exchange_weak<T>(
        &self,
        ptr: &AtomicPtr<T>,
        current: *mut T,
        new: *mut T,
        success: Ordering,
        failure: Ordering,
    ) -> Result<*mut T, *mut T> {
        ptr.compare_exchange_weak(current, new, success, failure)
    }

    /// Works like [`Collector::retire`]. Values that this guard protects stay valid until it is
    /// dropped.
    ///
    /// # Safety
    ///
    /// As for [`Collector::retire`].
    #[inline]
    unsafe fn defer_retire<T>(&self, ptr: *mut T, reclaim: unsafe fn(*mut T, &Collector)) {
        // SAFETY: as the caller promises.
        unsafe { self.collector().retire(ptr, reclaim) }
    }
}
