// SPDX-License-Identifier: MIT
//! Bindings of libprudence, a slab memory allocator that knows which
//! objects are about to be freed.
//!
//! The functions, structures and constants are those of the headers `<prudence/*.h>`, which say what
//! each does, what it may be given, and in which threads it may be called. The crate `prudence` has
//! safe types on top of them.
//!
//! `build.rs` asks pkg-config for the library. The variable `PRUDENCE_LIB_DIR` names another folder.
#![no_std]
#![allow(non_camel_case_types, clippy::missing_safety_doc)]

use core::ffi::c_void;
use core::mem::{align_of, size_of};
use libc_types::{c_char, c_int, c_uchar, c_uint, c_ulong};

mod libc_types {
    // core::ffi has these since Rust 1.64.
    pub use std::os::raw::{c_char, c_int, c_uchar, c_uint, c_ulong};
    extern crate std;
}

include!("bindings.rs");

#[cfg(miri)]
mod fallback;

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::ffi::CString;

    #[test]
    fn structures_are_as_in_the_library() {
        assert!(SIZES.len() > 30);
        for &(name, size, alignment) in SIZES {
            let text = CString::new(name).unwrap();
            // SAFETY: `text` is a string that ends with 0.
            let library =
                unsafe { (prudence_sizeof(text.as_ptr()), prudence_alignof(text.as_ptr())) };
            // Structures that only inlined readers read have no entry in the library's table.
            if library != (0, 0) {
                assert_eq!((size, alignment), library, "{name}");
            }
        }
    }

    #[test]
    fn the_library_is_of_this_version() {
        // SAFETY: the library returns a string that ends with 0 and lives as long as the process.
        let version = unsafe { std::ffi::CStr::from_ptr(prudence_version()) };
        assert_eq!(version.to_str().unwrap(), env!("CARGO_PKG_VERSION"));
    }
}
