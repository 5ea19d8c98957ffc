// SPDX-License-Identifier: MIT
//! A place with a box, and boxes taken out of it.
//!
//! A box is linked in one place at most, because a value moves in and comes out as [`Unlinked`]. That
//! retires the value when it is dropped, so no box is dropped while it is named. A value is a
//! [`Node`]'s, which has the library's head, so retiring needs no memory.

use super::retire::{retire_head, HEAD};
use crate::garbage::contain;
use prudence_sys as sys;
use std::alloc::Layout;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering::*};

/// A value, and the head that is the library's once the value is retired. Readers have references to
/// the value alone. The head is first, so that both have one address.
#[repr(C)]
pub(super) struct Node<T> {
    head: sys::prudence_hazard_head,
    value: T,
}

/// A place with a box or without, which threads read through a
/// [`HazardPointer`](super::HazardPointer) and replace. A replaced box is retired; so is the last
/// box when the place is dropped.
///
/// ```compile_fail
/// // Values end on any thread, so they may be sent.
/// prudence::hazard::AtomicBox::new(std::rc::Rc::new(1));
/// ```
///
/// ```compile_fail
/// // Values end at any later time, so they do not borrow.
/// let number = 1;
/// prudence::hazard::AtomicBox::new(&number);
/// ```
///
/// ```compile_fail
/// // A value that must not be shared is not shared by a place.
/// fn shared<T: Sync>(_: T) {}
/// shared(prudence::hazard::AtomicBox::new(std::cell::Cell::new(1)));
/// ```
///
/// ```compile_fail
/// // A place that is sent leaves references behind, so its value must be shareable, too.
/// fn sent<T: Send>(_: T) {}
/// sent(prudence::hazard::AtomicBox::new(std::cell::Cell::new(1)));
/// ```
pub struct AtomicBox<T> {
    node: AtomicPtr<Node<T>>,
    owns: PhantomData<Node<T>>,
}

// SAFETY: threads that have the place share its value (T: Sync), and one of them drops it (T: Send).
unsafe impl<T: Send + Sync> Send for AtomicBox<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for AtomicBox<T> {}

impl<T> AtomicBox<T> {
    #[inline]
    pub(super) fn link(&self) -> &AtomicPtr<Node<T>> {
        &self.node
    }

    /// Returns the node that is there now, which is not protected.
    #[inline]
    pub(super) fn peek(&self) -> *mut Node<T> {
        self.node.load(Relaxed)
    }

    /// Returns a node's value.
    ///
    /// # Safety
    ///
    /// The node is null, or protected as long as the reference is used.
    #[inline]
    pub(super) unsafe fn value<'h>(node: *const Node<T>) -> Option<&'h T> {
        // SAFETY: as the caller promises. Values are not changed once they are linked.
        (!node.is_null()).then(|| unsafe { &*ptr::addr_of!((*node).value) })
    }
}

impl<T: Send + 'static> AtomicBox<T> {
    /// Makes a place without a box.
    #[must_use]
    pub const fn empty() -> AtomicBox<T> {
        AtomicBox { node: AtomicPtr::new(ptr::null_mut()), owns: PhantomData }
    }

    /// Moves `value` to a box.
    #[must_use]
    pub fn new(value: T) -> AtomicBox<T> {
        AtomicBox { node: AtomicPtr::new(to_node(Some(value))), owns: PhantomData }
    }

    /// Replaces the value, and retires the one before.
    pub fn store(&self, value: T) {
        drop(self.swap(Some(value)));
    }

    /// Replaces the value, or takes it out, and returns the one before.
    pub fn swap(&self, new: Option<T>) -> Option<Unlinked<T>> {
        Unlinked::of(self.node.swap(to_node(new), AcqRel))
    }

    /// Replaces the value if it is still `current`, the object itself, and returns it.
    ///
    /// ```
    /// use prudence::hazard::{AtomicBox, HazardPointer};
    ///
    /// let count = AtomicBox::new(1);
    /// let mut hazard = HazardPointer::new();
    /// loop {
    ///     let current = hazard.protect(&count);
    ///     let next = current.map(|number| number + 1);
    ///     if count.compare_exchange(current, next).is_ok() {
    ///         break;
    ///     }
    /// }
    /// assert_eq!(hazard.protect(&count), Some(&2));
    /// ```
    ///
    /// # Errors
    ///
    /// `new`, which was not stored.
    pub fn compare_exchange(
        &self,
        current: Option<&T>,
        new: Option<T>,
    ) -> Result<Option<Unlinked<T>>, Option<T>> {
        let new = to_node(new);
        match self.node.compare_exchange(node_of(current), new, AcqRel, Relaxed) {
            Ok(before) => Ok(Unlinked::of(before)),
            // SAFETY: `new` was not stored.
            Err(_) => Err(unsafe { from_node(new) }),
        }
    }
}

/// The address of the node that has `value`, for comparisons alone.
fn node_of<T>(value: Option<&T>) -> *mut Node<T> {
    value.map_or(ptr::null_mut(), |value| {
        let head = Layout::new::<sys::prudence_hazard_head>();
        let (_, offset) = head.extend(Layout::new::<T>()).expect("there is a value of this layout");
        (value as *const T as *mut u8).wrapping_sub(offset).cast()
    })
}

fn to_node<T>(value: Option<T>) -> *mut Node<T> {
    value.map_or(ptr::null_mut(), |value| Box::into_raw(Box::new(Node { head: HEAD, value })))
}

/// # Safety
///
/// The node came from [`to_node`], and no other code has it.
unsafe fn from_node<T>(node: *mut Node<T>) -> Option<T> {
    // SAFETY: as the caller promises.
    (!node.is_null()).then(|| unsafe { Box::from_raw(node) }.value)
}

impl<T> Drop for AtomicBox<T> {
    fn drop(&mut self) {
        drop(Unlinked::of(*self.node.get_mut()));
    }
}

impl<T> fmt::Debug for AtomicBox<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AtomicBox").field(&self.peek()).finish()
    }
}

/// A value that its place links no more. Readers that have protected it may still use it. Dropping
/// this retires the value: it is dropped when no hazard pointer names it.
pub struct Unlinked<T> {
    node: NonNull<Node<T>>,
    owns: PhantomData<Node<T>>,
}

// SAFETY: it shares the value with readers (T: Sync), and its value may be dropped by any thread,
// because only places of such values are made.
unsafe impl<T: Send + Sync> Send for Unlinked<T> {}
// SAFETY: a reference to it gives references to the T and nothing else.
unsafe impl<T: Sync> Sync for Unlinked<T> {}

impl<T> Unlinked<T> {
    fn of(node: *mut Node<T>) -> Option<Unlinked<T>> {
        NonNull::new(node).map(|node| Unlinked { node, owns: PhantomData })
    }
}

impl<T> Deref for Unlinked<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the node is there until it is retired.
        unsafe { &*ptr::addr_of!((*self.node.as_ptr()).value) }
    }
}

impl<T> Drop for Unlinked<T> {
    fn drop(&mut self) {
        let node = self.node.as_ptr();
        // SAFETY: the node was unlinked for this owner alone, and is retired once. Its value may end
        // on any thread and at any time: `AtomicBox` is made for such types.
        unsafe { retire_head(node.cast(), node, end_node::<T>) }
    }
}

unsafe extern "C" fn end_node<T>(head: *mut sys::prudence_hazard_head) {
    // SAFETY: `drop` retired the node of a T, which the library gives back once, when no hazard pointer names it.
    contain(|| drop(unsafe { Box::from_raw(head.cast::<Node<T>>()) }));
}

impl<T: fmt::Debug> fmt::Debug for Unlinked<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// The orders are as in `epoch/atomic.rs`.
#[cfg(kani)]
mod proofs {
    use super::*;

    #[repr(align(64))]
    struct Aligned(#[allow(dead_code)] u8);

    fn proves<T>(value: T) {
        let node = Node { head: HEAD, value };
        assert_eq!(node_of(Some(&node.value)) as *const Node<T>, &node as *const Node<T>);
    }

    #[kani::proof]
    fn the_node_of_a_value_is_found() {
        proves(());
        proves(1_u8);
        proves([1_u64; 3]);
        proves(Aligned(1));
    }
}
