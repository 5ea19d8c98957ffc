// SPDX-License-Identifier: MIT
//! Small numbers of threads.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

thread_local! {
    /// This thread's number plus one; 0: none yet. Without a destructor, so that it lasts as long as
    /// the thread.
    static NUMBER: Cell<usize> = const { Cell::new(0) };
}

/// Returns this thread's number. Threads have 0, 1, 2 and so on, in the order in which they ask.
#[inline]
pub(crate) fn thread_id() -> usize {
    match NUMBER.with(Cell::get) {
        0 => new_thread(),
        number => number - 1,
    }
}

#[cold]
fn new_thread() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    let number = THREADS.fetch_add(1, Relaxed);
    NUMBER.with(|own| own.set(number + 1));
    number
}
