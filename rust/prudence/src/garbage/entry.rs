// SPDX-License-Identifier: MIT
//! A function that waits for readers, of any type, in four words.

use super::Garbage;
use std::mem::{self, MaybeUninit};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr;

/// The place of a function, or the box that has it if it is larger or has a larger alignment.
type Place = MaybeUninit<[usize; 3]>;

/// Calls the function of type `F` that `place` has, and passes it where it was deferred.
type Caller = unsafe fn(place: *mut Place, garbage: &Garbage);

/// A function that is called once. One that is not called is leaked.
pub(crate) struct Entry {
    call: Caller,
    place: Place,
}

impl Entry {
    /// Ends the process if the function needs a box and there is no memory.
    ///
    /// # Safety
    ///
    /// `function` may be called on another thread, and later than anything that it borrows ends.
    #[inline]
    pub(crate) unsafe fn new<F: FnOnce(&Garbage)>(function: F) -> Entry {
        let mut place = Place::uninit();
        if fits::<F>() {
            // SAFETY: it fits.
            unsafe { place.as_mut_ptr().cast::<F>().write(function) };
            Entry { call: call::<F>, place }
        } else {
            let boxed = Box::into_raw(Box::new(function));
            // SAFETY: a pointer fits.
            unsafe { place.as_mut_ptr().cast::<*mut F>().write(boxed) };
            Entry { call: call_boxed::<F>, place }
        }
    }

    #[inline]
    /// Calls the function, which was deferred in `garbage`.
    pub(crate) fn call(mut self, garbage: &Garbage) {
        // SAFETY: `new` paired the two; the function is moved out, and `self` ends here.
        contain(|| unsafe { (self.call)(&mut self.place, garbage) });
    }
}

fn fits<F>() -> bool {
    mem::size_of::<F>() <= mem::size_of::<Place>()
        && mem::align_of::<F>() <= mem::align_of::<Place>()
}

unsafe fn call<F: FnOnce(&Garbage)>(place: *mut Place, garbage: &Garbage) {
    // SAFETY: the place has an F, which is moved out.
    let function = unsafe { ptr::read(place.cast::<F>()) };
    function(garbage)
}

unsafe fn call_boxed<F: FnOnce(&Garbage)>(place: *mut Place, garbage: &Garbage) {
    // SAFETY: the place has the box of an F, which is moved out.
    let boxed = unsafe { Box::from_raw(ptr::read(place.cast::<*mut F>())) };
    boxed(garbage)
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
