// SPDX-License-Identifier: MIT
//! Collectors: the values retired for one data structure, which end with it at the latest.
//!
//! Guards are sections of the library's default domain, and so those of all collectors. But a value
//! belongs to one collector. It is reclaimed in calls on that, by threads that have it, and
//! when it is dropped. One that is dropped has no guard, because they borrow it. So it calls its
//! reclaimers at once, also while the thread is pinned by others, and values may borrow from data
//! that outlives the collector.

use super::{reclaim, LocalGuard, OwnedGuard};
use crate::garbage::{Entry, Garbage, Unfinished, CAPACITY};
use crate::{global, wait};
use prudence_sys as sys;
use std::fmt;
use std::io;
use std::mem::{self, ManuallyDrop};
use std::ptr::NonNull;

/// The scope of guards, which keeps retired values until no guard protects them.
///
/// A data structure has one of its own. When the collector is dropped, all values that were retired
/// with it have been reclaimed.
pub struct Collector {
    /// This has one reference.
    garbage: NonNull<Garbage>,
}

// SAFETY: any thread may enter and retire. The callers of `retire` promise that a thread that has the
// collector may reclaim.
unsafe impl Send for Collector {}
// SAFETY: as above.
unsafe impl Sync for Collector {}

impl Collector {
    /// Makes a collector.
    #[must_use]
    pub fn new() -> Collector {
        Collector { garbage: Garbage::of_collector(CAPACITY, usize::MAX) }
    }

    /// Sets how many retired values of a thread wait together, at most: 62 at first, and never more. A
    /// smaller number saves no memory.
    #[must_use]
    pub fn batch_size(self, batch_size: usize) -> Collector {
        self.garbage().set_limit(batch_size.clamp(1, CAPACITY));
        self
    }

    /// Pins the current thread. Never waits.
    #[inline]
    pub fn enter(&self) -> LocalGuard<'_> {
        LocalGuard::enter(self)
    }

    /// Makes a guard that may go to other threads.
    ///
    /// # Panics
    ///
    /// If it is the first one of the process, and there is no memory for the domain of such guards.
    pub fn enter_owned(&self) -> OwnedGuard<'_> {
        OwnedGuard::enter(self)
    }

    /// Calls `reclaim` with `ptr` once all guards that exist now are gone: in a later call on this
    /// collector, or when a guard of it is dropped, or the collector. Never waits for guards.
    ///
    /// # Safety
    ///
    /// The value is unlinked, so that later guards cannot find it, and not retired a second time.
    /// A thread that has the collector may call `reclaim` with it.
    #[inline]
    pub unsafe fn retire<T>(&self, ptr: *mut T, reclaim: unsafe fn(*mut T, &Collector)) {
        let garbage = self.garbage();
        if is_only_a_free(reclaim) && !garbage.expects_owned() {
            // SAFETY: the pointer is that of a box whose memory the library has, and dropping the box
            // would do nothing but free it. No owned guard protects it.
            return unsafe { sys::prudence_free_deferred(ptr.cast()) };
        }
        // SAFETY: as the caller promises. The collector is alive when reclaimers are called: its drop
        // waits for them.
        unsafe {
            garbage.add(Entry::new(move |garbage| Collector::with(garbage, |it| reclaim(ptr, it))));
        }
    }

    /// Reclaims everything that was retired, and values retired by that, now.
    ///
    /// # Safety
    ///
    /// The collector has no guards, and no other thread uses it.
    pub unsafe fn reclaim_all(&self) {
        // SAFETY: as the caller promises.
        unsafe { self.garbage().call_all() }
    }

    /// Waits until no guard protects values that were retired before, and reclaims those. `seize`
    /// has no such function.
    ///
    /// # Errors
    ///
    /// `EDEADLK` where the wait could never end: while this thread is pinned, or in a reclaimer. An
    /// owned guard of the caller is not noticed.
    pub fn barrier(&self) -> io::Result<()> {
        match self.garbage().finish(None) {
            Err(Unfinished::Deadlock) => Err(wait::would_deadlock()),
            _ => Ok(()),
        }
    }

    /// Returns how many retired values wait, about. `seize` has no such function.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.garbage().pending()
    }

    #[inline]
    pub(super) fn garbage(&self) -> &Garbage {
        // SAFETY: it has a reference.
        unsafe { self.garbage.as_ref() }
    }

    /// Calls `function` with the collector that has this garbage.
    fn with(garbage: &Garbage, function: impl FnOnce(&Collector)) {
        // The collector has no reference, so it must not end.
        let collector = ManuallyDrop::new(Collector { garbage: NonNull::from(garbage) });
        function(&collector);
    }
}

/// Returns whether `reclaim` does nothing but free memory of the library. If the compiler has joined
/// another function with [`reclaim::boxed`], that one does the same.
#[inline]
fn is_only_a_free<T>(reclaim: unsafe fn(*mut T, &Collector)) -> bool {
    !mem::needs_drop::<T>()
        && mem::size_of::<T>() != 0
        && reclaim as *const () == reclaim::boxed::<T> as *const ()
        && global::is_plain()
}

impl Drop for Collector {
    fn drop(&mut self) {
        // SAFETY: guards borrow the collector, so there are none, and no other thread has it. This has
        // the only reference.
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
    #[inline]
    fn eq(&self, other: &Collector) -> bool {
        self.garbage == other.garbage
    }
}

impl Eq for Collector {}

impl fmt::Debug for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collector").field("batch_size", &self.garbage().limit()).finish()
    }
}
