// SPDX-License-Identifier: MIT
//! Prudence as the allocator of single collections, by the trait `Allocator` of `allocator-api2`: the
//! form that the standard library's trait is about to have. `hashbrown`, `bumpalo` and others take it.
//!
//! ```
//! use allocator_api2::vec::Vec;
//! use prudence_allocator_api2::PrudenceAllocator;
//!
//! let mut numbers = Vec::new_in(PrudenceAllocator);
//! numbers.extend([1, 2, 3]);
//! assert_eq!(numbers.iter().sum::<i32>(), 6);
//! ```
#![deny(unsafe_op_in_unsafe_fn)]
#![warn(missing_docs)]

use allocator_api2::alloc::{AllocError, Allocator, GlobalAlloc, Layout};
use prudence::Prudence;
use std::ptr::{self, NonNull};

/// The allocator. All values of it are one, so memory of one may be freed by another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrudenceAllocator;

fn block(memory: *mut u8, size: usize) -> Result<NonNull<[u8]>, AllocError> {
    let memory = NonNull::new(memory).ok_or(AllocError)?;
    Ok(NonNull::slice_from_raw_parts(memory, size))
}

/// The address of blocks of no bytes.
fn empty(layout: Layout) -> *mut u8 {
    ptr::null_mut::<u8>().wrapping_add(layout.align())
}

/// Changes the size of a block, in place if the alignment stays.
///
/// # Safety
///
/// As for [`Allocator::grow`] or [`Allocator::shrink`].
unsafe fn resize(old: NonNull<u8>, from: Layout, to: Layout) -> Result<NonNull<[u8]>, AllocError> {
    // SAFETY: as the caller promises. Both sizes are not 0 where the library has the block.
    unsafe {
        if from.align() == to.align() && from.size() != 0 && to.size() != 0 {
            return block(Prudence.realloc(old.as_ptr(), from, to.size()), to.size());
        }
        let new = PrudenceAllocator.allocate(to)?;
        let common = from.size().min(to.size());
        ptr::copy_nonoverlapping(old.as_ptr(), new.as_ptr().cast(), common);
        PrudenceAllocator.deallocate(old, from);
        Ok(new)
    }
}

// SAFETY: blocks stay where they are until they are freed, however the value is copied or moved. They
// have the size and the alignment that were asked for, as `Prudence` promises.
unsafe impl Allocator for PrudenceAllocator {
    #[inline]
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        if layout.size() == 0 {
            return block(empty(layout), 0);
        }
        // SAFETY: the size is not 0.
        block(unsafe { Prudence.alloc(layout) }, layout.size())
    }

    #[inline]
    fn allocate_zeroed(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        if layout.size() == 0 {
            return block(empty(layout), 0);
        }
        // SAFETY: the size is not 0.
        block(unsafe { Prudence.alloc_zeroed(layout) }, layout.size())
    }

    #[inline]
    unsafe fn deallocate(&self, memory: NonNull<u8>, layout: Layout) {
        if layout.size() != 0 {
            // SAFETY: the caller passes a block of this allocator, once.
            unsafe { Prudence.dealloc(memory.as_ptr(), layout) }
        }
    }

    unsafe fn grow(
        &self,
        old: NonNull<u8>,
        from: Layout,
        to: Layout,
    ) -> Result<NonNull<[u8]>, AllocError> {
        // SAFETY: as the caller promises.
        unsafe { resize(old, from, to) }
    }

    unsafe fn shrink(
        &self,
        old: NonNull<u8>,
        from: Layout,
        to: Layout,
    ) -> Result<NonNull<[u8]>, AllocError> {
        // SAFETY: as the caller promises.
        unsafe { resize(old, from, to) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use allocator_api2::{boxed::Box, vec::Vec};

    #[test]
    fn collections_grow_and_shrink() {
        let mut numbers = Vec::new_in(PrudenceAllocator);
        (0..10_000_u32).for_each(|number| numbers.push(number));
        numbers.truncate(100);
        numbers.shrink_to_fit();
        assert!(numbers.iter().copied().eq(0..100));
        assert_eq!(*Box::new_in(String::from("text"), PrudenceAllocator), "text");
        let mut nothing = Vec::new_in(PrudenceAllocator);
        nothing.extend([(); 3]);
        assert_eq!(nothing.len(), 3);
    }

    #[test]
    fn blocks_of_every_layout() {
        let at = PrudenceAllocator;
        for align in [1, 8, 16, 64, 4096] {
            for size in [0, 1, 24, 100, 5_000, 100_000] {
                let layout = Layout::from_size_align(size, align).unwrap();
                let made = at.allocate_zeroed(layout).unwrap();
                assert_eq!((made.len(), made.as_ptr().cast::<u8>() as usize % align), (size, 0));
                // SAFETY: the blocks are of these layouts, and each is passed on once.
                unsafe {
                    assert!(made.as_ref().iter().all(|&byte| byte == 0));
                    made.as_ptr().cast::<u8>().write_bytes(7, size);
                    let more = Layout::from_size_align(2 * size + 1, 2 * align).unwrap();
                    let grown = at.grow(made.cast(), layout, more).unwrap();
                    assert!(grown.as_ref()[..size].iter().all(|&byte| byte == 7));
                    let shrunk = at.shrink(grown.cast(), more, layout).unwrap();
                    assert!(shrunk.as_ref().iter().all(|&byte| byte == 7));
                    at.deallocate(shrunk.cast(), layout);
                }
            }
        }
        let huge = Layout::from_size_align(isize::MAX as usize / 2, 1).unwrap();
        assert!(at.allocate(huge).is_err());
    }
}
