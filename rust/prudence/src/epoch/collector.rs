// SPDX-License-Identifier: MIT
//! Collectors, for crates that name one. All are the library's default domain.

use super::{is_pinned, pin, Guard};
use std::marker::PhantomData;

/// What guards belong to. There is one, which all collectors stand for: guards of one also hold up
/// what was deferred with another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collector {
    private: (),
}

/// A thread's part in a collector. Threads register themselves, so that it has no state.
#[derive(Clone, Debug)]
pub struct LocalHandle {
    thread: PhantomData<*mut ()>,
}

/// Returns the collector.
pub fn default_collector() -> &'static Collector {
    static COLLECTOR: Collector = Collector { private: () };
    &COLLECTOR
}

impl Collector {
    /// Returns the collector.
    pub fn new() -> Collector {
        default_collector().clone()
    }

    /// Returns this thread's part.
    pub fn register(&self) -> LocalHandle {
        LocalHandle { thread: PhantomData }
    }
}

impl Default for Collector {
    fn default() -> Collector {
        Collector::new()
    }
}

impl LocalHandle {
    /// Works like [`pin`].
    #[inline]
    pub fn pin(&self) -> Guard {
        pin()
    }

    /// Works like [`is_pinned`].
    #[inline]
    pub fn is_pinned(&self) -> bool {
        is_pinned()
    }

    /// Returns the collector.
    pub fn collector(&self) -> &Collector {
        default_collector()
    }
}
