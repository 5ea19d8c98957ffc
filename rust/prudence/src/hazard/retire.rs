// SPDX-License-Identifier: MIT
//! Values that wait until no hazard pointer names them. The library keeps their heads.

use crate::garbage::contain;
use prudence_sys as sys;
use std::ffi::c_void;
use std::mem;
use std::ptr;

/// A head that the library has not seen.
pub(super) const HEAD: sys::prudence_hazard_head =
    sys::prudence_hazard_head { next: ptr::null_mut(), object: ptr::null(), size: 0, func: None };

/// A box that waits, and how it ends. The head is first, so that both have one address.
#[repr(C)]
struct Retired {
    head: sys::prudence_hazard_head,
    end: unsafe fn(*const c_void),
}

/// Drops the box at `object` once no hazard pointer names it. Takes memory for a few words. Some of
/// these calls drop values that were retired before; see the [module](super).
///
/// ```
/// use prudence::hazard::{self, HazardPointer};
/// use std::sync::atomic::{AtomicPtr, Ordering::*};
///
/// let head = AtomicPtr::new(Box::into_raw(Box::new(1)));
/// let mut hazard = HazardPointer::new();
/// let found = hazard.protect_ptr(&head);
/// let old = head.swap(std::ptr::null_mut(), AcqRel);
/// // SAFETY: the swap has unlinked the box, for this thread alone.
/// unsafe { hazard::retire(old) };
/// // SAFETY: the hazard pointer names it, and no thread changes it.
/// assert_eq!(unsafe { *found }, 1);
/// ```
///
/// ```compile_fail
/// // A value that stays in its thread is not retired.
/// let local = Box::into_raw(Box::new(std::rc::Rc::new(1)));
/// unsafe { prudence::hazard::retire(local) };
/// ```
///
/// # Safety
///
/// `object` came from a `Box`, is unlinked so that no thread finds it any more, and is not retired or
/// dropped a second time. Threads that still use it have protected it.
pub unsafe fn retire<T: Send + 'static>(object: *mut T) {
    let retired = Box::into_raw(Box::new(Retired { head: HEAD, end: end_box::<T> }));
    // SAFETY: the head is new, and is the library's from now on. The rest as the caller promises.
    unsafe { retire_head(retired.cast(), object, end_retired) }
}

/// Calls `end` with the head once no hazard pointer names a byte of `object`.
///
/// # Safety
///
/// As for [`retire`]; the head is the library's until `end` has it.
pub(super) unsafe fn retire_head<T>(
    head: *mut sys::prudence_hazard_head,
    object: *const T,
    end: unsafe extern "C" fn(*mut sys::prudence_hazard_head),
) {
    // SAFETY: as the caller promises.
    unsafe { sys::prudence_hazard_retire(head, object.cast(), mem::size_of::<T>(), Some(end)) }
}

unsafe extern "C" fn end_retired(head: *mut sys::prudence_hazard_head) {
    // SAFETY: `retire` made the head as that of a box, and the library gives it back once.
    let retired = unsafe { Box::from_raw(head.cast::<Retired>()) };
    // SAFETY: no hazard pointer names the object, which is of the type that `end` was made for.
    contain(|| unsafe { (retired.end)(retired.head.object) });
}

unsafe fn end_box<T>(object: *const c_void) {
    // SAFETY: the caller has the box that `retire` was given.
    drop(unsafe { Box::from_raw(object as *mut T) });
}

/// Drops all values that were retired before and that no hazard pointer names. Returns how many wait on. Never
/// waits.
pub fn reclaim() -> usize {
    // SAFETY: takes nothing; may be called in any thread.
    unsafe { sys::prudence_hazard_reclaim() }
}
