// SPDX-License-Identifier: MIT
//! Waiting for readers, and for what was deferred.

use prudence_sys as sys;
use std::io;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Instant;

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

/// Waits until everything that was deferred with a function or a destructor before this call has
/// ended. Values of a [`Cache`](crate::Cache) have their own [`barrier`](crate::Cache::barrier).
///
/// # Errors
///
/// `EDEADLK` where the wait could never end: while this thread is pinned, or in a deferred function.
pub fn barrier() -> io::Result<()> {
    // SAFETY: takes nothing; may be called in any thread.
    check(unsafe { sys::prudence_barrier() })
}

/// What [`flush_until`] found.
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
/// A thread of its own waits for the barrier, and stays until the barrier ends.
///
/// # Errors
///
/// `EDEADLK` while this thread is pinned, and if there is no further thread.
pub fn flush_until(deadline: Instant) -> io::Result<Flush> {
    // SAFETY: takes nothing; may be called in any thread.
    if unsafe { sys::prudence_read_lock_held() } {
        return barrier().map(|()| Flush::Done); // refuses, and the library reports the caller
    }
    let (sender, receiver) = mpsc::channel();
    thread::Builder::new().name("prudence-flush".into()).spawn(move || {
        let _ = sender.send(barrier());
    })?;
    match receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
        Ok(result) => result.map(|()| Flush::Done),
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Ok(Flush::Late),
    }
}
