// SPDX-License-Identifier: MIT
//! Sections that one thread enters and another may leave: those of seize's owned guards. They belong
//! to a domain of their own, which the process makes with the first and keeps.

use prudence_sys as sys;
use std::os::raw::c_int;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::*};

static DOMAIN: AtomicPtr<sys::prudence_domain> = AtomicPtr::new(ptr::null_mut());

/// Returns the domain. Ends the process if there is no memory for it.
fn domain() -> *mut sys::prudence_domain {
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
            // SAFETY: nobody else knows this one.
            unsafe { sys::prudence_domain_destroy(made) };
            others
        }
    }
}

/// Enters a section, and returns what [`leave`] needs.
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

/// Calls `function` with `head` once the sections that are open now have been left.
///
/// # Safety
///
/// The head is the library's from now until `function` has it.
pub(crate) unsafe fn call(
    head: *mut sys::prudence_head,
    function: unsafe extern "C" fn(*mut sys::prudence_head),
) {
    // SAFETY: as the caller promises.
    unsafe { sys::prudence_domain_call(domain(), head, Some(function)) }
}

/// Returns the domain if there were owned guards. What [`call`] was given is its callbacks.
pub(crate) fn domain_if_made() -> Option<*mut sys::prudence_domain> {
    let domain = DOMAIN.load(Acquire);
    (!domain.is_null()).then_some(domain)
}
