// SPDX-License-Identifier: MIT
//! Fork, in a program whose other threads defer nothing.
mod common;

use prudence::epoch;

#[test]
#[cfg_attr(miri, ignore)] // which cannot fork
fn a_forked_child_ends_what_was_deferred() {
    extern "C" {
        fn fork() -> i32;
        fn waitpid(process: i32, status: *mut i32, options: i32) -> i32;
        fn _exit(status: i32) -> !;
    }
    let census = common::Census::new();
    let guard = epoch::pin(); // nothing ends before the fork
    (0..100).for_each(|number| guard.defer_value(common::Counted::new(&census, number)));
    // SAFETY: the child calls the library, whose functions may be called there, and ends.
    unsafe {
        let child = fork();
        if child == 0 {
            drop(guard);
            let ended = prudence::barrier().is_ok() && census.counts() == (100, 100);
            _exit(!ended as i32);
        }
        let mut status = -1;
        assert_eq!((waitpid(child, &mut status, 0), status), (child, 0));
    }
    drop(guard);
    prudence::barrier().unwrap();
    assert_eq!(census.counts(), (100, 100));
}
