// SPDX-License-Identifier: MIT
//! Collectors. Guards of all collectors are sections of one domain, so those of one also hold up
//! objects deferred with another. But a deferral belongs to its collector: it ends in calls on
//! that, and with it at the latest.

use super::Guard;
use crate::garbage::{Garbage, AT_ONCE, CAPACITY, EPOCHS};
use std::cell::Cell;
use std::fmt;
use std::ptr::NonNull;

/// The scope of guards, which keeps deferred functions until no guard is blocking. Clones are the
/// same collector. The last of clones, [handles](LocalHandle) and guards calls everything that waits.
pub struct Collector {
    /// This has a reference.
    garbage: NonNull<Garbage>,
}

// SAFETY: any thread may enter and defer. Threads that defer promise that a thread that uses the collector
// may call the function.
unsafe impl Send for Collector {}
// SAFETY: as above.
unsafe impl Sync for Collector {}

/// A thread's part in a collector.
#[must_use = "a handle registers while it is kept"]
pub struct LocalHandle {
    local: *const Local, // so that it is neither `Send` nor `Sync`
}

/// Ends with the last of its handle and its guards. One thread has them.
pub(super) struct Local {
    collector: Collector,
    guards: Cell<usize>,
    handle: Cell<bool>,
}

/// Returns the collector of [`pin`](super::pin), which lasts as long as the process.
#[inline]
#[must_use]
pub fn default_collector() -> &'static Collector {
    static COLLECTOR: Collector = Collector {
        // SAFETY: the address of a static is not null.
        garbage: unsafe { NonNull::new_unchecked(&EPOCHS as *const Garbage as *mut Garbage) },
    };
    &COLLECTOR
}

impl Collector {
    /// Makes a collector.
    #[must_use]
    pub fn new() -> Collector {
        Collector { garbage: Garbage::of_collector(CAPACITY, AT_ONCE) }
    }

    /// Returns a part for this thread.
    pub fn register(&self) -> LocalHandle {
        let local =
            Local { collector: self.clone(), guards: Cell::new(0), handle: Cell::new(true) };
        LocalHandle { local: Box::into_raw(Box::new(local)) }
    }

    /// Returns how many deferred functions wait, about. `crossbeam-epoch` has no such function.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.garbage().pending()
    }

    #[inline]
    pub(super) fn garbage(&self) -> &Garbage {
        // SAFETY: it has a reference.
        unsafe { self.garbage.as_ref() }
    }
}

impl Clone for Collector {
    fn clone(&self) -> Collector {
        self.garbage().keep();
        Collector { garbage: self.garbage }
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        // SAFETY: this has a reference, as has each part, and so each guard.
        unsafe { Garbage::release(self.garbage) }
    }
}

impl Default for Collector {
    fn default() -> Collector {
        Collector::new()
    }
}

impl PartialEq for Collector {
    /// Returns whether both are the same collector.
    fn eq(&self, other: &Collector) -> bool {
        self.garbage == other.garbage
    }
}

impl Eq for Collector {}

impl fmt::Debug for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("Collector { .. }")
    }
}

impl Local {
    /// Ends the part if nothing uses it any more.
    ///
    /// # Safety
    ///
    /// The part is there.
    unsafe fn end_if_unused(local: *const Local) {
        // SAFETY: as the caller promises; `register` made a box. Another thread may never read
        // this one's bag again, so it is closed.
        unsafe {
            if (*local).guards.get() == 0 && !(*local).handle.get() {
                let part = Box::from_raw(local as *mut Local);
                part.collector.garbage().close_own();
                part.collector.garbage().collect_outside();
            }
        }
    }

    /// # Safety
    ///
    /// The part has counted a guard, which ends here.
    pub(super) unsafe fn give_up_guard(local: *const Local) {
        // SAFETY: as the caller promises.
        unsafe {
            (*local).guards.set((*local).guards.get() - 1);
            Local::end_if_unused(local);
        }
    }

    fn of(handle: &LocalHandle) -> &Local {
        // SAFETY: a part is there as long as its handle.
        unsafe { &*handle.local }
    }
}

impl LocalHandle {
    /// Pins the current thread, as [`pin`](super::pin) does for the default collector.
    #[inline]
    pub fn pin(&self) -> Guard {
        let local = Local::of(self);
        local.guards.set(local.guards.get() + 1);
        // SAFETY: the part, which has the collector, has counted the guard. The guard has the box's own
        // pointer, because this call may end the box.
        unsafe { Guard::enter(&local.collector, self.local) }
    }

    /// Returns whether this handle has a guard.
    #[inline]
    #[must_use]
    pub fn is_pinned(&self) -> bool {
        Local::of(self).guards.get() != 0
    }

    /// Returns the collector.
    #[must_use]
    pub fn collector(&self) -> &Collector {
        &Local::of(self).collector
    }
}

impl Drop for LocalHandle {
    fn drop(&mut self) {
        Local::of(self).handle.set(false);
        // SAFETY: the part was there as long as the handle.
        unsafe { Local::end_if_unused(self.local) }
    }
}

impl fmt::Debug for LocalHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("LocalHandle { .. }")
    }
}
