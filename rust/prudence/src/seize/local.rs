// SPDX-License-Identifier: MIT
//! Guards of a thread.

use super::{Collector, Guard};
use crate::epoch;
use std::fmt;

/// A guard of the current thread. A thread may have any number of them.
///
/// ```compile_fail
/// // A guard stays in its thread.
/// let collector = prudence::seize::Collector::new();
/// let guard = collector.enter();
/// std::thread::scope(|scope| { scope.spawn(move || drop(guard)); });
/// ```
///
/// ```compile_fail
/// // A guard ends before its collector.
/// let guard = prudence::seize::Collector::new().enter();
/// drop(guard);
/// ```
pub struct LocalGuard<'a> {
    collector: &'a Collector,
    section: epoch::Guard,
}

impl LocalGuard<'_> {
    #[inline]
    pub(super) fn enter(collector: &Collector) -> LocalGuard<'_> {
        LocalGuard { collector, section: epoch::pin() }
    }
}

impl Guard for LocalGuard<'_> {
    #[inline]
    fn refresh(&mut self) {
        self.section.repin();
    }

    #[inline]
    fn collector(&self) -> &Collector {
        self.collector
    }
}

impl fmt::Debug for LocalGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LocalGuard").finish()
    }
}
