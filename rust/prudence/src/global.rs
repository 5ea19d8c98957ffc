// SPDX-License-Identifier: MIT
//! The global allocator.

use prudence_sys as sys;
use std::alloc::{GlobalAlloc, Layout};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

/// The alignment of every object of `prudence_malloc`.
const ALIGNED: usize = 16;

/// A global allocator. [`global_allocator!`](crate::global_allocator) installs it, or
///
/// ```
/// #[global_allocator]
/// static GLOBAL: prudence::Prudence = prudence::Prudence;
/// ```
///
/// The macro also says that no other allocator stands around it, see there.
#[derive(Clone, Copy, Debug, Default)]
pub struct Prudence;

/// Allocates memory of `layout`, whose size is not 0. Returns null if there is none.
pub(crate) fn allocate(layout: Layout) -> *mut u8 {
    // SAFETY: both functions take any size; an alignment of a layout is a power of two.
    unsafe {
        if layout.align() <= ALIGNED {
            sys::prudence_malloc(layout.size()).cast()
        } else {
            sys::prudence_aligned_alloc(layout.align(), layout.size()).cast()
        }
    }
}

// SAFETY: the library returns memory that no other thread uses until it is freed, of at least the size
// and the alignment asked for, or null; prudence_realloc and prudence_aligned_realloc keep the
// contents, and leave the old block if they return null. Nothing unwinds.
unsafe impl GlobalAlloc for Prudence {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        allocate(layout)
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= ALIGNED {
            // SAFETY: takes any size.
            return unsafe { sys::prudence_calloc(1, layout.size()).cast() };
        }
        let memory = allocate(layout);
        if !memory.is_null() {
            // SAFETY: the block is new and has layout.size() bytes.
            unsafe { ptr::write_bytes(memory, 0, layout.size()) };
        }
        memory
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller passes a block of this allocator that is not freed.
        unsafe {
            if layout.align() <= ALIGNED {
                sys::prudence_realloc(block.cast(), new_size).cast()
            } else {
                sys::prudence_aligned_realloc(block.cast(), layout.align(), new_size).cast()
            }
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, _layout: Layout) {
        // SAFETY: the caller passes a block of this allocator, once.
        unsafe { sys::prudence_free(block.cast()) }
    }
}

/// Returns whether `dealloc` of this program's global allocator does nothing but `prudence_free`.
static PLAIN: AtomicBool = AtomicBool::new(false);

/// Called by [`global_allocator!`](crate::global_allocator) before `main`.
#[doc(hidden)]
pub extern "C" fn global_is_plain() {
    PLAIN.store(true, Ordering::Relaxed);
}

/// Relaxed: the word is written before `main`, or while a shared library is loaded. A thread that
/// reads the old value only takes the slower way.
#[inline]
pub(crate) fn is_plain() -> bool {
    PLAIN.load(Ordering::Relaxed)
}

/// Makes [`Prudence`] the program's global allocator.
///
/// A `static` with `#[global_allocator]` does the same. But the crate cannot see there whether
/// another allocator stands around [`Prudence`], which counts blocks or puts a header before them
/// and must see each `dealloc`. With this macro there is none. So [`Guard::defer_destroy`] defers
/// memory of types without drop glue to the allocator, and no callback runs.
///
/// ```
/// prudence::global_allocator!();
///
/// fn main() {
///     assert_eq!(vec![1; 1000].iter().sum::<i32>(), 1000);
/// }
/// ```
///
/// [`Guard::defer_destroy`]: crate::Guard::defer_destroy
#[macro_export]
macro_rules! global_allocator {
    () => {
        #[global_allocator]
        static PRUDENCE_GLOBAL_ALLOCATOR: $crate::Prudence = $crate::Prudence;

        // The loader calls the functions of this section before `main`.
        #[used]
        #[link_section = ".init_array"]
        static PRUDENCE_GLOBAL_IS_PLAIN: extern "C" fn() = $crate::private::global_is_plain;
    };
}
