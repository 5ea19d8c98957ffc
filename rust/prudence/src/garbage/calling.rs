// SPDX-License-Identifier: MIT
//! Records which garbage's entries this thread is calling. An entry may use its collector; then the
//! call below it on the stack ends the rest, so that no stack becomes deep.

use super::Garbage;
use std::cell::Cell;
use std::ptr;

thread_local! {
    static INNERMOST: Cell<*const Calling> = const { Cell::new(ptr::null()) };
}

struct Calling {
    garbage: *const Garbage,
    outer: *const Calling,
}

/// Calls `function`, during which [`depth`] of `garbage` is one more.
pub(super) fn during<R>(garbage: &Garbage, function: impl FnOnce() -> R) -> R {
    struct Restore(*const Calling);
    impl Drop for Restore {
        fn drop(&mut self) {
            INNERMOST.with(|innermost| innermost.set(self.0));
        }
    }
    let outer = INNERMOST.with(Cell::get);
    let here = Calling { garbage, outer };
    INNERMOST.with(|innermost| innermost.set(&here));
    let _restore = Restore(outer);
    function()
}

/// How many calls of entries of `garbage` this thread is in.
pub(super) fn depth(garbage: &Garbage) -> usize {
    let mut found = 0;
    let mut call = INNERMOST.with(Cell::get);
    while !call.is_null() {
        // SAFETY: frames of `during` below this one on the stack, which have not returned.
        unsafe {
            found += ptr::eq((*call).garbage, garbage) as usize;
            call = (*call).outer;
        }
    }
    found
}
