// SPDX-License-Identifier: MIT
//! Pointers that readers follow under a guard: [`Atomic`] is the shared place, [`Owned`] a box that
//! no other code has, [`Shared`] a pointer loaded under a guard.
//!
//! Each may carry a tag in the bits of the address that the alignment of the type leaves unused.
//! The tag changes the address in place, so the pointer keeps its provenance.

use super::Guard;
use std::borrow::{Borrow, BorrowMut};
use std::cmp;
use std::fmt;
use std::marker::PhantomData;
use std::mem;
use std::ops::{Deref, DerefMut};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering};

const fn tag_bits<T>() -> usize {
    mem::align_of::<T>() - 1
}

fn tag_of<T>(pointer: *mut T) -> usize {
    pointer as usize & tag_bits::<T>()
}

fn with_tag<T>(pointer: *mut T, tag: usize) -> *mut T {
    let address = pointer as usize;
    let tagged = (address & !tag_bits::<T>()) | (tag & tag_bits::<T>());
    pointer.cast::<u8>().wrapping_add(tagged.wrapping_sub(address)).cast()
}

fn without_tag<T>(pointer: *mut T) -> *mut T {
    with_tag(pointer, 0)
}

#[track_caller]
fn assert_aligned<T>(pointer: *const T) {
    assert_eq!(pointer as usize & tag_bits::<T>(), 0, "the pointer is not aligned");
}

/// A pointer that an [`Atomic`] can hold: an [`Owned`], a [`Shared`], or a
/// [`CacheBox`](crate::CacheBox).
pub trait Pointer<T> {
    /// Returns the pointer with its tag. Ownership goes along.
    fn into_ptr(self) -> *mut T;

    /// Makes the pointer again.
    ///
    /// # Safety
    ///
    /// `pointer` came from `into_ptr` of the same type, and is made into an owner once.
    unsafe fn from_ptr(pointer: *mut T) -> Self;
}

/// The pointer that a failed `compare_exchange` found, and the one that was not stored.
pub struct CompareExchangeError<'g, T, P: Pointer<T>> {
    /// The pointer in the atomic.
    pub current: Shared<'g, T>,
    /// The pointer that was not stored.
    pub new: P,
}

impl<T, P: Pointer<T> + fmt::Debug> fmt::Debug for CompareExchangeError<'_, T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompareExchangeError")
            .field("current", &self.current)
            .field("new", &self.new)
            .finish()
    }
}

/// The error of [`compare_and_set`](Atomic::compare_and_set).
#[deprecated(note = "use `CompareExchangeError`")]
pub type CompareAndSetError<'g, T, P> = CompareExchangeError<'g, T, P>;

/// The orderings of a [`compare_and_set`](Atomic::compare_and_set): one for both outcomes, or a pair.
#[deprecated(note = "`compare_exchange` takes two orderings")]
pub trait CompareAndSetOrdering {
    /// The ordering if the pointer is stored.
    fn success(&self) -> Ordering;

    /// The ordering if it is not.
    fn failure(&self) -> Ordering;
}

#[allow(deprecated)]
impl CompareAndSetOrdering for Ordering {
    fn success(&self) -> Ordering {
        *self
    }

    fn failure(&self) -> Ordering {
        strongest_failure(*self)
    }
}

#[allow(deprecated)]
impl CompareAndSetOrdering for (Ordering, Ordering) {
    fn success(&self) -> Ordering {
        self.0
    }

    fn failure(&self) -> Ordering {
        self.1
    }
}

fn strongest_failure(success: Ordering) -> Ordering {
    match success {
        Ordering::AcqRel => Ordering::Acquire,
        Ordering::Release => Ordering::Relaxed,
        order => order,
    }
}

/// A place with a pointer, which threads load and change. Dropping it does not drop the object.
///
/// ```compile_fail
/// // A value that must not be shared is not shared by an atomic.
/// fn shared<T: Sync>(_: T) {}
/// shared(prudence::Atomic::new(std::cell::Cell::new(1)));
/// ```
pub struct Atomic<T> {
    pointer: AtomicPtr<T>,
    owns: PhantomData<*mut T>,
}

// SAFETY: threads that have the atomic share the object (T: Sync), and one of them may own the object
// in the end (T: Send).
unsafe impl<T: Send + Sync> Send for Atomic<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Atomic<T> {}

impl<T> Atomic<T> {
    fn of(pointer: *mut T) -> Atomic<T> {
        Atomic { pointer: AtomicPtr::new(pointer), owns: PhantomData }
    }

    /// Allocates `value`.
    #[must_use]
    pub fn new(value: T) -> Atomic<T> {
        Atomic::from(Owned::new(value))
    }

    /// Works like [`new`](Atomic::new).
    pub fn init(value: T) -> Atomic<T> {
        Atomic::new(value)
    }

    /// Returns a null pointer.
    #[must_use]
    pub const fn null() -> Atomic<T> {
        Atomic { pointer: AtomicPtr::new(ptr::null_mut()), owns: PhantomData }
    }

    /// Loads the pointer.
    #[inline]
    #[must_use]
    pub fn load<'g>(&self, order: Ordering, _: &'g Guard) -> Shared<'g, T> {
        Shared::of(self.pointer.load(order))
    }

    /// Loads the pointer for use as an address. Costs as much as `Acquire`.
    #[inline]
    #[must_use]
    pub fn load_consume<'g>(&self, guard: &'g Guard) -> Shared<'g, T> {
        self.load(Ordering::Acquire, guard)
    }

    /// Stores a pointer.
    #[inline]
    pub fn store<P: Pointer<T>>(&self, new: P, order: Ordering) {
        self.pointer.store(new.into_ptr(), order);
    }

    /// Stores a pointer, and returns the one before.
    #[inline]
    #[must_use]
    pub fn swap<'g, P: Pointer<T>>(&self, new: P, order: Ordering, _: &'g Guard) -> Shared<'g, T> {
        Shared::of(self.pointer.swap(new.into_ptr(), order))
    }

    /// Stores `new` if the atomic has `current`, tag included. Returns `new`, or the pointer found.
    #[inline]
    pub fn compare_exchange<'g, P: Pointer<T>>(
        &self,
        current: Shared<'_, T>,
        new: P,
        success: Ordering,
        failure: Ordering,
        _: &'g Guard,
    ) -> Result<Shared<'g, T>, CompareExchangeError<'g, T, P>> {
        let new = new.into_ptr();
        exchanged(new, self.pointer.compare_exchange(current.into_ptr(), new, success, failure))
    }

    /// Works like [`compare_exchange`](Atomic::compare_exchange), but may fail without a reason.
    #[inline]
    pub fn compare_exchange_weak<'g, P: Pointer<T>>(
        &self,
        current: Shared<'_, T>,
        new: P,
        success: Ordering,
        failure: Ordering,
        _: &'g Guard,
    ) -> Result<Shared<'g, T>, CompareExchangeError<'g, T, P>> {
        let new = new.into_ptr();
        exchanged(
            new,
            self.pointer.compare_exchange_weak(current.into_ptr(), new, success, failure),
        )
    }

    /// Works like [`compare_exchange`](Atomic::compare_exchange).
    #[deprecated(note = "use `compare_exchange`")]
    #[allow(deprecated)]
    pub fn compare_and_set<'g, O: CompareAndSetOrdering, P: Pointer<T>>(
        &self,
        current: Shared<'_, T>,
        new: P,
        order: O,
        guard: &'g Guard,
    ) -> Result<Shared<'g, T>, CompareAndSetError<'g, T, P>> {
        self.compare_exchange(current, new, order.success(), order.failure(), guard)
    }

    /// Works like [`compare_exchange_weak`](Atomic::compare_exchange_weak).
    #[deprecated(note = "use `compare_exchange_weak`")]
    #[allow(deprecated)]
    pub fn compare_and_set_weak<'g, O: CompareAndSetOrdering, P: Pointer<T>>(
        &self,
        current: Shared<'_, T>,
        new: P,
        order: O,
        guard: &'g Guard,
    ) -> Result<Shared<'g, T>, CompareAndSetError<'g, T, P>> {
        self.compare_exchange_weak(current, new, order.success(), order.failure(), guard)
    }

    /// Stores what `function` returns for the present pointer, until no other thread comes between.
    /// Returns the pointer before, or the present one if `function` returned none.
    #[inline]
    pub fn fetch_update<'g, F>(
        &self,
        set_order: Ordering,
        fail_order: Ordering,
        _: &'g Guard,
        mut function: F,
    ) -> Result<Shared<'g, T>, Shared<'g, T>>
    where
        F: FnMut(Shared<'g, T>) -> Option<Shared<'g, T>>,
    {
        self.pointer
            .fetch_update(set_order, fail_order, |pointer| {
                function(Shared::of(pointer)).map(Shared::into_ptr)
            })
            .map(Shared::of)
            .map_err(Shared::of)
    }

    /// Changes the tag, and returns the pointer before.
    fn fetch_tag<'g>(&self, order: Ordering, change: impl Fn(usize) -> usize) -> Shared<'g, T> {
        let failure = strongest_failure(order);
        let change = |pointer| Some(with_tag(pointer, change(tag_of(pointer))));
        match self.pointer.fetch_update(order, failure, change) {
            Ok(before) | Err(before) => Shared::of(before),
        }
    }

    /// Makes the tag `tag & value`, and returns the pointer before.
    #[inline]
    pub fn fetch_and<'g>(&self, value: usize, order: Ordering, _: &'g Guard) -> Shared<'g, T> {
        self.fetch_tag(order, |tag| tag & value)
    }

    /// Makes the tag `tag | value`, and returns the pointer before.
    #[inline]
    pub fn fetch_or<'g>(&self, value: usize, order: Ordering, _: &'g Guard) -> Shared<'g, T> {
        self.fetch_tag(order, |tag| tag | value)
    }

    /// Makes the tag `tag ^ value`, and returns the pointer before.
    #[inline]
    pub fn fetch_xor<'g>(&self, value: usize, order: Ordering, _: &'g Guard) -> Shared<'g, T> {
        self.fetch_tag(order, |tag| tag ^ value)
    }

    /// Takes the object out.
    ///
    /// # Safety
    ///
    /// The pointer is not null, it came from an [`Owned`] or a `Box`, and no other code has the object.
    pub unsafe fn into_owned(self) -> Owned<T> {
        Owned::of(self.pointer.into_inner())
    }

    /// Takes the object out, if there is one.
    ///
    /// # Safety
    ///
    /// As for [`into_owned`](Atomic::into_owned), but the pointer may be null.
    pub unsafe fn try_into_owned(self) -> Option<Owned<T>> {
        let pointer = self.pointer.into_inner();
        (!without_tag(pointer).is_null()).then(|| Owned::of(pointer))
    }
}

/// The result of a compare_exchange that was to store `new`.
fn exchanged<'g, T, P: Pointer<T>>(
    new: *mut T,
    result: Result<*mut T, *mut T>,
) -> Result<Shared<'g, T>, CompareExchangeError<'g, T, P>> {
    match result {
        Ok(_) => Ok(Shared::of(new)),
        Err(found) => Err(CompareExchangeError {
            current: Shared::of(found),
            // SAFETY: `new` came from `into_ptr` of a P, and was not stored.
            new: unsafe { P::from_ptr(new) },
        }),
    }
}

impl<T> Clone for Atomic<T> {
    /// Copies the pointer, with a relaxed load.
    fn clone(&self) -> Atomic<T> {
        Atomic::of(self.pointer.load(Ordering::Relaxed))
    }
}

impl<T> Default for Atomic<T> {
    fn default() -> Atomic<T> {
        Atomic::null()
    }
}

impl<T> From<Owned<T>> for Atomic<T> {
    fn from(owned: Owned<T>) -> Atomic<T> {
        Atomic::of(owned.into_ptr())
    }
}

impl<T> From<Box<T>> for Atomic<T> {
    fn from(value: Box<T>) -> Atomic<T> {
        Atomic::from(Owned::from(value))
    }
}

impl<T> From<T> for Atomic<T> {
    fn from(value: T) -> Atomic<T> {
        Atomic::new(value)
    }
}

impl<'g, T> From<Shared<'g, T>> for Atomic<T> {
    fn from(shared: Shared<'g, T>) -> Atomic<T> {
        Atomic::of(shared.into_ptr())
    }
}

impl<T> From<*const T> for Atomic<T> {
    fn from(pointer: *const T) -> Atomic<T> {
        Atomic::from(Shared::from(pointer))
    }
}

impl<T> fmt::Debug for Atomic<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug("Atomic", self.pointer.load(Ordering::SeqCst), f)
    }
}

impl<T> fmt::Pointer for Atomic<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Pointer::fmt(&without_tag(self.pointer.load(Ordering::SeqCst)), f)
    }
}

fn debug<T>(name: &str, pointer: *mut T, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.debug_struct(name).field("raw", &without_tag(pointer)).field("tag", &tag_of(pointer)).finish()
}

// ------------------------------------------------------------------------------------------ owned

/// A box with a tag, which no other code has. Its memory is that of a `Box`.
pub struct Owned<T> {
    pointer: NonNull<T>, // of a Box, with a tag; covariant in T
    owns: PhantomData<Box<T>>,
}

// SAFETY: it owns a T and nothing else.
unsafe impl<T: Send> Send for Owned<T> {}
// SAFETY: a reference to it gives references to the T and nothing else.
unsafe impl<T: Sync> Sync for Owned<T> {}

impl<T> Owned<T> {
    fn of(pointer: *mut T) -> Owned<T> {
        debug_assert!(!without_tag(pointer).is_null(), "an owned pointer is not null");
        // SAFETY: the callers have checked, or their callers promise, that it is that of a box.
        Owned { pointer: unsafe { NonNull::new_unchecked(pointer) }, owns: PhantomData }
    }

    /// Allocates `value`.
    #[must_use]
    pub fn new(value: T) -> Owned<T> {
        Owned::from(Box::new(value))
    }

    /// Works like [`new`](Owned::new).
    pub fn init(value: T) -> Owned<T> {
        Owned::new(value)
    }

    /// Makes an owner of a pointer.
    ///
    /// # Safety
    ///
    /// `raw` came from an [`Owned`] or from `Box::into_raw`, and has no other owner.
    pub unsafe fn from_raw(raw: *mut T) -> Owned<T> {
        assert_aligned(raw);
        Owned::of(raw)
    }

    /// Makes a pointer that readers may have, for a store under `guard`.
    #[inline]
    #[must_use]
    pub fn into_shared(self, _: &Guard) -> Shared<'_, T> {
        Shared::of(self.into_ptr())
    }

    /// Makes a box. The tag is lost.
    #[must_use]
    pub fn into_box(self) -> Box<T> {
        let pointer = without_tag(self.into_ptr());
        // SAFETY: the pointer is that of a box, of which `self` was the only owner.
        unsafe { Box::from_raw(pointer) }
    }

    /// Returns the tag.
    #[must_use]
    pub fn tag(&self) -> usize {
        tag_of(self.pointer.as_ptr())
    }

    /// Returns the same pointer with this tag, of which the unused bits of an address are kept.
    #[must_use]
    pub fn with_tag(self, tag: usize) -> Owned<T> {
        Owned::of(with_tag(self.into_ptr(), tag))
    }
}

impl<T> Pointer<T> for Owned<T> {
    #[inline]
    fn into_ptr(self) -> *mut T {
        let pointer = self.pointer.as_ptr();
        mem::forget(self);
        pointer
    }

    #[inline]
    unsafe fn from_ptr(pointer: *mut T) -> Owned<T> {
        Owned::of(pointer)
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        // SAFETY: the pointer is that of a box, of which `self` is the only owner.
        drop(unsafe { Box::from_raw(without_tag(self.pointer.as_ptr())) });
    }
}

impl<T> Deref for Owned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the object is there as long as its owner.
        unsafe { &*without_tag(self.pointer.as_ptr()) }
    }
}

impl<T> DerefMut for Owned<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the object is there as long as its owner, whom the caller has for itself.
        unsafe { &mut *without_tag(self.pointer.as_ptr()) }
    }
}

impl<T: Clone> Clone for Owned<T> {
    fn clone(&self) -> Owned<T> {
        Owned::new((**self).clone()).with_tag(self.tag())
    }
}

impl<T> From<Box<T>> for Owned<T> {
    fn from(value: Box<T>) -> Owned<T> {
        Owned::of(Box::into_raw(value))
    }
}

impl<T> From<T> for Owned<T> {
    fn from(value: T) -> Owned<T> {
        Owned::new(value)
    }
}

impl<T> Borrow<T> for Owned<T> {
    fn borrow(&self) -> &T {
        self
    }
}

impl<T> BorrowMut<T> for Owned<T> {
    fn borrow_mut(&mut self) -> &mut T {
        self
    }
}

impl<T> AsRef<T> for Owned<T> {
    fn as_ref(&self) -> &T {
        self
    }
}

impl<T> AsMut<T> for Owned<T> {
    fn as_mut(&mut self) -> &mut T {
        self
    }
}

impl<T> fmt::Debug for Owned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug("Owned", self.pointer.as_ptr(), f)
    }
}

// ----------------------------------------------------------------------------------------- shared

/// A pointer that was loaded under a guard, or null.
///
/// ```compile_fail
/// // It does not outlive its guard.
/// use std::sync::atomic::Ordering::Acquire;
/// let place = prudence::Atomic::new(1);
/// let found = place.load(Acquire, &prudence::pin());
/// assert!(!found.is_null());
/// ```
///
/// ```compile_fail
/// // It stays in its thread.
/// fn sent<T: Send>(_: T) {}
/// sent(prudence::Shared::<i32>::null());
/// ```
pub struct Shared<'g, T: 'g> {
    pointer: *const T, // with a tag; covariant in T
    guard: PhantomData<(&'g (), *const T)>,
}

impl<T> Clone for Shared<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Shared<'_, T> {}

impl<'g, T> Shared<'g, T> {
    pub(crate) fn of(pointer: *mut T) -> Shared<'g, T> {
        Shared { pointer, guard: PhantomData }
    }

    /// Returns a null pointer.
    #[must_use]
    pub const fn null() -> Shared<'g, T> {
        Shared { pointer: ptr::null(), guard: PhantomData }
    }

    /// Returns whether the pointer is null, whatever its tag.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.as_raw().is_null()
    }

    /// Returns the pointer without its tag.
    #[must_use]
    pub fn as_raw(&self) -> *const T {
        without_tag(self.pointer as *mut T)
    }

    /// Returns the object.
    ///
    /// # Safety
    ///
    /// The pointer is not null, the object was linked when the pointer was loaded, its contents were
    /// published (the load was `Acquire` or later, and the store `Release`), and no thread has a unique
    /// reference to it.
    #[must_use]
    pub unsafe fn deref(&self) -> &'g T {
        // SAFETY: as the caller promises, the object stays until the guard is dropped.
        unsafe { &*self.as_raw() }
    }

    /// Returns the object, for changes.
    ///
    /// # Safety
    ///
    /// As for [`deref`](Shared::deref), and no other code has a reference to the object.
    pub unsafe fn deref_mut(&mut self) -> &'g mut T {
        // SAFETY: as the caller promises.
        unsafe { &mut *without_tag(self.pointer as *mut T) }
    }

    /// Returns the object, or `None` if the pointer is null.
    ///
    /// # Safety
    ///
    /// As for [`deref`](Shared::deref), but the pointer may be null.
    #[must_use]
    pub unsafe fn as_ref(&self) -> Option<&'g T> {
        // SAFETY: as the caller promises.
        unsafe { self.as_raw().as_ref() }
    }

    /// Makes an owner.
    ///
    /// # Safety
    ///
    /// The pointer is not null, it came from an [`Owned`] or a `Box`, and no other code has the object.
    pub unsafe fn into_owned(self) -> Owned<T> {
        Owned::of(self.pointer as *mut T)
    }

    /// Makes an owner, or `None` if the pointer is null.
    ///
    /// # Safety
    ///
    /// As for [`into_owned`](Shared::into_owned), but the pointer may be null.
    pub unsafe fn try_into_owned(self) -> Option<Owned<T>> {
        (!self.is_null()).then(|| Owned::of(self.pointer as *mut T))
    }

    /// Returns the tag.
    #[must_use]
    pub fn tag(&self) -> usize {
        tag_of(self.pointer as *mut T)
    }

    /// Returns the same pointer with this tag, of which the unused bits of an address are kept.
    #[must_use]
    pub fn with_tag(&self, tag: usize) -> Shared<'g, T> {
        Shared::of(with_tag(self.pointer as *mut T, tag))
    }
}

impl<T> Pointer<T> for Shared<'_, T> {
    #[inline]
    fn into_ptr(self) -> *mut T {
        self.pointer as *mut T
    }

    #[inline]
    unsafe fn from_ptr(pointer: *mut T) -> Self {
        Shared::of(pointer)
    }
}

impl<T> From<*const T> for Shared<'_, T> {
    fn from(pointer: *const T) -> Self {
        assert_aligned(pointer);
        Shared::of(pointer as *mut T)
    }
}

impl<T> PartialEq for Shared<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        self.pointer == other.pointer
    }
}

impl<T> Eq for Shared<'_, T> {}

impl<T> PartialOrd for Shared<'_, T> {
    fn partial_cmp(&self, other: &Self) -> Option<cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Shared<'_, T> {
    fn cmp(&self, other: &Self) -> cmp::Ordering {
        self.pointer.cmp(&other.pointer)
    }
}

impl<T> Default for Shared<'_, T> {
    fn default() -> Self {
        Shared::null()
    }
}

impl<T> fmt::Debug for Shared<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug("Shared", self.pointer as *mut T, f)
    }
}

impl<T> fmt::Pointer for Shared<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Pointer::fmt(&self.as_raw(), f)
    }
}

// ------------------------------------------------------------------------------------------ proofs

/// `cargo kani` runs these, for every tag.
#[cfg(kani)]
mod proofs {
    use super::*;

    #[kani::proof]
    fn a_tag_leaves_the_address() {
        let mut object = 7_u64;
        let pointer: *mut u64 = &mut object;
        let tagged = with_tag(pointer, kani::any());
        assert_eq!(without_tag(tagged), pointer);
        // SAFETY: the pointer without its tag is that of `object`.
        assert_eq!(unsafe { *without_tag(tagged) }, 7);
    }

    #[kani::proof]
    fn a_tag_is_kept_as_far_as_there_are_bits() {
        let mut object = 7_u64;
        let (first, second): (usize, usize) = (kani::any(), kani::any());
        let tagged = with_tag(with_tag(&mut object, first), second);
        assert_eq!(tag_of(tagged), second & 7);
    }

    #[kani::proof]
    fn bytes_have_no_tag() {
        let mut object = 7_u8;
        let pointer: *mut u8 = &mut object;
        assert_eq!(with_tag(pointer, kani::any()), pointer);
    }
}
