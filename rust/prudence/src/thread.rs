// SPDX-License-Identifier: MIT
//! The state of a thread: the number and the guards. All guards of a thread, of whatever
//! collector, are one section of the library's default domain: the first enters it, the last
//! leaves. So there may be any number of guards, although sections of C nest 1,023 deep, and they
//! may be dropped in any order.
//!
//! A signal handler may pin, if it drops the guards: the count changes after the section was
//! entered and before the end, so a handler that sees the old count enters a nested section.

use crate::garbage::EPOCHS;
use prudence_sys as sys;
use std::cell::Cell;
use std::process;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

struct Thread {
    /// The number plus one; 0: none yet.
    number: Cell<usize>,
    guards: Cell<usize>,
    /// See [`count_end`].
    ends: Cell<u32>,
    /// The library knows that a guard which this thread leaks protects for ever.
    outlives: Cell<bool>,
}

thread_local! {
    /// Without a destructor, so that it lasts as long as the thread.
    static THREAD: Thread = const {
        Thread {
            number: Cell::new(0),
            guards: Cell::new(0),
            ends: Cell::new(0),
            outlives: Cell::new(false),
        }
    };

    static END: End = const { End };
}

/// Ends before the thread does.
struct End;

impl Drop for End {
    fn drop(&mut self) {
        EPOCHS.close_own();
        EPOCHS.collect_outside();
    }
}

/// Returns this thread's number. Threads have 0, 1, 2 and so on, in the order in which they ask.
#[inline]
pub(crate) fn thread_id() -> usize {
    match THREAD.with(|thread| thread.number.get()) {
        0 => new_thread(),
        number => number - 1,
    }
}

#[cold]
fn new_thread() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    let number = THREADS.fetch_add(1, Relaxed);
    THREAD.with(|thread| thread.number.set(number + 1));
    let _ = END.try_with(|_| ()); // fails if the thread is ending already
    number
}

/// Counts a guard. The first enters the section.
#[inline]
pub(crate) fn enter() {
    THREAD.with(|thread| {
        if thread.guards.get() == 0 {
            if !thread.outlives.get() {
                outlive(&thread.outlives);
            }
            // SAFETY: takes nothing; `leave` ends the section.
            unsafe { sys::prudence_read_lock() }
        }
        match thread.guards.get().checked_add(1) {
            Some(more) => thread.guards.set(more),
            None => process::abort(), // guards were forgotten
        }
    });
}

#[cold]
fn outlive(told: &Cell<bool>) {
    // SAFETY: takes nothing; may be called in any thread.
    unsafe { sys::prudence_epoch_outlive() }
    told.set(true);
}

/// Takes a guard off the count. Returns whether it was the last, which has ended the section.
#[inline]
pub(crate) fn leave() -> bool {
    THREAD.with(|thread| {
        let rest = thread.guards.get() - 1;
        thread.guards.set(rest);
        if rest == 0 {
            // SAFETY: `enter` entered this section, in this thread, because guards are not sent.
            unsafe { sys::prudence_read_unlock() }
        }
        rest == 0
    })
}

/// Calls `function` in a section.
#[inline]
pub(crate) fn within<R>(function: impl FnOnce() -> R) -> R {
    enter();
    let result = function();
    leave();
    result
}

/// Counts a guard that has ended while bags waited. Returns one of the numbers below 2^32, spread
/// evenly, also over each second or third call: collectors that a thread uses in turn get their share.
pub(crate) fn count_end() -> u32 {
    const GOLDEN_RATIO: u32 = 0x9E37_79B1; // times 2^32
    THREAD.with(|thread| {
        thread.ends.set(thread.ends.get().wrapping_add(GOLDEN_RATIO));
        thread.ends.get()
    })
}

/// Returns whether this thread has a guard.
#[inline]
pub(crate) fn is_pinned() -> bool {
    THREAD.with(|thread| thread.guards.get() != 0)
}
