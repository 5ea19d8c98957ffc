// SPDX-License-Identifier: MIT
//! Common reclaimers.

use super::Collector;
use std::ptr;

/// Drops a box.
///
/// # Safety
///
/// As for [`Box::from_raw`].
pub unsafe fn boxed<T>(ptr: *mut T, _collector: &Collector) {
    // SAFETY: as the caller promises.
    drop(unsafe { Box::from_raw(ptr) })
}

/// Drops a value where it is.
///
/// # Safety
///
/// As for [`ptr::drop_in_place`].
pub unsafe fn in_place<T>(ptr: *mut T, _collector: &Collector) {
    // SAFETY: as the caller promises.
    unsafe { ptr::drop_in_place(ptr) }
}
