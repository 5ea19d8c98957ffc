// SPDX-License-Identifier: MIT
//! Guards of a thread.

use super::{Collector, Guard};
use crate::{epoch, thread_id};
use prudence_sys as sys;
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

    fn flush(&self) {
        // SAFETY: takes nothing; may be called in any thread.
        unsafe { sys::prudence_gp_start_poll() };
    }

    #[inline]
    fn collector(&self) -> &Collector {
        self.collector
    }

    #[inline]
    fn thread_id(&self) -> usize {
        thread_id::thread_id()
    }

    #[inline]
    unsafe fn defer_retire<T>(&self, ptr: *mut T, reclaim: unsafe fn(*mut T, &Collector)) {
        // SAFETY: as the caller promises.
        unsafe { self.collector.retire(ptr, reclaim) }
    }
}

impl fmt::Debug for LocalGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LocalGuard").finish()
    }
}
