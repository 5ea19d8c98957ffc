// SPDX-License-Identifier: MIT
//! Where bags are filled, and how they go to the library and come back.
//!
//! Each thread has a lane, which it may share with others. To add an entry it takes the bag out of
//! the lane, and puts it back. So a bag in use is in no lane: no thread waits for another, a signal
//! handler finds an empty lane, and a forked child loses only the bags that other threads held.
//!
//! A bag is closed, which means queued with the library, when it is full, or by the *sweep* of its
//! lane: a callback that is queued whenever a bag is put into a lane that has none queued. So an
//! entry ends two grace periods after it was added at the latest, if its thread adds no others.
//!
//! Order: the swaps of a lane hand the bag's contents from thread to thread. What was unlinked before
//! an entry was added was so before the bag was closed, and the library's grace period begins then.

use super::bag::Bag;
use super::closed::Closed;
use super::Entry;
use crate::owned_sections;
use crate::thread_id::thread_id;
use prudence_sys as sys;
use std::cell::UnsafeCell;
use std::ptr::{self, NonNull};
use std::sync::atomic::{fence, AtomicBool, AtomicPtr, AtomicUsize, Ordering::*};

const LANES: usize = 8;

/// The head is first, so that both have one address. A lane has the cache lines of a pair, because
/// the processor fetches those together.
#[repr(C, align(128))]
struct Lane {
    /// Of the sweep. It is the library's while `swept` is true.
    head: UnsafeCell<sys::prudence_head>,
    garbage: UnsafeCell<*const Garbage>,
    bag: AtomicPtr<Bag>,
    /// A sweep is queued, and will look at the lane after it clears this.
    swept: AtomicBool,
}

// SAFETY: the thread that sets `swept` has the cells until the library calls the sweep, which has them until it
// clears `swept`.
unsafe impl Sync for Lane {}

/// What was deferred with one collector, or with all of `epoch`.
pub(crate) struct Garbage {
    lanes: [Lane; LANES],
    /// Entries of a bag that is full.
    limit: AtomicUsize,
    /// The collector, each sweep that is queued, and each bag that is closed.
    references: AtomicUsize,
    /// Owned guards have been made.
    owned: AtomicBool,
    /// The closed bags of a collector, which may have to end before their grace period.
    closed: Option<Closed>,
    /// That of the box, which a reference may not free; null: a static.
    whole: *const Garbage,
}

// SAFETY: what the bags have may go to other threads, as the callers of `add` promise. They have one
// owner at a time. `closed` has a lock.
unsafe impl Send for Garbage {}
// SAFETY: as above.
unsafe impl Sync for Garbage {}

impl Garbage {
    /// Garbage that lasts as long as the process.
    pub(super) const fn new(limit: usize) -> Garbage {
        #[allow(clippy::declare_interior_mutable_const)] // each lane is a copy
        const LANE: Lane = Lane {
            head: UnsafeCell::new(sys::prudence_head { next: ptr::null_mut(), func: None }),
            garbage: UnsafeCell::new(ptr::null()),
            bag: AtomicPtr::new(ptr::null_mut()),
            swept: AtomicBool::new(false),
        };
        Garbage {
            lanes: [LANE; LANES],
            limit: AtomicUsize::new(limit),
            references: AtomicUsize::new(1),
            owned: AtomicBool::new(false),
            closed: None,
            whole: ptr::null(),
        }
    }

    /// Garbage of a collector, which [`end`](Garbage::end) gives back.
    pub(crate) fn of_collector(limit: usize) -> NonNull<Garbage> {
        let mut garbage = Box::new(Garbage::new(limit));
        garbage.closed = Some(Closed::new());
        let whole = Box::into_raw(garbage);
        // SAFETY: the box is new, and a box is not null.
        unsafe {
            (*whole).whole = whole;
            NonNull::new_unchecked(whole)
        }
    }

    pub(crate) fn set_limit(&self, limit: usize) {
        self.limit.store(limit, Relaxed);
    }

    #[inline]
    pub(crate) fn limit(&self) -> usize {
        self.limit.load(Relaxed)
    }

    /// Calls the entry when all sections that are open now have ended.
    ///
    /// # Safety
    ///
    /// The reference is valid until then.
    #[inline]
    pub(crate) unsafe fn add(&self, entry: Entry) {
        let lane = self.lane();
        let bag = NonNull::new(lane.bag.swap(ptr::null_mut(), AcqRel)).unwrap_or_else(Bag::new);
        // SAFETY: a bag that is in no lane is this thread's. It was not full in its lane.
        let count = unsafe { (*bag.as_ptr()).push(entry) };
        if count >= self.limit() || !lane.put(bag) {
            // SAFETY: as above.
            unsafe { self.close(bag) }
        } else if !lane.swept.load(Relaxed) {
            // Relaxed: if a sweep took from the lane before `put`, that one has seen it clear `swept`.
            self.queue_sweep(lane);
        }
    }

    #[inline]
    fn lane(&self) -> &Lane {
        &self.lanes[thread_id() % LANES]
    }

    fn close_lane(&self, lane: &Lane) {
        if let Some(bag) = lane.take() {
            // SAFETY: a bag that is in no lane is this thread's.
            unsafe { self.close(bag) }
        }
    }

    #[cold]
    fn queue_sweep(&self, lane: &Lane) {
        if lane.swept.swap(true, Acquire) {
            return;
        }
        // SAFETY: this thread has set `swept`; acquire: after the last sweep has read the cells.
        unsafe {
            *lane.garbage.get() = self.keep();
            // By way of the lane, which the sweep finds from the head.
            let head = lane as *const Lane as *mut sys::prudence_head;
            sys::prudence_call(head, Some(sweep));
        }
    }

    /// Hands a bag to the library.
    ///
    /// # Safety
    ///
    /// The caller owns the bag.
    #[cold]
    unsafe fn close(&self, bag: NonNull<Bag>) {
        // SAFETY: as the caller promises. From the call on the bag is the library's.
        unsafe {
            (*bag.as_ptr()).garbage = self.keep();
            if let Some(closed) = &self.closed {
                closed.add(bag);
            }
            sys::prudence_call(ptr::addr_of_mut!((*bag.as_ptr()).head), Some(readers_left));
        }
    }

    /// Calls everything that was deferred, and what that defers, without waiting for readers. Waits
    /// for entries that other threads are calling.
    ///
    /// # Safety
    ///
    /// There are no readers.
    pub(crate) unsafe fn call_all(&self) {
        let closed = self.closed.as_ref().expect("only collectors end");
        loop {
            for lane in &self.lanes {
                self.close_lane(lane);
            }
            match closed.take() {
                // SAFETY: the library does not look into a bag that was taken, and the last frees it.
                Some(bag) => unsafe {
                    (*bag.as_ptr()).call(self);
                    if closed.give_up(bag) {
                        Bag::free(bag);
                    }
                },
                None if closed.wait(self) => {} // those may have deferred something
                None => return,
            }
        }
    }

    /// Says that an owned guard is about to be made. Whoever adds an entry of something that the guard
    /// may find sees that.
    pub(crate) fn expect_owned(&self) {
        self.owned.store(true, Relaxed);
        fence(SeqCst); // between this store and what the guard loads; pairs with `expects_owned`
    }

    /// Returns whether owned guards may find what the caller has unlinked.
    #[inline]
    pub(crate) fn expects_owned(&self) -> bool {
        fence(SeqCst); // between the unlinking and this load; pairs with `expect_owned`
        self.owned.load(Relaxed)
    }

    /// Takes a reference, which [`release`](Garbage::release) gives back.
    #[inline]
    fn keep(&self) -> *const Garbage {
        self.references.fetch_add(1, Relaxed);
        if self.whole.is_null() {
            self
        } else {
            self.whole
        }
    }

    /// Gives a reference back.
    ///
    /// # Safety
    ///
    /// The caller has one, and does not use the garbage afterwards.
    pub(crate) unsafe fn release(garbage: *const Garbage) {
        // SAFETY: as the caller promises. Those of `Garbage::new` have one that nobody gives back.
        unsafe {
            if (*garbage).references.fetch_sub(1, Release) == 1 {
                fence(Acquire);
                drop(Box::from_raw(garbage as *mut Garbage));
            }
        }
    }
}

impl Lane {
    #[inline]
    fn take(&self) -> Option<NonNull<Bag>> {
        NonNull::new(self.bag.swap(ptr::null_mut(), AcqRel))
    }

    /// Returns false if another bag is in the lane.
    #[inline]
    fn put(&self, bag: NonNull<Bag>) -> bool {
        self.bag.compare_exchange(ptr::null_mut(), bag.as_ptr(), AcqRel, Relaxed).is_ok()
    }
}

unsafe extern "C" fn sweep(head: *mut sys::prudence_head) {
    // SAFETY: `queue_sweep` queued the head of a lane, whose garbage has a reference. The cells are
    // this call's until it clears `swept`.
    unsafe {
        let lane = head.cast::<Lane>();
        let garbage = *(*lane).garbage.get();
        (*lane).swept.swap(false, Release); // as in the model, which needs a swap
        (*garbage).close_lane(&*lane);
        Garbage::release(garbage);
    }
}

/// The readers of a closed bag have left: of threads, then those of owned guards.
unsafe extern "C" fn readers_left(head: *mut sys::prudence_head) {
    let bag = head.cast::<Bag>();
    // SAFETY: `close` queued the head of a bag, whose garbage has a reference.
    unsafe {
        let whole = (*bag).garbage;
        let garbage = &*whole;
        if !(*bag).threads_left && garbage.owned.load(Relaxed) {
            (*bag).threads_left = true;
            return owned_sections::call(head, readers_left);
        }
        let bag = NonNull::new_unchecked(bag);
        let ended = match &garbage.closed {
            Some(closed) => closed.call(bag, garbage),
            None => {
                (*bag.as_ptr()).call(garbage);
                true
            }
        };
        if ended {
            Bag::free(bag);
        }
        Garbage::release(whole);
    }
}
