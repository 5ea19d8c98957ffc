// SPDX-License-Identifier: MIT
//! Waiting for readers, and for what was deferred.

use crate::owned_sections;
use prudence_sys as sys;
use std::io;
use std::iter;
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
    for domain in steps() {
        // SAFETY: the domain lives as long as the process.
        check(unsafe { sys::prudence_domain_barrier(domain) })?;
    }
    Ok(())
}

/// Domains whose callbacks a barrier waits for, in this order: first the sweeps of the threads' bags,
/// then the bags, then those of them that also waited for owned guards.
fn steps() -> impl Iterator<Item = *mut sys::prudence_domain> {
    // SAFETY: takes nothing; may be called in any thread.
    let default = unsafe { sys::prudence_default_domain() };
    // Looks for owned guards when the bags have been looked at.
    let owned = iter::once_with(owned_sections::domain_if_made).flatten();
    [default, default].into_iter().chain(owned)
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
    for domain in steps() {
        let left = deadline.saturating_duration_since(Instant::now()).as_nanos();
        let left = u64::try_from(left).unwrap_or(u64::MAX);
        // SAFETY: the domain lives as long as the process.
        match unsafe { sys::prudence_domain_barrier_timed(domain, left) } {
            ETIMEDOUT => return Ok(Flush::Late),
            error => check(error)?,
        }
    }
    Ok(Flush::Done)
}
