// SPDX-License-Identifier: MIT
//! Caches: every value that was made is dropped once, whatever way it goes.
mod common;

use common::{Census, Counted};
use prudence::epoch::{self, Atomic};
use prudence::{Cache, CacheBox};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering::*};
use std::sync::Arc;
use std::thread;

/// A multiple of 20.
const MANY: usize = if cfg!(miri) { 40 } else { 10_000 };
const EDEADLK: i32 = 35;
const EBUSY: i32 = 16;
const EINVAL: i32 = 22;

#[test]
fn a_cache_that_is_dropped_drops_its_retired_values() {
    let census = Census::new();
    let cache = Cache::new("retired").unwrap();
    for number in 0..MANY {
        cache.retire(cache.make(Counted::new(&census, number)));
    }
    drop(cache);
    assert_eq!(census.counts(), (MANY, MANY));
}

#[test]
fn every_cache_that_is_dropped_drops_its_values() {
    let census = Census::new();
    let deep = std::env::var("PRUDENCE_MODELS").map_or(false, |models| models == "deep");
    for number in 0..if deep { MANY } else { MANY / 20 } {
        let cache = Cache::new("dropped").unwrap();
        let (kept, retired) = (Counted::new(&census, number), Counted::new(&census, number));
        let kept = cache.make(kept);
        cache.retire(cache.make(retired));
        drop((kept, cache));
        assert_eq!(census.counts(), (2 * number + 2, 2 * number + 2));
    }
}

#[test]
fn values_end_once_whichever_way_they_go() {
    let census = Census::new();
    let cache = Cache::new("ways").unwrap();
    let mut kept = Vec::new();
    for number in 0..MANY {
        let value = cache.make(Counted::new(&census, number));
        value.check();
        match number % 4 {
            0 => drop(value),
            1 => assert_eq!(value.into_inner().number, number),
            2 => cache.retire(value),
            _ => kept.push(value),
        }
    }
    cache.barrier().unwrap();
    assert_eq!(census.counts(), (MANY, MANY / 4 * 3));
    assert_eq!(kept.iter().map(|value| value.number).sum::<usize>(), MANY / 4 * (3 + MANY - 1) / 2);
    drop(kept);
    cache.destroy().unwrap(); // fails if one were live
    assert_eq!(census.counts(), (MANY, MANY));
}

#[test]
#[cfg_attr(miri, ignore)] // the cache is kept, which miri would call a leak
fn values_may_outlive_their_cache() {
    let census = Census::new();
    let cache = Cache::new("outlived").unwrap();
    let value = cache.make(Counted::new(&census, 7));
    let (cache, error) = cache.destroy().unwrap_err();
    assert_eq!(error.raw_os_error(), Some(EBUSY));
    drop(cache);
    value.check();
    drop(value);
    assert_eq!(census.counts(), (1, 1));
}

#[test]
fn what_panics_loses_nothing() {
    static DROPS: AtomicUsize = AtomicUsize::new(0);
    struct Panics(#[allow(dead_code)] String);
    impl Panics {
        fn new() -> Panics {
            panic!("expected: a constructor")
        }
    }
    impl Drop for Panics {
        fn drop(&mut self) {
            DROPS.fetch_add(1, Relaxed);
            panic!("expected: a drop")
        }
    }
    let cache = Cache::new("panics").unwrap();
    assert!(catch_unwind(AssertUnwindSafe(|| cache.make(Panics::new()))).is_err());
    let value = cache.make(Panics("box".into()));
    assert!(catch_unwind(AssertUnwindSafe(|| drop(value))).is_err());
    for _ in 0..10 {
        cache.retire(cache.make(Panics("retired".into())));
    }
    cache.barrier().unwrap();
    assert_eq!(DROPS.load(Relaxed), 11);
    cache.destroy().unwrap();
}

#[test]
fn values_that_own_values_of_caches() {
    struct Outer {
        inner: Option<CacheBox<Outer>>,
        counted: CacheBox<Counted>,
    }
    let census = Census::new();
    let counts = Cache::new("inner").unwrap();
    let cache = Cache::new("outer").unwrap();
    for number in 0..MANY / 10 {
        let mut chain = None;
        for _ in 0..5 {
            let counted = counts.make(Counted::new(&census, number));
            chain = Some(cache.make(Outer { inner: chain, counted }));
        }
        let chain = chain.unwrap();
        chain.counted.check();
        if number % 2 == 0 {
            cache.retire(chain);
        } else {
            drop(chain.into_inner().inner);
        }
    }
    drop(cache);
    counts.destroy().unwrap();
    assert_eq!(census.counts(), (MANY / 2, MANY / 2));
}

#[test]
fn values_move_between_threads() {
    let census = Census::new();
    let cache = Arc::new(Cache::new("threads").unwrap());
    let current = Arc::new(Atomic::<Counted>::null());
    let threads: Vec<_> = (0..4)
        .map(|thread| {
            let (census, cache, current) = (census.clone(), cache.clone(), current.clone());
            thread::spawn(move || {
                for number in 0..MANY / 2 {
                    let guard = epoch::pin();
                    if thread % 2 == 0 {
                        let new = cache.make(Counted::new(&census, number));
                        let old = current.swap(new, AcqRel, &guard);
                        // SAFETY: the swap unlinked it, for this thread alone.
                        unsafe { cache.retire_shared(old) };
                    // SAFETY: loaded under a guard, and published by Release.
                    } else if let Some(value) = unsafe { current.load(Acquire, &guard).as_ref() } {
                        value.check();
                    }
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|one| one.join().unwrap());
    let guard = epoch::pin();
    let last = current.swap(epoch::Shared::null(), AcqRel, &guard);
    // SAFETY: as above.
    unsafe { cache.retire_shared(last) };
    drop(guard);
    Arc::try_unwrap(cache).unwrap().destroy().unwrap();
    assert_eq!(census.counts(), (MANY, MANY));
}

#[test]
fn retired_values_wait_for_guards() {
    let census = Census::new();
    let cache = Cache::new("wait").unwrap();
    let guard = epoch::pin();
    let place = Atomic::null();
    place.store(cache.make(Counted::new(&census, 1)), Release);
    let found = place.load(Acquire, &guard);
    cache.retire(cache.make(Counted::new(&census, 2)));
    // SAFETY: no thread reads the place from now on.
    unsafe { cache.retire_shared(found) };
    // SAFETY: null is ignored.
    unsafe { cache.retire_shared(epoch::Shared::null()) };
    // SAFETY: loaded under a guard that is still there.
    unsafe { found.deref() }.check();
    assert_eq!(census.counts(), (2, 0));
    drop(guard);
    cache.barrier().unwrap();
    assert_eq!(census.counts(), (2, 2));
}

#[test]
fn a_failed_exchange_gives_the_box_back() {
    let census = Census::new();
    let cache = Cache::new("exchange").unwrap();
    let place = Atomic::null();
    let guard = epoch::pin();
    let first = cache.make(Counted::new(&census, 1));
    let found =
        place.compare_exchange(epoch::Shared::null(), first, AcqRel, Acquire, &guard).unwrap();
    let second = cache.make(Counted::new(&census, 2));
    let error =
        place.compare_exchange(epoch::Shared::null(), second, AcqRel, Acquire, &guard).unwrap_err();
    assert_eq!((error.new.number, error.current), (2, found));
    // SAFETY: no other thread can find it any more.
    unsafe { cache.retire_shared(found) };
    drop(error.new);
    drop(guard);
    drop(cache);
    assert_eq!(census.counts(), (2, 2));
}

#[test]
#[cfg_attr(miri, ignore)] // the stand-in for the library ends no cache later
fn a_cache_in_a_value_of_a_cache_ends() {
    let census = Census::new();
    let outer = Cache::new("outer").unwrap();
    for number in 0..100 {
        let inner = Cache::new("inner").unwrap();
        inner.retire(inner.make(Counted::new(&census, number)));
        outer.retire(outer.make(inner));
    }
    outer.barrier().unwrap();
    while census.counts() != (100, 100) {
        std::thread::yield_now(); // a thread of the library ends the inner ones
    }
}

#[test]
fn waits_that_could_not_end_are_refused() {
    let cache = Cache::new("refused").unwrap();
    let guard = epoch::pin();
    cache.retire(cache.make(String::from("waits")));
    assert_eq!(cache.barrier().unwrap_err().raw_os_error(), Some(EDEADLK));
    let (cache, error) = cache.destroy().unwrap_err();
    assert_eq!(error.raw_os_error(), Some(EDEADLK));
    drop(guard);
    cache.destroy().unwrap();
}

#[test]
#[cfg_attr(miri, ignore)] // only the library refuses types
fn types_of_every_size() {
    #[repr(align(4096))]
    struct Page(u8);
    #[repr(align(8192))]
    struct TooAligned(#[allow(dead_code)] u8);
    let pages = Cache::new("pages").unwrap();
    let page = pages.make(Page(1));
    assert_eq!((&*page as *const Page as usize % 4096, page.0), (0, 1));
    let nothing = Cache::new("nothing").unwrap();
    nothing.retire(nothing.make(()));
    let bytes = Cache::new("bytes").unwrap();
    assert_eq!(*bytes.make(3_u8), 3);
    assert_eq!(Cache::<TooAligned>::new("aligned").unwrap_err().raw_os_error(), Some(EINVAL));
    assert_eq!(Cache::<[u8; 131_073]>::new("large").unwrap_err().raw_os_error(), Some(EINVAL));
    assert_eq!(Cache::<u8>::new("").unwrap_err().raw_os_error(), Some(EINVAL));
    assert!(Cache::<u8>::new("a\0b").is_err());
}
