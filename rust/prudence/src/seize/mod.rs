// SPDX-License-Identifier: MIT
//! Collectors with the types and signatures of `seize` 0.5. A crate that uses that one moves over by
//! `use prudence::seize`.
//!
//! # Differences
//!
//! - Values that a thread retires wait for the guards of all collectors, not only of its own.
//! - Reclaimers run where `seize` runs them: in calls on the collector and in its guards' drops, by threads
//!   that have the collector, or in its drop. Never on a thread of the library. A batch has at most 62
//!   values.
//! - Memory without drop glue that is retired with [`reclaim::boxed`] goes to the allocator, and no
//!   reclaimer runs, if [`global_allocator!`](crate::global_allocator) installed the allocator.
//! - A reclaimer that panics is reported by the panic hook, and ends alone.
//! - Numbers of threads are not used again.

mod collector;
mod guard;
mod local;
mod owned;
pub mod reclaim;

pub use collector::Collector;
pub use guard::Guard;
pub use local::LocalGuard;
pub use owned::OwnedGuard;
