// SPDX-License-Identifier: MIT
//! What waits for readers and ends by a function: drops, deferred functions, seize's reclaimers.
//!
//! The library calls one function for a [bag](bag) of them, because a callback costs some 60 ns and
//! a bag's entry a tenth of that. [`lanes`] has the bags that are being filled, and hands over those
//! that are full. A thread that defers little does not keep its bag: the library takes it when a
//! grace period has passed.

mod bag;
mod closed;
mod entry;
mod lanes;

pub(crate) use bag::CAPACITY;
pub(crate) use entry::{contain, Entry};
pub(crate) use lanes::Garbage;

/// What is deferred with the types of [`epoch`](crate::epoch).
pub(crate) static EPOCHS: Garbage = Garbage::new(CAPACITY);
