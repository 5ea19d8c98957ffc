// SPDX-License-Identifier: MIT
//! Guards of a thread.

use super::{Collector, Guard};
use crate::thread;
use std::fmt;
use std::marker::PhantomData;

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
#[must_use = "a guard protects while it is kept"]
pub struct LocalGuard<'a> {
    collector: &'a Collector,
    /// Events of the collector when the section began.
    seen: usize,
    /// The section belongs to a thread, so a guard is neither `Send` nor `Sync`.
    thread: PhantomData<*mut ()>,
}

impl LocalGuard<'_> {
    #[inline]
    pub(super) fn enter(collector: &Collector) -> LocalGuard<'_> {
        thread::enter();
        LocalGuard { collector, seen: collector.garbage().events(), thread: PhantomData }
    }
}

impl Guard for LocalGuard<'_> {
    #[inline]
    fn refresh(&mut self) {
        if thread::leave() {
            self.collector.garbage().look(self.seen);
        }
        thread::enter();
        self.seen = self.collector.garbage().events();
    }

    #[inline]
    fn collector(&self) -> &Collector {
        self.collector
    }
}

impl Drop for LocalGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        if thread::leave() {
            self.collector.garbage().look(self.seen);
        }
    }
}

impl fmt::Debug for LocalGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LocalGuard").finish()
    }
}
