// SPDX-License-Identifier: MIT
//! Sections that one thread enters and another may leave: those of seize's owned guards. They belong
//! to a domain of their own, which the process makes with the first and keeps.

use prudence_sys as sys;
use std::os::raw::c_int;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::*};

static DOMAIN: AtomicPtr<sys::prudence_domain> = AtomicPtr::new(ptr::null_mut());

/// Returns the domain. Panics if there is no memory for it.
pub(crate) fn domain() -> *mut sys::prudence_domain {
    let found = DOMAIN.load(Acquire);
    if !found.is_null() {
        return found;
    }
    let name = b"rust-owned\0".as_ptr().cast();
    // SAFETY: the name ends with 0, and the library copies it.
    let made = unsafe { sys::prudence_domain_create(name, sys::PRUDENCE_DOMAIN_SRCU, ptr::null()) };
    assert!(!made.is_null(), "no memory for the domain of owned guards");
    match DOMAIN.compare_exchange(ptr::null_mut(), made, AcqRel, Acquire) {
        Ok(_) => made,
        Err(others) => {
            // SAFETY: no other code knows this one.
            unsafe { sys::prudence_domain_destroy(made) };
            others
        }
    }
}

/// Enters a section, and returns the argument of [`leave`].
pub(crate) fn enter() -> c_int {
    // SAFETY: the domain lasts as long as the process.
    unsafe { sys::prudence_srcu_down_read(domain()) }
}

/// Leaves a section.
///
/// # Safety
///
/// `index` came from [`enter`], and is passed once.
pub(crate) unsafe fn leave(index: c_int) {
    // SAFETY: as above, and as the caller promises.
    unsafe { sys::prudence_srcu_up_read(domain(), index) }
}
