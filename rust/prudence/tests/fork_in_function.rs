// SPDX-License-Identifier: MIT
//! A deferred function that forks, in a program that defers nothing else.

use prudence::{epoch, Flush};
use std::sync::atomic::{AtomicI32, Ordering::*};
use std::thread;
use std::time::{Duration, Instant};

extern "C" {
    fn fork() -> i32;
    fn waitpid(process: i32, status: *mut i32, options: i32) -> i32;
    fn _exit(status: i32) -> !;
}

#[test]
#[cfg_attr(miri, ignore)] // which cannot fork
fn a_child_that_a_function_forked_waits_for_no_call_of_its_parent() {
    static CHILD: AtomicI32 = AtomicI32::new(-1);
    epoch::pin().defer(|| {
        // SAFETY: the child calls the library, whose functions may be called there, and ends.
        CHILD.store(unsafe { fork() }, SeqCst);
        if CHILD.load(SeqCst) == 0 {
            thread::spawn(|| prudence::barrier().unwrap()).join().unwrap();
        }
    });
    prudence::barrier().unwrap();
    let child = CHILD.load(SeqCst);
    if child == 0 {
        let late = Instant::now() + Duration::from_secs(10);
        let done = prudence::flush_until(late).unwrap() == Flush::Done;
        // SAFETY: ends the child, which has a copy of the test.
        unsafe { _exit(!done as i32) }
    }
    let mut status = -1;
    // SAFETY: takes the place of a number.
    assert_eq!((unsafe { waitpid(child, &mut status, 0) }, status), (child, 0));
}
