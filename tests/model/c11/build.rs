// SPDX-License-Identifier: MIT
//! Makes modules of the crate's own text (rust/prudence/src: garbage, and the stack of reclaimer.rs): one without a change, and one for
//! each mutant. Atomics, grace periods and memory come from src/own.rs.
use std::env;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

const PARTS: [&str; 5] = ["bag", "calling", "entry", "lanes", "stages"];
/// Replacements that loom needs. Each applies at least once.
const TURNED: [(&str, &str); 15] = [
    ("std::sync::atomic", "crate::own::atomic"),
    ("std::thread::sleep", "crate::own::sleep"),
    ("prudence_sys as sys", "crate::own::sys"),
    ("crate::global;", "crate::own::global;"),
    ("crate::thread::thread_id", "crate::own::thread::thread_id"),
    ("crate::{owned_sections, thread}", "crate::own::{owned_sections, thread}"),
    ("super::forks::process", "crate::own::process"),
    ("thread_local! {", "loom::thread_local! {"),
    ("const { Cell::new(ptr::null()) }", "Cell::new(ptr::null())"),
    // A thread that uses a bag owns the bag.
    ("let count = (*bag.as_ptr()).count;", "crate::own::global::owned(bag.as_ptr().cast());\nlet count = (*bag.as_ptr()).count;"),
    ("unsafe { (*bag.as_ptr()).count }", "unsafe {\ncrate::own::global::owned(bag.as_ptr().cast());\n(*bag.as_ptr()).count\n}"),
    ("pub(super) const fn new(limit", "pub(crate) fn new(limit"),
    ("const fn", "fn"),
    ("const LANES: usize = 8;", "const LANES: usize = 1;"),
    ("#[allow(clippy::declare_interior_mutable_const)] // each lane is a copy\n        const LANE: Lane = Lane { bag: AtomicPtr::new(ptr::null_mut()) };\n        Lanes { all: [LANE; LANES] }",
     "Lanes { all: [Lane { bag: AtomicPtr::new(ptr::null_mut()) }] }"),
];
/// Each module's name, and the change of a mutant: text, and its replacement.
const MODULES: [(&str, &str, &str); 8] = [
    ("sound", "", ""),
    ("put_relaxed", "bag.as_ptr(), AcqRel, Relaxed", "bag.as_ptr(), Relaxed, Relaxed"),
    ("taken_relaxed", "swap(mark, AcqRel)", "swap(mark, Relaxed)"),
    ("tells_nobody", "self.enter().or_else(|| {\n            self.news.events.fetch_add(1, SeqCst);", "self.enter().or_else(|| {"),
    ("looks_once", "if !goes_on && self.news.events.load(SeqCst) == events {", "if !goes_on {"),
    ("never_looks_again", "kept & READY != 0 || thread::count_end() >> (u32::BITS - one_of) == 0", "kept & READY != 0 || one_of == 0"),
    ("leaves_no_mark", "(place as *const u16 as *mut u8).wrapping_add(1).cast()", "{\nlet _ = place;\nptr::null_mut()\n}"),
    ("adds_outside", "let closed = thread::within(", "let closed = thread::outside("),
];

/// The same of the reclaimer, whose values go to its stack as if readers had ended.
const RECLAIMER_TURNED: [(&str, &str); 4] = [
    ("std::sync::atomic", "crate::own::atomic"),
    ("crate::epoch::{", "crate::own::epoch::{"),
    ("crate::garbage::{Entry, EPOCHS}", "crate::own::ended::{Entry, EPOCHS}"),
    ("use crate::wait;", "use crate::own::wait;"),
];
const RECLAIMER_MODULES: [(&str, &str, &str); 4] = [
    ("reclaimer", "", ""),
    ("pushed_relaxed", "node, Release, Relaxed", "node, Relaxed, Relaxed"),
    ("drained_relaxed", "swap(ptr::null_mut(), Acquire)", "swap(ptr::null_mut(), Relaxed)"),
    ("closed_relaxed", "swap(CLOSED, Acquire)", "swap(CLOSED, Relaxed)"),
];

fn main() {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR").unwrap());
    let sources = root.join("../../../rust/prudence/src");
    println!("cargo:rerun-if-changed={}", sources.display());
    println!("cargo:rerun-if-changed=build.rs");
    let parts: String = PARTS.iter().map(|part| module(part, &sources.join("garbage"))).collect();
    let garbage = format!("mod garbage {{\npub(crate) use entry::Entry;\npub(crate) use stages::Garbage;\n{parts}}}\n");
    let mut out = modules(&garbage, &TURNED, &MODULES, &root.join("src/own_cases.rs"));
    out += &modules(&module("text", &sources.join("reclaimer.rs")), &RECLAIMER_TURNED, &RECLAIMER_MODULES, &root.join("src/reclaimer_cases.rs"));
    fs::write(Path::new(&env::var("OUT_DIR").unwrap()).join("own.rs"), out).unwrap();
}

/// The text with and without each change, with the same cases.
fn modules(text: &str, turned: &[(&str, &str)], changes: &[(&str, &str, &str)], cases: &Path) -> String {
    let text = turned.iter().fold(text.to_string(), |text, (from, to)| replaced(&text, from, to));
    let mut out = String::new();
    for (name, from, to) in changes {
        let text = if from.is_empty() { text.clone() } else { replaced(&text, from, to) };
        write!(out, "pub mod {name} {{\n{text}include!({cases:?});\n}}\n").unwrap();
    }
    out
}

/// `from` is a file, or the folder of one that has the module's name.
fn module(name: &str, from: &Path) -> String {
    let file = if from.is_dir() { from.join(name).with_extension("rs") } else { from.to_path_buf() };
    let text = fs::read_to_string(file).unwrap();
    format!("#[allow(dead_code)]\nmod {name} {{\n{text}}}\n")
}

fn replaced(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "the crate has no longer: {from}");
    text.replace(from, to)
}
