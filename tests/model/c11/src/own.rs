// SPDX-License-Identifier: MIT
//! The crate of Rust's own text under loom (build.rs), with the functions that the text calls: atomics, a grace period with one
//! reader, memory.

include!(concat!(env!("OUT_DIR"), "/own.rs"));

/// loom takes sequentially consistent accesses for acquire and release, so these have fences around them.
pub mod atomic {
    pub use loom::sync::atomic::fence;
    pub use std::sync::atomic::Ordering::{self, *};

    fn around<R>(order: Ordering, access: impl FnOnce(Ordering) -> R, plain: Ordering) -> R {
        if order != SeqCst {
            return access(order);
        }
        fence(SeqCst);
        let result = access(plain);
        fence(SeqCst);
        result
    }

    macro_rules! wrap {
        ($name:ident, $value:ty $(, $parameter:ident)?) => {
            pub struct $name$(<$parameter>)?(loom::sync::atomic::$name$(<$parameter>)?);

            impl$(<$parameter>)? $name$(<$parameter>)? {
                pub fn new(value: $value) -> Self {
                    Self(loom::sync::atomic::$name::new(value))
                }

                pub fn load(&self, order: Ordering) -> $value {
                    around(order, |order| self.0.load(order), Acquire)
                }

                pub fn store(&self, value: $value, order: Ordering) {
                    around(order, |order| self.0.store(value, order), Release)
                }

                pub fn swap(&self, value: $value, order: Ordering) -> $value {
                    around(order, |order| self.0.swap(value, order), AcqRel)
                }

                pub fn compare_exchange(&self, old: $value, new: $value, order: Ordering, failed: Ordering) -> Result<$value, $value> {
                    let failed = if failed == SeqCst { Acquire } else { failed };
                    around(order, |order| self.0.compare_exchange(old, new, order, failed), AcqRel)
                }

                pub fn compare_exchange_weak(&self, old: $value, new: $value, order: Ordering, failed: Ordering) -> Result<$value, $value> {
                    self.compare_exchange(old, new, order, failed)
                }
            }
        };
    }
    wrap!(AtomicBool, bool);
    wrap!(AtomicU32, u32);
    wrap!(AtomicUsize, usize);
    wrap!(AtomicPtr, *mut T, T);

    impl AtomicU32 {
        pub fn fetch_or(&self, value: u32, order: Ordering) -> u32 {
            around(order, |order| self.0.fetch_or(value, order), AcqRel)
        }
    }

    impl AtomicUsize {
        pub fn fetch_add(&self, value: usize, order: Ordering) -> usize {
            around(order, |order| self.0.fetch_add(value, order), AcqRel)
        }

        pub fn fetch_sub(&self, value: usize, order: Ordering) -> usize {
            around(order, |order| self.0.fetch_sub(value, order), AcqRel)
        }
    }
}

loom::lazy_static! {
    static ref INSIDE: atomic::AtomicUsize = atomic::AtomicUsize::new(0);
    static ref WITHIN: atomic::AtomicUsize = atomic::AtomicUsize::new(0);
}

pub mod thread {
    use super::{atomic::Ordering::*, INSIDE, WITHIN};
    use std::cell::Cell;
    use std::sync::atomic::AtomicBool;

    /// Bags also wait for threads that add entries. Costs executions, so only the case of a barrier has it.
    pub static COUNTED: AtomicBool = AtomicBool::new(false);

    loom::thread_local! {
        static PINNED: Cell<bool> = Cell::new(false);
    }

    pub fn thread_id() -> usize {
        0
    }

    pub fn is_pinned() -> bool {
        PINNED.with(Cell::get)
    }

    pub fn pin() {
        INSIDE.store(1, SeqCst);
        PINNED.with(|pinned| pinned.set(true));
    }

    pub fn unpin() {
        PINNED.with(|pinned| pinned.set(false));
        INSIDE.store(0, SeqCst);
    }

    /// As prudence_read_unlock() does.
    pub fn unpin_without_fence() {
        PINNED.with(|pinned| pinned.set(false));
        INSIDE.store(0, Release);
    }

    pub fn within<R>(function: impl FnOnce() -> R) -> R {
        if !COUNTED.load(Relaxed) {
            return function();
        }
        WITHIN.fetch_add(1, SeqCst);
        let result = function();
        WITHIN.fetch_sub(1, Release);
        result
    }

    /// For a mutant.
    pub fn outside<R>(function: impl FnOnce() -> R) -> R {
        function()
    }

    /// A number at which a guard checks again.
    pub fn count_end() -> u32 {
        0
    }
}

/// The library: a cookie is over when the reader is not inside, nor a thread that adds.
pub mod sys {
    use super::{atomic::Ordering::*, thread::COUNTED, INSIDE, WITHIN};
    use std::os::raw::c_void;

    pub type prudence_gp_t = usize;
    pub type prudence_domain = c_void;

    pub unsafe fn prudence_free(memory: *mut c_void) {
        super::global::free(memory.cast())
    }

    pub unsafe fn prudence_gp_start_poll() -> prudence_gp_t {
        0
    }

    pub unsafe fn prudence_gp_poll_state(_: prudence_gp_t) -> bool {
        INSIDE.load(SeqCst) == 0 && (!COUNTED.load(Relaxed) || WITHIN.load(SeqCst) == 0)
    }

    pub unsafe fn prudence_read_lock_held() -> bool {
        super::thread::is_pinned()
    }

    pub unsafe fn prudence_domain_start_poll(_: *mut prudence_domain) -> prudence_gp_t {
        unreachable!()
    }

    pub unsafe fn prudence_domain_poll_state(_: *mut prudence_domain, _: prudence_gp_t) -> bool {
        unreachable!()
    }
}

pub mod owned_sections {
    pub fn domain() -> *mut super::sys::prudence_domain {
        unreachable!()
    }
}

/// Readers that have ended: what is deferred runs at once.
pub mod ended {
    pub struct Entry(Box<dyn FnOnce()>);

    impl Entry {
        pub unsafe fn new(function: impl FnOnce(&()) + 'static) -> Entry {
            Entry(Box::new(move || function(&())))
        }
    }

    pub struct Epochs;

    pub static EPOCHS: Epochs = Epochs;

    impl Epochs {
        pub unsafe fn add(&self, entry: Entry) {
            entry.0()
        }

        pub fn close_all(&self) {}

        pub fn collect_outside(&self) {}
    }
}

pub mod wait {
    pub fn barrier() -> std::io::Result<()> {
        Ok(())
    }
}

/// Pointers that no case has.
pub mod epoch {
    use std::marker::PhantomData;

    pub struct Shared<'g, T>(PhantomData<&'g T>);
    pub struct Owned<T>(PhantomData<T>);

    pub trait Pointer<T>: Sized {
        fn into_ptr(self) -> *mut T {
            unreachable!()
        }

        unsafe fn from_ptr(_: *mut T) -> Self {
            unreachable!()
        }
    }

    impl<T> Pointer<T> for Shared<'_, T> {}
    impl<T> Pointer<T> for Owned<T> {}

    impl<T> Shared<'_, T> {
        pub fn is_null(&self) -> bool {
            unreachable!()
        }
    }
}

/// Memory with a cell before it, by which loom sees that a bag has one owner at a time.
pub mod global {
    use loom::cell::UnsafeCell;
    use std::alloc::{alloc, Layout};

    const HEAD: usize = 64;

    fn cell(memory: *mut u8) -> *mut UnsafeCell<()> {
        assert!(std::mem::size_of::<UnsafeCell<()>>() <= HEAD);
        unsafe { memory.sub(HEAD).cast() }
    }

    pub fn allocate(layout: Layout) -> *mut u8 {
        let memory = unsafe { alloc(Layout::from_size_align(layout.size() + HEAD, 64).unwrap()).add(HEAD) };
        unsafe { cell(memory).write(UnsafeCell::new(())) };
        memory
    }

    pub fn owned(memory: *mut u8) {
        unsafe { &*cell(memory) }.with_mut(|_| ());
    }

    /// Leaks the memory, because its size is not known here.
    pub fn free(memory: *mut u8) {
        owned(memory);
        unsafe { cell(memory).drop_in_place() };
    }
}

pub fn process() -> u32 {
    1
}

pub fn sleep(_: std::time::Duration) {
    loom::thread::yield_now();
}
