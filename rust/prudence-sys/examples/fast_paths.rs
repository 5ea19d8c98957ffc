// SPDX-License-Identifier: MIT
//! Prints how the library protects per-CPU caches in this program: `rseq`, or `lock` and why.
use std::ffi::CStr;
use std::mem::{size_of, zeroed};

use prudence_sys::{prudence_free, prudence_malloc, prudence_stats, prudence_stats_sized};

fn main() {
    // SAFETY: the structure consists of numbers and bytes, the object is freed once, and the library
    // ends its texts with a zero.
    let (percpu, reason) = unsafe {
        let mut stats: prudence_stats = zeroed();
        prudence_free(prudence_malloc(1));
        assert_eq!(prudence_stats_sized(&mut stats, size_of::<prudence_stats>()), 0);
        (
            CStr::from_ptr(stats.percpu.as_ptr()).to_owned(),
            CStr::from_ptr(stats.percpu_reason.as_ptr()).to_owned(),
        )
    };
    println!("{} {}", percpu.to_string_lossy(), reason.to_string_lossy());
}
