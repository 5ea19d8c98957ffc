// SPDX-License-Identifier: MIT
//! Makes modules of the crate's own text (rust/prudence/src/garbage): one without a change, and one for each mutant. Atomics, grace
//! periods and memory come from src/own.rs.
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
const MODULES: [(&str, &str, &str); 5] = [
    ("sound", "", ""),
    ("put_relaxed", "bag.as_ptr(), AcqRel, Relaxed", "bag.as_ptr(), Relaxed, Relaxed"),
    ("taken_relaxed", "swap(ptr::null_mut(), AcqRel)", "swap(ptr::null_mut(), Relaxed)"),
    ("tells_nobody", "self.enter().or_else(|| {\n            self.news.events.fetch_add(1, SeqCst);", "self.enter().or_else(|| {"),
    ("looks_once", "if !goes_on && self.news.events.load(SeqCst) == events {", "if !goes_on {"),
];

fn main() {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR").unwrap());
    let sources = root.join("../../../rust/prudence/src/garbage");
    println!("cargo:rerun-if-changed={}", sources.display());
    println!("cargo:rerun-if-changed=build.rs");
    let text: String = PARTS.iter().map(|part| module(part, &sources)).collect();
    let text = TURNED.iter().fold(text, |text, (from, to)| replaced(&text, from, to));
    let mut out = String::new();
    for (name, from, to) in MODULES {
        let text = if from.is_empty() { text.clone() } else { replaced(&text, from, to) };
        let cases = root.join("src/own_cases.rs");
        write!(out, "pub mod {name} {{\nmod garbage {{\npub(crate) use entry::Entry;\npub(crate) use stages::Garbage;\n{text}}}\ninclude!({cases:?});\n}}\n").unwrap();
    }
    fs::write(Path::new(&env::var("OUT_DIR").unwrap()).join("own.rs"), out).unwrap();
}

fn module(name: &str, sources: &Path) -> String {
    let text = fs::read_to_string(sources.join(name).with_extension("rs")).unwrap();
    format!("#[allow(dead_code)]\nmod {name} {{\n{text}}}\n")
}

fn replaced(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "the crate has no longer: {from}");
    text.replace(from, to)
}
