// SPDX-License-Identifier: MIT
//! Waiting for readers, and for deferred objects.

use crate::garbage::{Unfinished, EPOCHS};
use prudence_sys as sys;
use std::io;
use std::time::Instant;

const EDEADLK: i32 = 35; // on all that Prudence runs on

/// The library's answer as a result.
pub(crate) fn check(error: i32) -> io::Result<()> {
    match error {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Waits until all guards (and sections of C) that exist now are gone.
///
/// While the calling thread itself is pinned, the wait could never end: the library then reports the
/// caller and ends the process.
pub fn synchronize() {
    // SAFETY: takes nothing; may be called in any thread.
    unsafe { sys::prudence_synchronize() }
}

/// Waits until everything that was deferred with [`epoch`](crate::epoch)'s default collector before this
/// call has ended, and ends it here. Values of a [`Cache`](crate::Cache) have their own
/// [`barrier`](crate::Cache::barrier), as do those of a [`Collector`](crate::seize::Collector).
///
/// # Errors
///
/// `EDEADLK` where the wait could never end: while this thread is pinned, or in a deferred function.
pub fn barrier() -> io::Result<()> {
    match EPOCHS.finish(None) {
        Err(Unfinished::Deadlock) => Err(would_deadlock()),
        _ => Ok(()),
    }
}

pub(crate) fn would_deadlock() -> io::Error {
    io::Error::from_raw_os_error(EDEADLK)
}

/// The result of [`flush_until`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Flush {
    /// Everything that was deferred before has ended.
    Done,
    /// The deadline came first. The rest ends later, as without this call.
    Late,
}

/// Works like [`barrier`], but waits no longer than until `deadline`.
///
/// # Errors
///
/// `EDEADLK` where the wait could never end, as with [`barrier`].
pub fn flush_until(deadline: Instant) -> io::Result<Flush> {
    match EPOCHS.finish(Some(deadline)) {
        Ok(()) => Ok(Flush::Done),
        Err(Unfinished::Late) => Ok(Flush::Late),
        Err(Unfinished::Deadlock) => Err(would_deadlock()),
    }
}
