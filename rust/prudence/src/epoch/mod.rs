// SPDX-License-Identifier: MIT
//! Epochs with the types and signatures of `crossbeam-epoch` 0.9. A crate that uses that one moves
//! over by `use prudence::epoch` (or `as crossbeam_epoch`).
//!
//! # Differences
//!
//! - Objects that a thread defers wait for the guards of all [collectors](Collector), not only of
//! its own.
//! - Deferred functions and drops run when a guard is dropped or moved, not in [`pin`], `defer` or
//!   [`flush`](Guard::flush); always by a thread that uses the collector, or where it ends. Never on a thread
//!   of the library. [`barrier`](crate::barrier) waits for those of the default collector.
//! - Memory without drop glue goes to the allocator, if [`global_allocator!`](crate::global_allocator)
//!   installed it. While more than `latent_limit` waits there, threads that allocate or defer outside of
//!   guards are held back; nothing waits under a guard.
//! - A deferred function that panics is reported by the panic hook, and ends alone.
//! - [`is_pinned`] and [`Guard::repin`] count the thread's guards of all collectors.
//! - Pointers are to types of known size. There is no `Pointable`.

mod atomic;
mod collector;
mod guard;

pub use atomic::{Atomic, CompareExchangeError, Owned, Pointer, Shared};
#[allow(deprecated)]
pub use atomic::{CompareAndSetError, CompareAndSetOrdering};
pub use collector::{default_collector, Collector, LocalHandle};
pub use guard::{is_pinned, pin, unprotected, Guard};
