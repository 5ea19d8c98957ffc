// SPDX-License-Identifier: MIT
//! Functions that run after a grace period, as callbacks of the library.

use crate::global;
use prudence_sys as sys;
use std::alloc::{handle_alloc_error, Layout};
use std::mem;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr;

/// A queued function. The head is first, so that both have one address.
#[repr(C)]
struct Deferred<F> {
    head: sys::prudence_head,
    function: F,
}

/// Calls `function` on a thread of the library when all sections that are open now have ended. Ends
/// the process if there is no memory for the function.
///
/// # Safety
///
/// `function` may be called on another thread, and later than anything that it borrows ends.
pub(crate) unsafe fn after_readers<F: FnOnce()>(function: F) {
    let layout = Layout::new::<Deferred<F>>();
    let deferred = global::allocate(layout).cast::<Deferred<F>>();
    if deferred.is_null() {
        handle_alloc_error(layout);
    }
    let head = sys::prudence_head { next: ptr::null_mut(), func: None };
    // SAFETY: the memory is new and of this layout. It belongs to the library from the call until
    // `run`, which the library calls once.
    unsafe {
        deferred.write(Deferred { head, function });
        sys::prudence_call(deferred.cast(), Some(run::<F>));
    }
}

unsafe extern "C" fn run<F: FnOnce()>(head: *mut sys::prudence_head) {
    let deferred = head.cast::<Deferred<F>>();
    // SAFETY: `after_readers` made it, and nobody else has it now. The function is moved out, so the
    // memory may go first.
    let function = unsafe {
        let function = ptr::addr_of!((*deferred).function).read();
        sys::prudence_free(deferred.cast());
        function
    };
    contain(function);
}

/// Calls `function` where C is the caller. A panic ends the function and nothing else, as it would
/// end a thread; the panic hook has reported it.
pub(crate) fn contain(function: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(function)) {
        if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            mem::forget(another); // dropping this one might go on like that
        }
    }
}
