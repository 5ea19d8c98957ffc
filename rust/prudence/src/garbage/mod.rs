// SPDX-License-Identifier: MIT
//! Garbage, which waits for readers and ends by a function: drops, deferred functions, seize's
//! reclaimers.
//!
//! Such a function may expect to run where the original crates run it. So the library's threads never
//! call one. A function runs inside a call on its collector by a thread that has the collector, or
//! where the collector ends. Garbage that is leaked with its collector never ends.
//!
//! Entries are collected in [bags](bag), because waiting for a grace period costs some hundred times
//! as much as an entry. [`lanes`] has the bags that are being filled; [`stages`] has those that are
//! full until their readers have ended, and says which thread checks for that.

mod bag;
mod calling;
mod entry;
mod forks;
mod lanes;
mod stages;

pub(crate) use bag::CAPACITY;
pub(crate) use entry::{contain, Entry};
pub(crate) use stages::{Garbage, Unfinished};

/// Bags that one call on a collector of [`epoch`](crate::epoch) calls, as in `crossbeam-epoch`, so that no
/// guard has to end all that a reader held up.
pub(crate) const AT_ONCE: usize = 8;

/// The garbage of the default collector of [`epoch`](crate::epoch).
pub(crate) static EPOCHS: Garbage = Garbage::new(CAPACITY, AT_ONCE);
