// SPDX-License-Identifier: MIT
//! Closed bags until their entries are called, and who calls them.
//!
//! A bag that is closed is pushed on the stack `next`. From there bags move on together: `next` becomes
//! `waiting` and gets a cookie, which says when all sections that were open then have ended; `waiting`
//! that is over is appended to `ready`. The thread that holds the gate moves them. It never calls an
//! entry itself, so that the gate is held only for a check of the readers. A thread
//! that finds the gate held goes on.
//!
//! Which thread checks. `events` counts bags that were closed, and cookies. A guard notes the count
//! when it begins. If it differs when the guard ends, as the thread's last one, then bags may have
//! waited for this guard, and the thread checks. So the last of the readers that were blocking is
//! the one that calls the entries, and a thread that meets no change pays for two loads. The holder
//! of the gate compares the count again after it has let the gate go: whoever found the gate held
//! had counted an event before. All accesses are sequentially consistent there, because each side
//! writes one word and then reads the other's.
//!
//! The end of a section is not, because a fence would cost each guard more than all the rest. So a
//! guard may read the old count before the end of its section is visible, and the thread that counts
//! an event may still find the section open. Then both go on, and nobody is left to check. The same
//! is so if the section that was blocking ends without a check here, because it is one of C, or of
//! another collector. And bags may be left closed, by a thread that has called enough, or that has
//! guards of another collector. So `kept` says that bags wait, from when one is closed. A thread that
//! ends guards then checks again, at one of 64 of them; the more checks were in vain, the fewer. No
//! order is needed for that: the end of the section and the word become visible at some time, and a
//! later check finds both.
//!
//! Owned guards are sections of another domain, for which bags wait as well once there was such a
//! guard (`seize/owned.rs` says why nothing is missed).
//!
//! Fork. The gate names the process that holds it, so a child takes it from a thread that it does not
//! have, and loses the bags that other threads held at that moment. That thread may have been changing
//! the stages, so the child's first holder mends them.

use super::bag::{Bag, Chain};
use super::calling;
use super::entry::Entry;
use super::forks::process;
use super::lanes::{self, Lane, Lanes};
use crate::{owned_sections, thread};
use prudence_sys as sys;
use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::ptr::{self, NonNull};
use std::sync::atomic::{fence, AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering::*};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How often a gate's holder checks whether the bags with its cookie are over already.
const LOOKS: usize = 3;
/// A thread checks again whether bags that wait are over at one of 2^`OFTEN` guards that end. Each
/// check in vain makes later ones half as frequent, down to one of 2^`SELDOM` guards.
const OFTEN: u32 = 6;
const SELDOM: u32 = 16;
/// How often a thread calls up to `most` bags, if others close bags at the same time.
const ROUNDS: usize = 4;
/// Between checks of a thread that waits, at first and at most.
const PAUSE: Duration = Duration::from_micros(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(1);

/// In `News::kept`: flags, and from this bit on the number of checks in vain.
const WAITING: u32 = 1;
const READY: u32 = 2;
const IN_VAIN: u32 = 2;

/// The words that each guard reads, alone on its cache lines.
#[repr(align(128))]
struct News {
    events: AtomicUsize,
    /// Of which stages there are bags, and how often they were checked in vain. The holder of the
    /// gate writes it.
    kept: AtomicU32,
}

/// The garbage of a collector.
pub(crate) struct Garbage {
    lanes: Lanes,
    news: News,
    /// Entries of a bag that is full.
    limit: AtomicUsize,
    /// Bags that are called at once.
    most: usize,
    /// Closed bags without a cookie, newest first.
    next: AtomicPtr<Bag>,
    /// The process that moves bags; 0: none.
    gate: AtomicU32,
    /// The process that held the gate last. Guarded by the gate, as the next.
    process: UnsafeCell<u32>,
    stages: UnsafeCell<Stages>,
    /// Calls of entries; more begin only under the gate.
    calling: AtomicUsize,
    /// Entries in closed bags.
    pending: AtomicUsize,
    /// Owned guards have been made.
    owned: AtomicBool,
    /// Collectors; those of a static are never 0.
    references: AtomicUsize,
}

// SAFETY: the bags' entries may go to other threads, as the callers of `add` promise. They have one
// owner at a time, and the gate guards the cells.
unsafe impl Send for Garbage {}
// SAFETY: as above.
unsafe impl Sync for Garbage {}

struct Stages {
    waiting: Chain,
    /// The cookie of `waiting`, if there are bags.
    cookie: Cookie,
    ready: Chain,
    /// Events when the holder of the gate checked last.
    checked: usize,
}

/// A wait for all sections that were open when it was made.
struct Cookie {
    threads: Option<sys::prudence_gp_t>, // None: over
    owned: Option<sys::prudence_gp_t>,   // None: not taken
}

impl Cookie {
    const OVER: Cookie = Cookie { threads: None, owned: None };

    fn take(owned_exist: bool) -> Cookie {
        // SAFETY: takes nothing; may be called in any thread.
        let threads = Some(unsafe { sys::prudence_gp_start_poll() });
        Cookie { threads, owned: owned_exist.then(take_owned) }
    }

    /// Checks the readers. Checks for owned guards when the threads' sections are over.
    fn is_over(&mut self, owned_exist: impl Fn() -> bool) -> bool {
        if let Some(cookie) = self.threads {
            // SAFETY: takes a cookie of the default domain.
            if !unsafe { sys::prudence_gp_poll_state(cookie) } {
                return false;
            }
            self.threads = None;
        }
        if !owned_exist() {
            return true;
        }
        let cookie = *self.owned.get_or_insert_with(take_owned);
        // SAFETY: takes a cookie of that domain.
        unsafe { sys::prudence_domain_poll_state(owned_sections::domain(), cookie) }
    }
}

fn take_owned() -> sys::prudence_gp_t {
    // SAFETY: the domain lasts as long as the process.
    unsafe { sys::prudence_domain_start_poll(owned_sections::domain()) }
}

/// Why [`Garbage::finish`] did not.
pub(crate) enum Unfinished {
    /// The thread would wait for itself.
    Deadlock,
    Late,
}

struct Patience {
    deadline: Option<Instant>,
    pause: Duration,
}

impl Patience {
    fn wait(&mut self) -> Result<(), Unfinished> {
        if self.deadline.map_or(false, |deadline| Instant::now() >= deadline) {
            return Err(Unfinished::Late);
        }
        sleep(self.pause);
        self.pause = LONGEST_PAUSE.min(self.pause * 2);
        Ok(())
    }
}

impl Garbage {
    /// Garbage that lasts as long as the process.
    pub(super) const fn new(limit: usize, most: usize) -> Garbage {
        Garbage {
            lanes: Lanes::new(),
            news: News { events: AtomicUsize::new(0), kept: AtomicU32::new(0) },
            limit: AtomicUsize::new(limit),
            most,
            next: AtomicPtr::new(ptr::null_mut()),
            gate: AtomicU32::new(0),
            process: UnsafeCell::new(0),
            stages: UnsafeCell::new(Stages {
                waiting: Chain::new(),
                cookie: Cookie::OVER,
                ready: Chain::new(),
                checked: 0,
            }),
            calling: AtomicUsize::new(0),
            pending: AtomicUsize::new(0),
            owned: AtomicBool::new(false),
            references: AtomicUsize::new(1),
        }
    }

    /// Garbage of a collector, with one reference.
    pub(crate) fn of_collector(limit: usize, most: usize) -> NonNull<Garbage> {
        NonNull::from(Box::leak(Box::new(Garbage::new(limit, most))))
    }

    pub(crate) fn set_limit(&self, limit: usize) {
        self.limit.store(limit, Relaxed);
    }

    #[inline]
    pub(crate) fn limit(&self) -> usize {
        self.limit.load(Relaxed)
    }

    /// How many entries wait in bags that are closed.
    pub(crate) fn pending(&self) -> usize {
        self.pending.load(Relaxed)
    }

    // ------------------------------------------------------------------------------------ adding

    /// Calls the entry when all sections that are open now have ended, inside a call on this garbage.
    ///
    /// # Safety
    ///
    /// A thread that has the collector may call the entry, until the collector ends.
    #[inline]
    pub(crate) unsafe fn add(&self, entry: Entry) {
        let closed = thread::within(|| {
            let (lane, place) = (self.lanes.own(), 0);
            let bag = lane.take(lanes::mark(&place)).unwrap_or_else(|| Bag::new(self.limit()));
            // SAFETY: a bag that is in no lane is this thread's. It was not full in its lane.
            let full = unsafe { Bag::push(bag, entry) };
            if !full && lane.put(bag, lanes::mark(&place)) {
                return false;
            }
            // SAFETY: as above.
            unsafe { self.close(bag) }
            true
        });
        if closed {
            self.collect_outside();
        }
    }

    /// Pushes a bag on `next`. Release: whoever takes it sees the entries, and the objects unlinked
    /// before them.
    ///
    /// # Safety
    ///
    /// The caller owns the bag, which is not empty.
    #[cold]
    unsafe fn close(&self, bag: NonNull<Bag>) {
        // SAFETY: as the caller promises, until the exchange.
        unsafe {
            self.pending.fetch_add(Bag::count(bag), Relaxed);
            let mut newest = self.next.load(Relaxed);
            loop {
                (*bag.as_ptr()).next = newest;
                match self.next.compare_exchange_weak(newest, bag.as_ptr(), Release, Relaxed) {
                    Ok(_) => break,
                    Err(found) => newest = found,
                }
            }
        }
        self.news.events.fetch_add(1, SeqCst);
        self.news.kept.fetch_or(WAITING, Release); // see `say_what_is_kept`
    }

    fn close_lane(&self, lane: &Lane) {
        if lane.is_empty() {
            return;
        }
        thread::within(|| {
            let bag = match lane.take_all() {
                Some(bag) => bag,
                None => return,
            };
            // SAFETY: a bag that is in no lane is this thread's.
            unsafe {
                if Bag::is_empty(bag) {
                    return Bag::put_back_or_free(bag, lane);
                }
                match Bag::split(bag) {
                    Some(small) => {
                        Bag::put_back_or_free(bag, lane);
                        self.close(small);
                    }
                    None => self.close(bag),
                }
            }
        });
    }

    /// Closes this thread's bag, so that its entries do not wait for others.
    pub(crate) fn close_own(&self) {
        self.close_lane(self.lanes.own());
    }

    /// Closes all bags.
    pub(crate) fn close_all(&self) {
        self.lanes.all().iter().for_each(|lane| self.close_lane(lane));
    }

    // ----------------------------------------------------------------------------------- calling

    /// Calls [`look`](Garbage::look) when a guard has begun.
    #[inline]
    pub(crate) fn events(&self) -> usize {
        self.news.events.load(Relaxed)
    }

    /// Calls ready entries, when a thread's last guard has ended, which noted `seen` events.
    #[inline]
    pub(crate) fn look(&self, seen: usize) {
        if self.news.events.load(Relaxed) != seen {
            return self.collect();
        }
        let kept = self.news.kept.load(Relaxed);
        if kept & (WAITING | READY) != 0 {
            self.look_again(kept);
        }
    }

    /// Checks now and then although there is no event. The head of this file says why.
    #[inline(never)]
    fn look_again(&self, kept: u32) {
        let one_of = SELDOM.min(OFTEN + (kept >> IN_VAIN));
        if kept & READY != 0 || thread::count_end() >> (u32::BITS - one_of) == 0 {
            self.collect();
        }
    }

    /// Calls ready entries, unless this thread has guards, because then its last one does.
    pub(crate) fn collect_outside(&self) {
        if !thread::is_pinned() {
            self.collect();
        }
    }

    #[cold]
    fn collect(&self) {
        if calling::depth(self) != 0 {
            return; // the outer call goes on, or leaves the rest to a later guard
        }
        for _ in 0..if self.most == usize::MAX { usize::MAX } else { ROUNDS } {
            let (chain, events) = match self.enter_or_tell() {
                Some(mut stages) => (stages.take_some(), stages.known),
                None => return,
            };
            let goes_on = !chain.is_empty() && self.most == usize::MAX;
            self.call(chain);
            if !goes_on && self.news.events.load(SeqCst) == events {
                return;
            }
        }
    }

    /// Calls a chain whose bags [`Held::begin`] has counted.
    fn call(&self, chain: Chain) {
        if chain.is_empty() {
            return;
        }
        let began = process();
        let count = calling::during(self, || chain.call(self));
        self.pending.fetch_sub(count, Relaxed);
        if process() == began {
            self.calling.fetch_sub(1, Release); // a child that an entry forked has not counted it
        }
    }

    /// Waits until everything that was added before has been called, by this thread or others.
    pub(crate) fn finish(&self, deadline: Option<Instant>) -> Result<(), Unfinished> {
        // SAFETY: takes nothing; may be called in any thread.
        if unsafe { sys::prudence_read_lock_held() } || calling::depth(self) != 0 {
            return Err(Unfinished::Deadlock);
        }
        self.close_all();
        let found = self.take_finished(&mut Patience { deadline, pause: PAUSE });
        let finished = found.map(|chain| self.call(chain));
        self.collect(); // others found the gate held
        finished
    }

    /// Takes everything that was closed, when it is over and no thread calls entries.
    fn take_finished(&self, patience: &mut Patience) -> Result<Chain, Unfinished> {
        let mut stages = loop {
            match self.enter() {
                Some(stages) => break stages,
                None => patience.wait()?,
            }
        };
        // Acquire: entries that others have called are over, also for the caller.
        while self.calling.load(Acquire) != 0 {
            patience.wait()?;
        }
        stages.gather();
        stages.wait(patience)?;
        // This grace period also was that of threads with bags in their hands (`lanes`), which have
        // closed them. What was in those waits for another.
        if stages.gather() {
            stages.wait(patience)?;
        }
        Ok(stages.take_all())
    }

    /// Calls everything that was deferred, and further deferrals by those calls, without waiting
    /// for readers.
    ///
    /// # Safety
    ///
    /// There are no readers, and no other thread uses the garbage.
    pub(crate) unsafe fn call_all(&self) {
        loop {
            self.close_all();
            let mut chain = Chain::new();
            // SAFETY: as the caller promises, no other thread is at the cells.
            unsafe {
                let stages = &mut *self.stages.get();
                chain.append(stages.ready.take_all());
                chain.append(stages.waiting.take_all());
                chain.append(Chain::of_stack(self.next.swap(ptr::null_mut(), Acquire)));
            }
            if chain.is_empty() {
                return;
            }
            self.calling.fetch_add(1, Relaxed);
            self.call(chain);
        }
    }

    // --------------------------------------------------------------------------------- the gate

    /// Takes the gate. If another thread has it, that one checks once more when it lets the gate go.
    fn enter_or_tell(&self) -> Option<Held<'_>> {
        self.enter().or_else(|| {
            self.news.events.fetch_add(1, SeqCst);
            self.enter()
        })
    }

    /// Takes the gate; `None` if another thread has it.
    fn enter(&self) -> Option<Held<'_>> {
        let own = process();
        if let Err(holder) = self.gate.compare_exchange(0, own, SeqCst, SeqCst) {
            // A process that was forked takes it from a thread of its parent.
            if holder == own || self.gate.compare_exchange(holder, own, SeqCst, SeqCst).is_err() {
                return None;
            }
        }
        let mut held = Held { garbage: self, known: 0 };
        // SAFETY: this thread has the gate.
        if unsafe { ptr::replace(self.process.get(), own) } != own {
            held.mend();
        }
        Some(held)
    }

    // ------------------------------------------------------------------------------ owned guards

    /// Says that an owned guard is about to be made. Whoever adds an entry of something that the guard
    /// may find sees that.
    pub(crate) fn expect_owned(&self) {
        self.owned.store(true, Release); // after the domain was made; pairs with `owned_exist`
        fence(SeqCst); // between this store and the loads of the guard; pairs with `expects_owned`
    }

    /// Returns whether owned guards may find objects that the caller has unlinked.
    #[inline]
    pub(crate) fn expects_owned(&self) -> bool {
        fence(SeqCst); // between the unlinking and this load; pairs with `expect_owned`
        self.owned.load(Relaxed)
    }

    /// Returns whether bags wait for owned guards as well, whose domain exists then.
    fn owned_exist(&self) -> bool {
        self.owned.load(Acquire)
    }

    // -------------------------------------------------------------------------------- references

    /// Takes a reference, which [`release`](Garbage::release) gives back.
    pub(crate) fn keep(&self) {
        self.references.fetch_add(1, Relaxed);
    }

    /// Gives a reference back. The last one calls everything that waits.
    ///
    /// # Safety
    ///
    /// The caller has one, and does not use the garbage afterwards. Guards have references.
    pub(crate) unsafe fn release(garbage: NonNull<Garbage>) {
        // SAFETY: as the caller promises. Those of `Garbage::new` have one that no thread gives back.
        unsafe {
            if garbage.as_ref().references.fetch_sub(1, Release) == 1 {
                fence(Acquire);
                garbage.as_ref().call_all();
                drop(Box::from_raw(garbage.as_ptr()));
            }
        }
    }
}

/// The gate of a garbage, held by this thread.
struct Held<'a> {
    garbage: &'a Garbage,
    /// Events that this thread has checked for. Bags that were closed later have others.
    known: usize,
}

impl Held<'_> {
    /// Moves bags on, and takes some that are ready for [`Garbage::call`].
    fn take_some(&mut self) -> Chain {
        self.known = self.garbage.news.events.load(SeqCst);
        let mut in_vain = self.known == self.checked;
        for _ in 0..LOOKS {
            if !self.waiting.is_empty() {
                if !self.is_over() {
                    break;
                }
                in_vain = false;
                let over = self.waiting.take_all();
                self.ready.append(over);
            }
            if !self.take_next() {
                break;
            }
            self.cookie = Cookie::take(self.garbage.owned_exist());
            self.garbage.news.events.fetch_add(1, SeqCst);
            self.known = self.known.wrapping_add(1);
        }
        let most = self.garbage.most;
        let chain = self.ready.take(most);
        self.checked = self.known;
        self.say_what_is_kept(in_vain);
        self.begin(chain)
    }

    fn say_what_is_kept(&self, in_vain: bool) {
        let kept = &self.garbage.news.kept;
        let waiting = if self.waiting.is_empty() { 0 } else { WAITING };
        let ready = if self.ready.is_empty() { 0 } else { READY };
        let checks = if in_vain { SELDOM.min((kept.load(Relaxed) >> IN_VAIN) + 1) } else { 0 };
        // A thread that closes a bag pushes it, and then sets WAITING (release). If this takes WAITING
        // away, it has read that or a later change, all of which read as well. So the load finds the bag.
        kept.swap(waiting | ready | checks << IN_VAIN, Acquire);
        if !self.garbage.next.load(Relaxed).is_null() {
            kept.fetch_or(WAITING, Relaxed);
        }
    }

    /// Appends closed bags to `waiting`, whose cookie the caller renews. Returns whether there was
    /// anything. Acquire: see `close`.
    fn take_next(&mut self) -> bool {
        let newest = self.garbage.next.swap(ptr::null_mut(), Acquire);
        // SAFETY: bags that were taken from the stack are this thread's.
        self.waiting.append(unsafe { Chain::of_stack(newest) });
        !newest.is_null()
    }

    /// Lets all bags wait for sections that are open now. Returns whether some had no cookie.
    fn gather(&mut self) -> bool {
        let any = self.take_next();
        self.cookie = Cookie::take(self.garbage.owned_exist());
        any
    }

    fn is_over(&mut self) -> bool {
        let garbage = self.garbage;
        self.cookie.is_over(|| garbage.owned_exist())
    }

    fn wait(&mut self, patience: &mut Patience) -> Result<(), Unfinished> {
        while !self.is_over() {
            patience.wait()?;
        }
        Ok(())
    }

    /// Mends what a thread of the parent left, as the first holder in a process. Bags in `waiting` may
    /// have the cookie of earlier ones, so all wait anew. Calls of other threads stayed behind.
    fn mend(&mut self) {
        self.waiting.find_last();
        self.ready.find_last();
        self.cookie = Cookie::take(self.garbage.owned_exist());
        self.garbage.calling.store(0, Relaxed);
    }

    /// Takes all bags, after [`is_over`](Held::is_over), for [`Garbage::call`].
    fn take_all(&mut self) -> Chain {
        let mut chain = self.ready.take_all();
        chain.append(self.waiting.take_all());
        self.say_what_is_kept(false);
        self.begin(chain)
    }

    fn begin(&self, chain: Chain) -> Chain {
        self.garbage.calling.fetch_add(!chain.is_empty() as usize, Relaxed);
        chain
    }
}

impl Deref for Held<'_> {
    type Target = Stages;

    fn deref(&self) -> &Stages {
        // SAFETY: this thread has the gate.
        unsafe { &*self.garbage.stages.get() }
    }
}

impl DerefMut for Held<'_> {
    fn deref_mut(&mut self) -> &mut Stages {
        // SAFETY: this thread has the gate.
        unsafe { &mut *self.garbage.stages.get() }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.garbage.gate.store(0, SeqCst);
    }
}

#[cfg(test)]
mod tests;
