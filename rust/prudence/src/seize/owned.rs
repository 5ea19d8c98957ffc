// SPDX-License-Identifier: MIT
//! Guards that belong to no thread.
//!
//! They are sections of a second domain. Their collector is told before its first, and from then on
//! what it retires waits for both domains. Nothing is missed: if a thread retires a value without
//! having seen that, the guard cannot load the value.
//!
//! - Memory that goes to the allocator: both sides have a sequentially consistent fence, between
//!   unlinking and looking here ([`Garbage::expects_owned`]), and between telling and loading there
//!   ([`Garbage::expect_owned`]). One of them sees the other.
//! - Values in bags: the library looks when a grace period of the threads is over, and `enter` tells
//!   in a section of its thread. If the section began before the grace period, the library sees what
//!   it told. If it began after, it sees all that was unlinked before the bag was closed.
//!
//! [`Garbage::expects_owned`]: crate::garbage::Garbage::expects_owned
//! [`Garbage::expect_owned`]: crate::garbage::Garbage::expect_owned

use super::{Collector, Guard};
use crate::{epoch, owned_sections};
use std::fmt;
use std::os::raw::c_int;

/// A guard that may be used and dropped by any thread, as in tasks that change threads. It costs two
/// locked additions, and what its collector retires from then on waits for two grace periods.
///
/// Nothing in this thread knows of the guard. So a thread that has one and waits for what the guard
/// protects waits for ever.
pub struct OwnedGuard<'a> {
    collector: &'a Collector,
    section: c_int,
}

impl OwnedGuard<'_> {
    pub(super) fn enter(collector: &Collector) -> OwnedGuard<'_> {
        let _thread = epoch::pin();
        collector.garbage().expect_owned();
        OwnedGuard { collector, section: owned_sections::enter() }
    }
}

impl Guard for OwnedGuard<'_> {
    fn refresh(&mut self) {
        // SAFETY: `enter` returned it, and it is replaced. The domain is there, so nothing panics.
        unsafe { owned_sections::leave(self.section) }
        self.section = owned_sections::enter();
    }

    fn collector(&self) -> &Collector {
        self.collector
    }
}

impl Drop for OwnedGuard<'_> {
    fn drop(&mut self) {
        // SAFETY: `enter` returned it, and the guard ends here.
        unsafe { owned_sections::leave(self.section) }
    }
}

impl fmt::Debug for OwnedGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OwnedGuard").finish()
    }
}
