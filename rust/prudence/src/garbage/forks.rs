// SPDX-License-Identifier: MIT
//! A number of this process that no process has which it was forked from. Costs a load, where the
//! system's number would be a system call.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// Forks between the first process and this one, plus one.
static NUMBER: AtomicU32 = AtomicU32::new(1);

/// Returns the number. Relaxed: it changes in a child that has one thread.
#[inline]
pub(super) fn process() -> u32 {
    static TOLD: AtomicBool = AtomicBool::new(false);
    if !TOLD.load(Relaxed) && !TOLD.swap(true, Relaxed) {
        count_forks();
    }
    NUMBER.load(Relaxed)
}

#[cfg(not(miri))]
#[cold]
fn count_forks() {
    type Handler = Option<unsafe extern "C" fn()>;
    extern "C" {
        fn pthread_atfork(prepare: Handler, parent: Handler, child: Handler) -> i32;
    }
    unsafe extern "C" fn in_child() {
        NUMBER.fetch_add(1, Relaxed);
    }
    // SAFETY: the handler may be called in any child. Without memory for it a child may find the gate
    // held for ever, and then ends nothing.
    unsafe { pthread_atfork(None, None, Some(in_child)) };
}

#[cfg(miri)] // which cannot fork
fn count_forks() {}
