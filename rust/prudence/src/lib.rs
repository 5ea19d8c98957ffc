// SPDX-License-Identifier: MIT
//! Prudence for Rust: deferred frees that the allocator knows and bounds.
//!
//! A writer unlinks an object that readers may still use, and defers it. The allocator keeps the
//! object, hidden and unwritten, until every reader that could hold it has ended, and then hands
//! its memory out again. There is no queue of garbage in the program. While more than
//! `latent_limit` waits, threads that allocate or defer outside of guards are held back, for as
//! long as that helps. So allocate before you pin.
//!
//! - [`Prudence`] is a global allocator.
//! - [`Cache`] allocates values of one type, and retires them.
//! - [`epoch`] has the types and signatures of `crossbeam-epoch`: [`Guard`], [`Atomic`], [`Owned`],
//!   [`Shared`]. Readers are those of the library's default domain, so sections of C, C++ and Rust
//!   protect the same objects.
//! - [`seize`] has the types and signatures of `seize`.
//! - [`hazard`] has hazard pointers: a reader keeps the one object that it names.
//! - [`Reclaimer`] drops values on the thread that made it.
//!
//! ```
//! use prudence::epoch::{self, Atomic, Owned};
//! use std::sync::atomic::Ordering::{AcqRel, Acquire};
//!
//! let current = Atomic::new(1);
//! let guard = &epoch::pin();
//! let old = current.swap(Owned::new(2), AcqRel, guard);
//! // SAFETY: the pointer was loaded under `guard`, and no thread writes to the object.
//! assert_eq!(unsafe { current.load(Acquire, guard).as_ref() }, Some(&2));
//! // SAFETY: `old` is unlinked, and no other thread defers it.
//! unsafe { guard.defer_destroy(old) };
//! # let last = current.swap(epoch::Shared::null(), AcqRel, guard);
//! # // SAFETY: as above.
//! # unsafe { guard.defer_destroy(last) };
//! ```
#![deny(unsafe_op_in_unsafe_fn)]
#![warn(missing_docs)]
#![allow(unexpected_cfgs)] // kani

mod cache;
pub mod epoch;
mod garbage;
mod global;
pub mod hazard;
mod owned_sections;
mod reclaimer;
pub mod seize;
mod thread;
mod wait;

pub use cache::{Cache, CacheBox};
pub use epoch::{pin, Atomic, Guard, Owned, Shared};
pub use global::Prudence;
pub use reclaimer::{Home, Reclaimer};
pub use wait::{barrier, flush_until, synchronize, Flush};

#[doc(hidden)]
pub mod private {
    pub use crate::global::global_is_plain;
}
