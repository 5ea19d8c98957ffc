// SPDX-License-Identifier: MIT
//! Hazard pointers: a reader names the one object that it uses, and only that object waits. A reader
//! that stays keeps one object alive; a [`Guard`](crate::Guard) would keep all that is deferred
//! while it lives.
//!
//! [`AtomicBox`] is a place with a box, which readers use through a [`HazardPointer`] while
//! writers replace it. Nothing of that is unsafe. Lists and trees that link nodes by `AtomicPtr` use
//! [`HazardPointer::protect_ptr`] and [`retire`], whose callers keep the rules.
//!
//! ```
//! use prudence::hazard::{AtomicBox, HazardPointer};
//!
//! let timeout = AtomicBox::new(30);
//! let mut hazard = HazardPointer::new();
//! let found = hazard.protect(&timeout);
//! timeout.store(60); // 30 is unlinked, and waits
//! assert_eq!(found, Some(&30));
//! assert_eq!(hazard.protect(&timeout), Some(&60));
//! ```
//!
//! # Where values are dropped
//!
//! Some calls of [`retire`], and some drops of an [`Unlinked`], drop values that were retired
//! before, in their own thread. So a drop must not need a lock that the callers hold. A drop that
//! panics is reported by the panic hook, and ends alone. About 1,000 values or 1 MB wait at a time,
//! and those that are named, whatever readers do. Values that still wait when the process exits are
//! not dropped; [`reclaim`] before the exit drops them.

mod atomic_box;
mod pointer;
mod retire;

pub use atomic_box::{AtomicBox, Unlinked};
pub use pointer::{Changed, HazardPointer};
pub use retire::{reclaim, retire};
