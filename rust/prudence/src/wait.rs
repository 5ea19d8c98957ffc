// SPDX-License-Identifier: MIT
//! Waiting for readers, and for what was deferred.

use crate::owned_sections;
use prudence_sys as sys;
use std::io;
use std::time::Instant;

const ETIMEDOUT: i32 = 110; // on all that Prudence runs on

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
    // The first runs the sweeps of the threads' bags, the second what was in the bags.
    for _ in 0..2 {
        // SAFETY: takes nothing; may be called in any thread.
        check(unsafe { sys::prudence_barrier() })?;
    }
    owned_sections::barrier()
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
/// # Errors
///
/// `EDEADLK` where the wait could never end, as with [`barrier`].
pub fn flush_until(deadline: Instant) -> io::Result<Flush> {
    let left = deadline.saturating_duration_since(Instant::now()).as_nanos();
    let left = u64::try_from(left).unwrap_or(u64::MAX);
    // SAFETY: the default domain lives as long as the process.
    match unsafe { sys::prudence_domain_barrier_timed(sys::prudence_default_domain(), left) } {
        ETIMEDOUT => Ok(Flush::Late),
        error => check(error).map(|()| Flush::Done),
    }
}
