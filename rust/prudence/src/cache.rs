// SPDX-License-Identifier: MIT
//! Caches of values of one type.
//!
//! A cache of a type with drop glue has a destructor in C, so retired values need neither a callback
//! nor a word of their own. A value that its owner drops or takes out is finished in Rust; then the
//! destructor must pass over its memory. [`FINISHED`] marks such memory.

use crate::epoch::{Pointer, Shared};
use crate::garbage;
use crate::wait;
use prudence_sys as sys;
use std::alloc::{handle_alloc_error, Layout};
use std::cell::Cell;
use std::ffi::{c_void, CString};
use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::mem;
use std::ops::{Deref, DerefMut};
use std::ptr::{self, NonNull};

thread_local! {
    /// The memory that this thread frees, whose value has ended already. Without a destructor, so that
    /// it lasts as long as the thread.
    static FINISHED: Cell<*mut c_void> = const { Cell::new(ptr::null_mut()) };
}

/// Frees memory of a cache whose value has ended.
///
/// # Safety
///
/// `memory` is an object of a [`Cache<T>`], which no other code has.
unsafe fn free_finished<T>(memory: *mut T) {
    let memory = memory.cast();
    if !mem::needs_drop::<T>() {
        // SAFETY: as the caller promises. The cache has no destructor.
        return unsafe { sys::prudence_free(memory) };
    }
    FINISHED.with(|finished| {
        // A destructor that the library calls here may free other objects.
        let outer = finished.replace(memory);
        // SAFETY: as the caller promises.
        unsafe { sys::prudence_free(memory) };
        finished.set(outer);
    });
}

/// The destructor of a cache.
unsafe extern "C" fn destroy<T>(memory: *mut c_void, _: *mut c_void) {
    if FINISHED.with(Cell::get) != memory {
        // SAFETY: the library calls this once for each value that was freed or deferred, when no thread
        // else has it.
        garbage::contain(|| unsafe { ptr::drop_in_place(memory.cast::<T>()) });
    }
}

/// A slab cache for values of type `T`. Values of a cache lie together in memory; statistics and tools
/// name the cache.
///
/// Dropping a cache waits until the values that were retired have been dropped. While this thread is
/// pinned, or is in the drop of a value of another cache, nothing can wait: then a thread of the library
/// ends the cache soon. If values are live then, the library reports that and keeps the cache for the
/// rest of the process.
///
/// ```
/// let numbers = prudence::Cache::new("numbers")?;
/// let mut one = numbers.make(1);
/// *one += 1;
/// assert_eq!(*one, 2);
/// numbers.retire(one); // freed when its readers have ended
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Cache<T> {
    raw: NonNull<sys::prudence_cache>,
    makes: PhantomData<fn(T) -> T>,
}

// SAFETY: any thread may call the library's functions for a cache. The cache has no value of its own:
// live ones belong to their boxes, and retired ones are `Send`.
unsafe impl<T> Send for Cache<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Cache<T> {}

impl<T> Cache<T> {
    /// Makes a cache. `name` is in statistics and messages, and need not be unique.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the name is empty or has a zero byte, or if a value has more than 131,072 bytes or
    /// an alignment of more than 4,096; `ENOMEM` without memory.
    pub fn new(name: &str) -> io::Result<Cache<T>> {
        let name = CString::new(name)?;
        let destructor: Option<unsafe extern "C" fn(*mut c_void, *mut c_void)> =
            if mem::needs_drop::<T>() { Some(destroy::<T>) } else { None };
        let attr = sys::prudence_cache_attr {
            size: mem::size_of::<sys::prudence_cache_attr>(),
            alignment: mem::align_of::<T>(),
            flags: destructor.map_or(0, |_| sys::PRUDENCE_CACHE_DESTRUCT_SOON),
            reserved: 0,
            constructor: None,
            context: ptr::null_mut(),
            domain: ptr::null_mut(),
            object_cache_bytes: 0,
            destructor,
        };
        // SAFETY: the library copies the name and the attributes.
        let raw =
            unsafe { sys::prudence_cache_create(name.as_ptr(), mem::size_of::<T>().max(1), &attr) };
        match NonNull::new(raw) {
            Some(raw) => Ok(Cache { raw, makes: PhantomData }),
            None => Err(io::Error::last_os_error()),
        }
    }

    /// Moves `value` to memory of the cache. Without memory, ends as `Box::new` does.
    #[must_use]
    pub fn make(&self, value: T) -> CacheBox<T> {
        match self.try_make(value) {
            Ok(made) => made,
            Err(_) => handle_alloc_error(Layout::new::<T>()),
        }
    }

    /// Works like [`make`](Cache::make), but gives the value back if there is no memory.
    ///
    /// # Errors
    ///
    /// The value.
    pub fn try_make(&self, value: T) -> Result<CacheBox<T>, T> {
        // SAFETY: the cache is there as long as `self`.
        let memory = unsafe { sys::prudence_cache_alloc(self.raw.as_ptr()) };
        match NonNull::new(memory.cast::<T>()) {
            Some(object) => {
                // SAFETY: the memory is new, of T's size and alignment.
                unsafe { object.as_ptr().write(value) };
                Ok(CacheBox { object, owns: PhantomData })
            }
            None => Err(value),
        }
    }

    /// Drops `value` and frees its memory, once all guards that exist now are gone. Never fails, and
    /// needs no memory. The value may come from another cache.
    ///
    /// A thread of the library drops the value, or [`make`](Cache::make), which drops up to 32 values
    /// before it uses their memory again, or a thread that waits for the cache. So a drop must not
    /// need what the callers of these hold, such as a lock. A drop that panics is reported and ends
    /// alone.
    ///
    /// ```compile_fail
    /// // A value that stays in its thread is not retired.
    /// let cache = prudence::Cache::new("local").unwrap();
    /// cache.retire(cache.make(std::rc::Rc::new(1)));
    /// ```
    ///
    /// ```compile_fail
    /// // A retired value does not borrow.
    /// let number = 1;
    /// let cache = prudence::Cache::new("borrows").unwrap();
    /// cache.retire(cache.make(&number));
    /// ```
    pub fn retire(&self, value: CacheBox<T>)
    where
        T: Send + 'static,
    {
        // SAFETY: the box was the only owner, and by the bounds of T any thread may drop it later.
        unsafe { sys::prudence_free_deferred(value.into_ptr().cast()) }
    }

    /// Works like [`retire`](Cache::retire), for a pointer that was loaded under a guard. Null is
    /// ignored.
    ///
    /// # Safety
    ///
    /// The value came from a [`CacheBox`], is unlinked so that later guards cannot find it, and is not
    /// retired or dropped a second time.
    pub unsafe fn retire_shared(&self, shared: Shared<'_, T>)
    where
        T: Send + 'static,
    {
        // SAFETY: as the caller promises.
        unsafe { sys::prudence_free_deferred(shared.as_raw() as *mut c_void) }
    }

    /// Waits until all values that were retired before have been dropped.
    ///
    /// # Errors
    ///
    /// `EDEADLK` where the wait could never end: while this thread is pinned, or in a drop that the
    /// library called.
    pub fn barrier(&self) -> io::Result<()> {
        // SAFETY: the cache is there as long as `self`.
        wait::check(unsafe { sys::prudence_cache_barrier(self.raw.as_ptr()) })
    }

    /// Drops the cache, and says whether that went well.
    ///
    /// # Errors
    ///
    /// The cache, as usable as before, with `EBUSY` while values are live, or `EDEADLK` as for
    /// [`barrier`](Cache::barrier).
    pub fn destroy(self) -> Result<(), (Cache<T>, io::Error)> {
        // SAFETY: no other code has the cache.
        match wait::check(unsafe { sys::prudence_cache_destroy(self.raw.as_ptr()) }) {
            Ok(()) => {
                mem::forget(self);
                Ok(())
            }
            Err(error) => Err((self, error)),
        }
    }

    /// The cache of C, for functions that have no form here.
    #[must_use]
    pub fn as_raw(&self) -> *mut sys::prudence_cache {
        self.raw.as_ptr()
    }
}

impl<T> Drop for Cache<T> {
    fn drop(&mut self) {
        // SAFETY: no other code has the cache. If values are live, the library keeps it.
        unsafe { sys::prudence_cache_destroy_later(self.raw.as_ptr()) };
    }
}

impl<T> fmt::Debug for Cache<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cache").field(&self.raw).finish()
    }
}

/// A value in memory of a [`Cache`], like a `Box`. It may outlive the cache. Dropping it drops the
/// value at once.
///
/// ```compile_fail
/// // A value that must not leave its thread stays there.
/// let cache = prudence::Cache::new("local").unwrap();
/// let local = cache.make(std::rc::Rc::new(1));
/// std::thread::spawn(move || drop(local));
/// ```
pub struct CacheBox<T> {
    object: NonNull<T>,
    owns: PhantomData<T>,
}

// SAFETY: it owns a T and nothing else; any thread may free the memory.
unsafe impl<T: Send> Send for CacheBox<T> {}
// SAFETY: a reference to it gives references to the T and nothing else.
unsafe impl<T: Sync> Sync for CacheBox<T> {}

impl<T> CacheBox<T> {
    /// Takes the value out, and frees its memory.
    pub fn into_inner(self) -> T {
        let object = self.into_ptr();
        // SAFETY: the box was the only owner. The value is moved out before the memory goes.
        unsafe {
            let value = object.read();
            free_finished(object);
            value
        }
    }
}

impl<T> Pointer<T> for CacheBox<T> {
    #[inline]
    fn into_ptr(self) -> *mut T {
        let object = self.object.as_ptr();
        mem::forget(self);
        object
    }

    #[inline]
    unsafe fn from_ptr(pointer: *mut T) -> CacheBox<T> {
        // SAFETY: the caller passes a result of `into_ptr`.
        let object = unsafe { NonNull::new_unchecked(pointer) };
        CacheBox { object, owns: PhantomData }
    }
}

impl<T> Drop for CacheBox<T> {
    fn drop(&mut self) {
        /// Frees the memory, also when dropping the value panics.
        struct Free<T>(*mut T);
        impl<T> Drop for Free<T> {
            fn drop(&mut self) {
                // SAFETY: the box is the only owner, and its value has ended.
                unsafe { free_finished(self.0) }
            }
        }
        let _free = Free(self.object.as_ptr());
        // SAFETY: the box is the only owner.
        unsafe { ptr::drop_in_place(self.object.as_ptr()) }
    }
}

impl<T> Deref for CacheBox<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the value is there as long as its owner.
        unsafe { self.object.as_ref() }
    }
}

impl<T> DerefMut for CacheBox<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the value is there as long as its owner, whom the caller has for itself.
        unsafe { self.object.as_mut() }
    }
}

impl<T: fmt::Debug> fmt::Debug for CacheBox<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
