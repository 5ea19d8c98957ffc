// SPDX-License-Identifier: MIT
//! What program_mode.c does, in Rust. The linker of the test makes a program of it (test_linkers.py).
#![allow(dead_code, non_camel_case_types)]
#![no_main]

use std::ffi::CStr;
use std::mem::{align_of, size_of, zeroed};
use std::os::raw::{c_char, c_int, c_uchar, c_uint, c_ulong, c_void};

include!("../../rust/prudence-sys/src/bindings.rs");

#[no_mangle]
pub extern "C" fn main() -> c_int {
    // SAFETY: the structure consists of numbers and bytes, each object is freed once, and the library ends
    // its texts with a zero.
    unsafe {
        let mut stats: prudence_stats = zeroed();
        prudence_free(prudence_malloc(1));
        prudence_free_deferred(prudence_malloc(1));
        prudence_barrier();
        assert_eq!(prudence_stats_sized(&mut stats, size_of::<prudence_stats>()), 0);
        let text = |bytes: &[c_char]| CStr::from_ptr(bytes.as_ptr()).to_string_lossy().into_owned();
        println!(
            "percpu={} ({}) membarrier={}",
            text(&stats.percpu),
            text(&stats.percpu_reason),
            text(&stats.membarrier)
        );
    }
    0
}
