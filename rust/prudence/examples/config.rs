// SPDX-License-Identifier: MIT
//! The code of docs/how-to/rust.md: settings that readers follow while a writer replaces them, and
//! sessions in a cache.

use prudence::epoch::{self, Atomic, Owned};
use prudence::{Cache, CacheBox};
use std::io;
use std::sync::atomic::Ordering::{AcqRel, Acquire};
use std::thread;

prudence::global_allocator!();

struct Config {
    timeout: u64,
}

static CURRENT: Atomic<Config> = Atomic::null();

fn timeout() -> Option<u64> {
    let guard = &epoch::pin();
    // SAFETY: loaded under a guard, published by AcqRel, and never changed.
    unsafe { CURRENT.load(Acquire, guard).as_ref() }.map(|config| config.timeout)
}

fn set_timeout(timeout: u64) {
    let new = Owned::new(Config { timeout }); // before the guard, where it may wait for readers
    let guard = &epoch::pin();
    let old = CURRENT.swap(new, AcqRel, guard);
    // SAFETY: the swap has unlinked `old`, for this thread alone.
    unsafe { guard.defer_destroy(old) };
}

struct Session {
    user: String,
}

fn reopen(sessions: &Cache<Session>, slot: &mut CacheBox<Session>, user: &str) {
    let next = sessions.make(Session { user: user.to_string() });
    let old = std::mem::replace(slot, next);
    sessions.retire(old); // dropped when its readers have ended
}

fn main() -> io::Result<()> {
    set_timeout(1);
    let readers: Vec<_> = (0..2)
        .map(|_| {
            thread::spawn(|| {
                for _ in 0..10_000 {
                    assert!(timeout().unwrap() > 0);
                }
            })
        })
        .collect();
    for seconds in 2..1_000 {
        set_timeout(seconds);
    }
    readers.into_iter().for_each(|reader| reader.join().unwrap());

    let sessions = Cache::new("session")?;
    let mut slot = sessions.make(Session { user: "ada".to_string() });
    reopen(&sessions, &mut slot, "grace");
    assert_eq!(slot.user, "grace");
    drop(slot);
    sessions.destroy().map_err(|(_, error)| error)?;
    println!("the timeout is {} s", timeout().unwrap());
    Ok(())
}
