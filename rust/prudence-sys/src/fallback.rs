// SPDX-License-Identifier: MIT
//! Stands in for the library under miri, which cannot call C: the functions that the crate `prudence`
//! needs, in their simplest form. A grace period is over when no thread is in a section; then the
//! thread that noticed it frees deferred objects, and cookies from before are over.
//!
//! A header before each block has the layout, and the cache of the object or null.

extern crate std;

mod hazard;

use super::*;
use core::ptr;
use std::alloc::{GlobalAlloc, Layout, System};
use std::boxed::Box;
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::Mutex;
use std::vec::Vec;

struct Header {
    base: *mut u8,
    layout: Layout,
    cache: *mut Cache,
}

struct Cache {
    layout: Layout,
    destructor: Option<unsafe extern "C" fn(*mut c_void, *mut c_void)>,
    live: AtomicUsize,
}

/// An object that waits for the default domain's readers.
struct Deferred(*mut c_void);

/// The default domain, and the one that `prudence_domain_create` makes.
const DEFAULT: usize = 0;
const MADE: usize = 1;

// SAFETY: an object that was deferred belongs to whoever takes it from the list.
unsafe impl Send for Deferred {}

static DEFERRED: Mutex<Vec<Deferred>> = Mutex::new(Vec::new());
static SECTIONS: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];
/// Grace periods that are over, under the list's lock.
static OVER: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];
/// Objects that a thread has taken from the list and is about to end.
static ENDING: AtomicUsize = AtomicUsize::new(0);

std::thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

fn make(layout: Layout, cache: *mut Cache) -> *mut c_void {
    let (whole, offset) = Layout::new::<Header>().extend(layout).unwrap();
    // SAFETY: the size is not 0, and the header is within the block, before the object.
    unsafe {
        let base = System.alloc_zeroed(whole);
        let object = base.add(offset);
        let header = Header { base, layout: whole, cache };
        object.sub(size_of::<Header>()).cast::<Header>().write_unaligned(header);
        object.cast()
    }
}

/// # Safety
///
/// `object` came from `make`, and is not freed.
unsafe fn header(object: *mut c_void) -> Header {
    // SAFETY: as the caller promises.
    unsafe { object.cast::<u8>().sub(size_of::<Header>()).cast::<Header>().read_unaligned() }
}

fn enter(domain: usize) {
    // Under the list's lock, so that no domain is found without readers at this time.
    let _list = DEFERRED.lock().unwrap();
    SECTIONS[domain].fetch_add(1, SeqCst);
}

fn leave(domain: usize) {
    SECTIONS[domain].fetch_sub(1, SeqCst);
    free_deferred();
}

/// Frees deferred objects if the default domain has no section. An object unlinked before no
/// section begins is in none that begins later.
fn free_deferred() {
    loop {
        let mut list = DEFERRED.lock().unwrap();
        if list.is_empty() || SECTIONS[DEFAULT].load(SeqCst) != 0 {
            return;
        }
        let ready = core::mem::take(&mut *list);
        ENDING.fetch_add(ready.len(), SeqCst);
        drop(list);
        for Deferred(object) in ready {
            // SAFETY: it was deferred once, and no reader remains.
            unsafe { prudence_free(object) };
            ENDING.fetch_sub(1, SeqCst);
        }
    }
}

/// A cookie is the number of a grace period that begins later.
fn start_poll(domain: usize) -> prudence_gp_t {
    let _list = DEFERRED.lock().unwrap();
    prudence_gp_t { private_value: OVER[domain].load(SeqCst) as u64 + 1 }
}

fn poll_state(domain: usize, cookie: prudence_gp_t) -> bool {
    let _list = DEFERRED.lock().unwrap();
    if SECTIONS[domain].load(SeqCst) == 0 {
        OVER[domain].fetch_add(1, SeqCst);
    }
    OVER[domain].load(SeqCst) as u64 >= cookie.private_value
}

#[no_mangle]
extern "C" fn prudence_malloc(size: usize) -> *mut c_void {
    prudence_aligned_alloc(16, size)
}

#[no_mangle]
extern "C" fn prudence_aligned_alloc(alignment: usize, size: usize) -> *mut c_void {
    make(Layout::from_size_align(size.max(1), alignment).unwrap(), ptr::null_mut())
}

#[no_mangle]
unsafe extern "C" fn prudence_free(object: *mut c_void) {
    if object.is_null() {
        return;
    }
    // SAFETY: the caller passes an object that is not freed. A cache outlives its live objects.
    unsafe {
        let found = header(object);
        if let Some(cache) = found.cache.as_ref() {
            if let Some(destructor) = cache.destructor {
                destructor(object, ptr::null_mut());
            }
            cache.live.fetch_sub(1, SeqCst);
        }
        System.dealloc(found.base, found.layout);
    }
}

#[no_mangle]
extern "C" fn prudence_free_deferred(object: *mut c_void) {
    if !object.is_null() {
        DEFERRED.lock().unwrap().push(Deferred(object));
        free_deferred();
    }
}

#[no_mangle]
extern "C" fn prudence_epoch_outlive() {} // no test leaves a thread's section here

#[no_mangle]
extern "C" fn prudence_read_lock() {
    if DEPTH.with(|depth| depth.replace(depth.get() + 1)) == 0 {
        enter(DEFAULT);
    }
}

#[no_mangle]
extern "C" fn prudence_read_unlock() {
    if DEPTH.with(|depth| depth.replace(depth.get() - 1)) == 1 {
        leave(DEFAULT);
    }
}

#[no_mangle]
extern "C" fn prudence_domain_create(
    _: *const c_char,
    _: c_uint,
    _: *const prudence_domain_attr,
) -> *mut prudence_domain {
    ptr::NonNull::<u64>::dangling().as_ptr().cast() // there is one, whose contents no thread reads
}

#[no_mangle]
extern "C" fn prudence_domain_destroy(_: *mut prudence_domain) -> c_int {
    0
}

#[no_mangle]
extern "C" fn prudence_srcu_down_read(_: *mut prudence_domain) -> c_int {
    enter(MADE);
    0
}

#[no_mangle]
extern "C" fn prudence_srcu_up_read(_: *mut prudence_domain, _: c_int) {
    leave(MADE);
}

#[no_mangle]
extern "C" fn prudence_domain_start_poll(_: *mut prudence_domain) -> prudence_gp_t {
    start_poll(MADE)
}

#[no_mangle]
extern "C" fn prudence_domain_poll_state(_: *mut prudence_domain, cookie: prudence_gp_t) -> bool {
    poll_state(MADE, cookie)
}

#[no_mangle]
extern "C" fn prudence_read_lock_held() -> bool {
    DEPTH.with(Cell::get) != 0
}

#[no_mangle]
extern "C" fn prudence_gp_start_poll() -> prudence_gp_t {
    start_poll(DEFAULT)
}

#[no_mangle]
extern "C" fn prudence_gp_poll_state(cookie: prudence_gp_t) -> bool {
    poll_state(DEFAULT, cookie)
}

#[no_mangle]
extern "C" fn prudence_synchronize() {
    assert!(!prudence_read_lock_held(), "the thread would wait for itself");
    while SECTIONS[DEFAULT].load(SeqCst) != 0 {
        std::thread::yield_now();
    }
}

#[no_mangle]
extern "C" fn prudence_barrier() -> c_int {
    if prudence_read_lock_held() {
        return 35; // EDEADLK
    }
    loop {
        free_deferred();
        if DEFERRED.lock().unwrap().is_empty() && ENDING.load(SeqCst) == 0 {
            return 0;
        }
        std::thread::yield_now();
    }
}

#[no_mangle]
unsafe extern "C" fn prudence_cache_create(
    _: *const c_char,
    size: usize,
    attr: *const prudence_cache_attr,
) -> *mut prudence_cache {
    // SAFETY: the caller passes attributes.
    let attr = unsafe { &*attr };
    let layout = Layout::from_size_align(size, attr.alignment).unwrap();
    let cache = Cache { layout, destructor: attr.destructor, live: AtomicUsize::new(0) };
    Box::into_raw(Box::new(cache)).cast()
}

#[no_mangle]
unsafe extern "C" fn prudence_cache_alloc(cache: *mut prudence_cache) -> *mut c_void {
    let cache = cache.cast::<Cache>();
    // SAFETY: the caller passes a cache that is there.
    unsafe {
        (*cache).live.fetch_add(1, SeqCst);
        make((*cache).layout, cache)
    }
}

#[no_mangle]
extern "C" fn prudence_cache_barrier(_: *mut prudence_cache) -> c_int {
    prudence_barrier()
}

#[no_mangle]
unsafe extern "C" fn prudence_cache_destroy_later(cache: *mut prudence_cache) -> c_int {
    // SAFETY: as the caller promises. No test drops a cache where it may not wait.
    unsafe { prudence_cache_destroy(cache) }
}

#[no_mangle]
unsafe extern "C" fn prudence_cache_destroy(cache: *mut prudence_cache) -> c_int {
    let cache = cache.cast::<Cache>();
    // SAFETY: the caller passes a cache that is there, which no thread uses.
    unsafe {
        match prudence_barrier() {
            0 if (*cache).live.load(SeqCst) == 0 => drop(Box::from_raw(cache)),
            0 => return 16, // EBUSY
            error => return error,
        }
    }
    0
}
