// SPDX-License-Identifier: MIT
//! A slot of the library, as a value.
//!
//! The slot is a movable one: it belongs to no thread, and protects until it is released. A slot of a
//! thread would end with the thread, although a reference to the named object may have been sent
//! on.

use super::AtomicBox;
use prudence_sys as sys;
use std::alloc::{handle_alloc_error, Layout};
use std::ffi::c_void;
use std::fmt;
use std::ptr::NonNull;
use std::sync::atomic::AtomicPtr;

/// Names one object at a time, which is not dropped while named. It may go from thread to thread.
/// One that is leaked keeps its object for ever.
///
/// ```compile_fail
/// // It protects one object at a time.
/// use prudence::hazard::{AtomicBox, HazardPointer};
/// let (one, two) = (AtomicBox::new(1), AtomicBox::new(2));
/// let mut hazard = HazardPointer::new();
/// let first = hazard.protect(&one);
/// let second = hazard.protect(&two);
/// assert_ne!(first, second);
/// ```
///
/// ```compile_fail
/// // The protected object does not outlive it.
/// use prudence::hazard::{AtomicBox, HazardPointer};
/// let place = AtomicBox::new(1);
/// let found = HazardPointer::new().protect(&place);
/// assert_eq!(found, Some(&1));
/// ```
#[must_use = "a hazard pointer protects while it is kept"]
pub struct HazardPointer {
    slot: NonNull<sys::prudence_hazard>,
}

// SAFETY: any thread may use a movable slot, one at a time.
unsafe impl Send for HazardPointer {}
// SAFETY: a shared reference gives nothing but the slot's address.
unsafe impl Sync for HazardPointer {}

/// A writer replaced the object between the two checks of [`HazardPointer::try_protect`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Changed;

impl HazardPointer {
    /// Makes a hazard pointer, which names nothing. Without memory, ends as `Box::new` does.
    #[inline]
    pub fn new() -> HazardPointer {
        // SAFETY: takes nothing; may be called in any thread.
        let slot = unsafe { sys::prudence_hazard_acquire_movable() };
        match NonNull::new(slot) {
            Some(slot) => HazardPointer { slot },
            None => handle_alloc_error(Layout::new::<sys::prudence_hazard>()),
        }
    }

    /// Names the object in `place`, and returns it. Checks again while writers replace the object.
    #[inline]
    #[must_use]
    pub fn protect<'h, T>(&'h mut self, place: &AtomicBox<T>) -> Option<&'h T> {
        let node = self.protect_ptr(place.link());
        // SAFETY: the slot names the node until the borrow of `self` ends, and nodes are retired.
        unsafe { AtomicBox::value(node) }
    }

    /// Works like [`protect`](HazardPointer::protect), but checks once.
    ///
    /// # Errors
    ///
    /// [`Changed`]; nothing is named then.
    #[inline]
    pub fn try_protect<'h, T>(
        &'h mut self,
        place: &AtomicBox<T>,
    ) -> Result<Option<&'h T>, Changed> {
        let node = place.peek();
        self.try_protect_ptr(node, place.link()).map_err(|_| Changed)?;
        // SAFETY: as in `protect`.
        Ok(unsafe { AtomicBox::value(node) })
    }

    /// Names the object that `source` links, and returns the pointer. Checks again while writers
    /// replace the object.
    ///
    /// The object is valid until this hazard pointer names another one, is reset or dropped, if it was
    /// valid while it was linked, and whoever unlinks it passes it to [`retire`]. A mark in the low
    /// bits of the pointer does no harm if it stays within the object.
    #[inline]
    #[must_use]
    pub fn protect_ptr<T>(&mut self, source: &AtomicPtr<T>) -> *mut T {
        // SAFETY: the slot is this one's, and `source` is there during the call.
        unsafe { sys::prudence_hazard_protect(self.slot.as_ptr(), link(source)).cast() }
    }

    /// Names `pointer`, and checks whether `source` links it. If so, the object is protected as by
    /// [`protect_ptr`](HazardPointer::protect_ptr).
    ///
    /// # Errors
    ///
    /// The pointer that `source` has; nothing is named then.
    #[inline]
    pub fn try_protect_ptr<T>(
        &mut self,
        pointer: *mut T,
        source: &AtomicPtr<T>,
    ) -> Result<(), *mut T> {
        let mut found: *mut c_void = pointer.cast();
        // SAFETY: as in `protect_ptr`.
        match unsafe {
            sys::prudence_hazard_try_protect(self.slot.as_ptr(), &mut found, link(source))
        } {
            true => Ok(()),
            false => Err(found.cast()),
        }
    }

    /// Names nothing from now on.
    ///
    /// ```compile_fail
    /// use prudence::hazard::{AtomicBox, HazardPointer};
    /// let place = AtomicBox::new(1);
    /// let mut hazard = HazardPointer::new();
    /// let found = hazard.protect(&place);
    /// hazard.reset();
    /// assert_eq!(found, Some(&1));
    /// ```
    #[inline]
    pub fn reset(&mut self) {
        // SAFETY: the slot is this one's, and references to the object would borrow `self`.
        unsafe { sys::prudence_hazard_reset(self.slot.as_ptr()) }
    }
}

/// The place as C has it.
fn link<T>(source: &AtomicPtr<T>) -> *const *mut c_void {
    (source as *const AtomicPtr<T>).cast()
}

impl Default for HazardPointer {
    fn default() -> HazardPointer {
        HazardPointer::new()
    }
}

impl Drop for HazardPointer {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the slot is this one's, and is released once.
        unsafe { sys::prudence_hazard_release(self.slot.as_ptr()) }
    }
}

impl fmt::Debug for HazardPointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HazardPointer").field(&self.slot).finish()
    }
}
