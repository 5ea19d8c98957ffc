// SPDX-License-Identifier: MIT
//! Guards that belong to no thread.
//!
//! Owned guards are sections of a second domain. Their collector is notified before the first, and
//! from then on its values wait for both domains. Nothing is missed: if a thread retires a value
//! without having seen that, the guard cannot load the value.
//!
//! - Memory that goes to the allocator: both sides have a sequentially consistent fence, between
//!   unlinking and checking here ([`Garbage::expects_owned`]), and between notifying and loading
//! there
//!   ([`Garbage::expect_owned`]). One of them sees the other.
//! - Values in bags: the thread that finds a grace period of the threads over checks then, and
//! `enter`
//!   notifies in a section of its thread. If the section began before the grace period, that thread
//! sees the
//!   notice. If it began after, it sees all that was unlinked before the bag was closed.
//!
//! [`Garbage::expects_owned`]: crate::garbage::Garbage::expects_owned
//! [`Garbage::expect_owned`]: crate::garbage::Garbage::expect_owned

use super::{Collector, Guard};
use crate::{owned_sections, thread};
use std::fmt;
use std::os::raw::c_int;

/// A guard that may be used and dropped by any thread, as in tasks that change threads. It costs two
/// locked additions, and values that its collector retires from then on wait for two grace periods.
///
/// Nothing in this thread knows of the guard. So a thread that has one and waits for objects that
/// the guard protects waits for ever.
#[must_use = "a guard protects while it is kept"]
pub struct OwnedGuard<'a> {
    collector: &'a Collector,
    section: c_int,
    /// Events of the collector when the section began.
    seen: usize,
}

impl OwnedGuard<'_> {
    pub(super) fn enter(collector: &Collector) -> OwnedGuard<'_> {
        owned_sections::domain(); // may panic, so it is made before anything changes
        thread::within(|| {
            collector.garbage().expect_owned();
            let section = owned_sections::enter();
            OwnedGuard { collector, section, seen: collector.garbage().events() }
        })
    }

    /// Leaves the section, and reclaims values that waited for it, unless the thread has other
    /// guards.
    fn leave(&self) {
        // SAFETY: `enter` or `refresh` entered it, and the caller ends or replaces the guard's section.
        unsafe { owned_sections::leave(self.section) }
        if !thread::is_pinned() {
            self.collector.garbage().look(self.seen);
        }
    }
}

impl Guard for OwnedGuard<'_> {
    fn refresh(&mut self) {
        self.leave();
        self.section = owned_sections::enter();
        self.seen = self.collector.garbage().events();
    }

    fn collector(&self) -> &Collector {
        self.collector
    }
}

impl Drop for OwnedGuard<'_> {
    fn drop(&mut self) {
        self.leave();
    }
}

impl fmt::Debug for OwnedGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OwnedGuard").finish()
    }
}
