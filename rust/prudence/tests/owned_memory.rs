// SPDX-License-Identifier: MIT
//! An owned guard without memory. Alone in its program, because others need memory.

use prudence::seize::Collector;
use prudence_sys as sys;
use std::panic::{catch_unwind, set_hook, take_hook, AssertUnwindSafe};
use std::ptr;

/// The address space, in bytes.
#[repr(C)]
struct Limit {
    now: u64,
    most: u64,
}

extern "C" {
    fn getrlimit(what: i32, limit: *mut Limit) -> i32;
    fn setrlimit(what: i32, limit: *const Limit) -> i32;
}

const ADDRESS_SPACE: i32 = 9;

fn domain() -> *mut sys::prudence_domain {
    let name = b"another\0".as_ptr().cast();
    // SAFETY: the name ends with 0, and the library copies it.
    unsafe { sys::prudence_domain_create(name, sys::PRUDENCE_DOMAIN_SRCU, ptr::null()) }
}

#[test]
#[cfg_attr(miri, ignore)] // whose memory has no limit
fn an_owned_guard_without_memory_leaves_the_thread_unpinned() {
    let collector = Collector::new();
    drop(collector.enter()); // whatever a thread needs
    set_hook(Box::new(|_| ())); // the usual one may want memory
    let mut domains = Vec::with_capacity(100_000);
    let mut before = Limit { now: 0, most: 0 };
    // SAFETY: both take a structure of this layout.
    unsafe {
        assert_eq!(getrlimit(ADDRESS_SPACE, &mut before), 0);
        assert_eq!(setrlimit(ADDRESS_SPACE, &Limit { now: 0, ..before }), 0);
    }
    domains.extend(std::iter::repeat_with(domain).take_while(|made| !made.is_null()));
    let refused = catch_unwind(AssertUnwindSafe(|| drop(collector.enter_owned())));
    // SAFETY: as above; no thread uses the domains.
    unsafe {
        assert_eq!(setrlimit(ADDRESS_SPACE, &before), 0);
        domains.into_iter().for_each(|made| assert_eq!(sys::prudence_domain_destroy(made), 0));
    }
    drop(take_hook());
    assert!(refused.is_err(), "there was memory");
    assert!(!prudence::epoch::is_pinned());
    drop(collector.enter_owned());
}
