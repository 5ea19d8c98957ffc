// SPDX-License-Identifier: MIT
//! Collectors with the types and signatures of `seize` 0.5. A crate that uses that one moves over by
//! `use prudence::seize`.
//!
//! # What is different
//!
//! - What a thread retires waits for the guards of all collectors, not only of its own.
//! - Reclaimers run on a thread of the library, or where the collector is dropped; never in a guard's
//!   drop, in `retire` or in `flush`.
//! - Memory without drop glue that is retired with [`reclaim::boxed`] goes to the allocator, and no
//!   reclaimer runs, if [`global_allocator!`](crate::global_allocator) installed the allocator.
//! - A reclaimer that panics is reported by the panic hook, and ends alone.
//! - [`LocalGuard`]s that are leaked protect until their thread ends, and not for ever.

mod collector;
mod guard;
mod local;
mod owned;
pub mod reclaim;

pub use collector::Collector;
pub use guard::Guard;
pub use local::LocalGuard;
pub use owned::OwnedGuard;
