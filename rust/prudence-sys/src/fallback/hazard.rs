// SPDX-License-Identifier: MIT
//! Hazard pointers of the stand-in. Readers fence, and each retired object searches for names.

use super::*;
use core::sync::atomic::{fence, AtomicPtr};

struct Slot(*mut prudence_hazard);
struct Head(*mut prudence_hazard_head);

// SAFETY: `name` is atomic, and the rest of a slot is not used.
unsafe impl Send for Slot {}
// SAFETY: a retired object belongs to whoever takes it from the list.
unsafe impl Send for Head {}

/// All slots ever made, and those of them that are free.
static SLOTS: Mutex<Vec<Slot>> = Mutex::new(Vec::new());
static FREE: Mutex<Vec<Slot>> = Mutex::new(Vec::new());
static RETIRED: Mutex<Vec<Head>> = Mutex::new(Vec::new());

std::thread_local! {
    static DELETING: Cell<bool> = const { Cell::new(false) };
}

/// # Safety
///
/// The slot came from `prudence_hazard_acquire_movable`. Slots are never freed.
unsafe fn name<'a>(slot: *mut prudence_hazard) -> &'a AtomicPtr<c_void> {
    // SAFETY: as the caller promises; all accesses of the field are these.
    unsafe { &*ptr::addr_of_mut!((*slot).name).cast() }
}

#[no_mangle]
extern "C" fn prudence_hazard_acquire_movable() -> *mut prudence_hazard {
    if let Some(Slot(slot)) = FREE.lock().unwrap().pop() {
        return slot;
    }
    let slot = prudence_hazard { name: ptr::null(), fenced: 1, reserved: 0 };
    let slot = Box::into_raw(Box::new(slot));
    SLOTS.lock().unwrap().push(Slot(slot));
    slot
}

#[no_mangle]
unsafe extern "C" fn prudence_hazard_release(slot: *mut prudence_hazard) {
    // SAFETY: the caller passes its slot.
    unsafe { prudence_hazard_reset(slot) };
    FREE.lock().unwrap().push(Slot(slot));
}

#[no_mangle]
unsafe extern "C" fn prudence_hazard_reset(slot: *mut prudence_hazard) {
    // SAFETY: the caller passes its slot.
    unsafe { name(slot) }.store(ptr::null_mut(), SeqCst);
}

#[no_mangle]
unsafe extern "C" fn prudence_hazard_try_protect(
    slot: *mut prudence_hazard,
    pointer: *mut *mut c_void,
    source: *const *mut c_void,
) -> bool {
    // SAFETY: the caller passes the slot and the pointer that it owns, and an atomic.
    unsafe {
        let wanted = *pointer;
        name(slot).store(wanted, SeqCst);
        fence(SeqCst);
        *pointer = (*source.cast::<AtomicPtr<c_void>>()).load(SeqCst);
        if *pointer != wanted {
            prudence_hazard_reset(slot);
        }
        *pointer == wanted
    }
}

#[no_mangle]
unsafe extern "C" fn prudence_hazard_protect(
    slot: *mut prudence_hazard,
    source: *const *mut c_void,
) -> *mut c_void {
    let mut found = ptr::null_mut();
    // SAFETY: as the caller promises.
    while !unsafe { prudence_hazard_try_protect(slot, &mut found, source) } {}
    found
}

#[no_mangle]
unsafe extern "C" fn prudence_hazard_retire(
    head: *mut prudence_hazard_head,
    object: *const c_void,
    size: usize,
    func: Option<unsafe extern "C" fn(*mut prudence_hazard_head)>,
) {
    // SAFETY: the caller gives the head up.
    unsafe { head.write(prudence_hazard_head { next: ptr::null_mut(), object, size, func }) };
    RETIRED.lock().unwrap().push(Head(head));
    prudence_hazard_reclaim();
}

fn is_named(head: &Head) -> bool {
    // SAFETY: the head is the list's.
    let (object, size) = unsafe { ((*head.0).object as usize, (*head.0).size.max(1)) };
    SLOTS.lock().unwrap().iter().any(|slot| {
        // SAFETY: slots are never freed.
        let named = unsafe { name(slot.0) }.load(SeqCst) as usize;
        (object..object + size).contains(&named)
    })
}

#[no_mangle]
extern "C" fn prudence_hazard_reclaim() -> usize {
    if !DELETING.with(|deleting| deleting.replace(true)) {
        let all = core::mem::take(&mut *RETIRED.lock().unwrap());
        fence(SeqCst);
        let (named, safe): (Vec<_>, Vec<_>) = all.into_iter().partition(is_named);
        RETIRED.lock().unwrap().extend(named);
        for Head(head) in safe {
            // SAFETY: no hazard pointer names the object, and the head was retired with this function.
            unsafe { ((*head).func.unwrap())(head) }
        }
        DELETING.with(|deleting| deleting.set(false));
    }
    RETIRED.lock().unwrap().len()
}
