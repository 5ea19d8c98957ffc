// SPDX-License-Identifier: MIT
//! Epochs with the types and signatures of `crossbeam-epoch` 0.9. A crate that uses that one moves
//! over by `use prudence::epoch` (or `as crossbeam_epoch`).
//!
//! # What is different
//!
//! - Garbage belongs to the allocator, not to the thread that deferred it. A thread that ends or
//!   rests keeps none, beyond the next two grace periods. While more than `latent_limit` waits, threads that allocate or defer outside of
//!   guards are held back; nothing waits under a guard.
//! - Deferred functions and drops run on a thread of the library, not in a later [`pin`] or
//!   [`flush`](Guard::flush). [`barrier`](crate::barrier) waits for them.
//! - A deferred function that panics is reported by the panic hook, and ends alone.
//! - A guard that is leaked protects until its thread ends, and not for ever.
//! - All [collectors](Collector) are one, the library's default domain.
//! - Pointers are to types of known size. There is no `Pointable`.
//! - Deferred functions that still wait when the process exits do not run.

mod atomic;
mod collector;
mod guard;

pub use atomic::{Atomic, CompareExchangeError, Owned, Pointer, Shared};
pub use collector::{default_collector, Collector, LocalHandle};
pub use guard::{is_pinned, pin, unprotected, Guard};
