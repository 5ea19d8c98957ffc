#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: timeout 1200 (compiles two crates and their tests, and C in make test-long)
# ctest: cost 30
"""The crates of Rust: bindings are those of the library, each unsafe block has its reason, and their own tests pass.

Nothing is fetched. Debian's cargo is taken before a newer one, because the crates promise to work with it.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DEEP = os.environ.get("PRUDENCE_MODELS") == "deep"  # make test-long
RUST = ROOT / "rust"
BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build")).resolve()
CARGO = shutil.which("cargo", path="/usr/bin") or shutil.which("cargo")
SKIPPED = 77
# Names of liburcu, variables of threads, and fast paths that only <prudence/inline.h> calls.
OTHER_NAMES = re.compile(r"(?!prudence_|scm_)|prudence_(urcu_|inline\d_|\w+_self$|routes2_create$)")
UNSAFE = re.compile(r"\bunsafe (?:\{|impl\b)")


def cargo(*arguments, **more):
    environment = {**os.environ, "PATH": f"{Path(CARGO).parent}:{os.environ['PATH']}", "PRUDENCE_LIB_DIR": str(BUILD),
                   "LD_LIBRARY_PATH": str(BUILD), "CARGO_TARGET_DIR": str(BUILD / "rust"), "RUST_BACKTRACE": "0", **more}
    for name in "RUSTC", "RUSTDOC", "RUSTFLAGS":
        environment.pop(name, None)
    return subprocess.run([CARGO, *arguments], cwd=RUST, env=environment, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)


def without_reason(text):
    """The numbers of lines with an unsafe block or impl, of which neither the statement nor the lines before say why."""
    lines, found = text.splitlines(), []
    for number, line in enumerate(lines):
        if not UNSAFE.search(line.partition("//")[0]):
            continue
        before = number
        while before and number - before < 10 and lines[before - 1].strip() not in ("", "}"):
            before -= 1
        if not any("SAFETY:" in one for one in lines[before:number + 1]):
            found.append(number + 1)
    return found


class Rust(unittest.TestCase):
    @unittest.skipUnless(shutil.which("clang"), "there is no clang, which reads the headers")
    def test_bindings_are_those_of_the_interface(self):
        wanted = subprocess.run([sys.executable, RUST / "bind"], check=True, text=True, capture_output=True).stdout
        self.assertEqual((RUST / "prudence-sys/src/bindings.rs").read_text(), wanted, "rust/bind --update renews them")

    def test_bindings_have_every_function(self):
        names = {line.split()[0] for line in (ROOT / "cmake/exported-symbols.txt").read_text().splitlines()}
        bound = set(re.findall(r"pub fn (\w+)\(", (RUST / "prudence-sys/src/bindings.rs").read_text()))
        self.assertEqual({name for name in names - bound if not OTHER_NAMES.match(name)}, set())
        self.assertEqual(bound - names, set())

    def test_each_unsafe_has_its_reason(self):
        sources = sorted(source for source in RUST.rglob("*.rs") if source.name != "bindings.rs")
        self.assertGreater(len(sources), 8)
        self.assertEqual({source.name: without_reason(source.read_text()) for source in sources
                          if without_reason(source.read_text())}, {})
        self.assertEqual(without_reason("a();\n\nunsafe { b() }\n// SAFETY: c.\nunsafe impl D for E {}\n"), [3])

    def test_crates_need_no_others(self):
        packages = tomllib.loads((RUST / "Cargo.lock").read_text())["package"]
        self.assertEqual([package["name"] for package in packages], ["prudence", "prudence-sys"])

    @unittest.skipUnless(DEEP, "make test-long compiles the crates")
    def test_crates(self):
        result = cargo("test", "--offline", "--locked", "--workspace")
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertEqual(result.stdout.count("a_cache_that_is_dropped_drops_its_retired_values ... ok"), 1, result.stdout)
        self.assertGreaterEqual(result.stdout.count("compile fail ... ok"), 20, result.stdout)

    @unittest.skipUnless(DEEP, "make test-long compiles the crates")
    def test_examples(self):
        for name, said in (("config", "the timeout is 999 s\n"),
                           ("hazard", "the report reads version 0; tables that wait for it: 1\n"
                                      "an article cost 20 and costs 100020\n")):
            with self.subTest(name):
                result = cargo("run", "--offline", "--locked", "--quiet", "--example", name)
                self.assertEqual((result.returncode, result.stdout), (0, said))

    def test_the_compiler_is_the_oldest_that_is_promised(self):
        promised = {tomllib.loads(manifest.read_text())["package"]["rust-version"] for manifest in RUST.glob("*/Cargo.toml")}
        self.assertEqual(len(promised), 1)
        promised = promised.pop()
        for page in "docs/how-to/rust.md", "rust/prudence/README.md":
            self.assertIn(f"Rust {promised}", (ROOT / page).read_text())
        if Path(CARGO).parent == Path("/usr/bin"):
            said = subprocess.run([Path(CARGO).parent / "rustc", "--version"], check=True, text=True, capture_output=True).stdout
            self.assertIn(f" {promised}.", said)

    @unittest.skipUnless(DEEP, "make test-long compiles the crates")
    def test_packages_have_all_that_builds_them(self):
        result = cargo("package", "--offline", "--allow-dirty", "--no-verify", "-p", "prudence-sys")
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertNotIn("warning", result.stdout)
        files = cargo("package", "--offline", "--allow-dirty", "--list", "-p", "prudence-sys").stdout.splitlines()
        self.assertLess({"LICENSE", "build.rs", "src/bindings.rs", "c/src/core/slab/alloc.c", "c/include/prudence/prudence.h"}, set(files))
        self.assertEqual([name for name in files if "/kernel/" in name], [])
        files = cargo("package", "--offline", "--allow-dirty", "--list", "-p", "prudence").stdout.splitlines()
        self.assertLess({"LICENSE", "README.md", "src/lib.rs", "src/garbage/bag.rs", "src/hazard/pointer.rs", "examples/config.rs"}, set(files))

    @unittest.skipUnless(DEEP, "make test-long compiles all of C")
    def test_the_crate_builds_the_library_itself(self):
        result = cargo("test", "--offline", "--locked", "-p", "prudence", "--test", "cache", "--test", "seize", "--test", "global",
                       PRUDENCE_VENDORED="1", LD_LIBRARY_PATH="", CARGO_TARGET_DIR=str(BUILD / "rust-vendored"))
        self.assertEqual(result.returncode, 0, result.stdout)
        program = next(name for name in (BUILD / "rust-vendored/debug/deps").glob("cache-*") if not name.suffix)
        libraries = subprocess.run(["ldd", program], check=True, text=True, capture_output=True).stdout
        self.assertNotIn("libprudence", libraries)

    @unittest.skipUnless(DEEP, "make test-long compiles all of C")
    def test_the_crate_has_sequences_with_each_linker(self):
        """Works as tests/linking/test_linkers.py, for the library that the crate builds."""
        machine = subprocess.run([BUILD / "bin/machine"], check=True, text=True, capture_output=True).stdout
        right = "rseq" if "sequences=1" in machine else "lock"
        for linker in "bfd", "gold", "lld", "mold":
            with self.subTest(linker):
                result = cargo("rustc", "--offline", "--locked", "--quiet", "-p", "prudence-sys", "--example", "fast_paths", "--",
                               f"-Clink-arg=-fuse-ld={linker}", PRUDENCE_VENDORED="1", CARGO_TARGET_DIR=str(BUILD / "rust-vendored"))
                self.assertEqual(result.returncode, 0, result.stdout)
                said = subprocess.run([BUILD / "rust-vendored/debug/examples/fast_paths"], check=True, text=True, capture_output=True).stdout
                self.assertEqual(said.split()[0], right, said)

    @unittest.skipUnless(DEEP, "make test-long compiles the crates")
    def test_a_missing_library_is_named(self):
        self.assertEqual(cargo("build", "--offline", "--locked").returncode, 0)
        programs = (BUILD / "rust/debug/build").glob("prudence-sys-*/build-script-build")
        program = max(programs, key=lambda one: one.stat().st_mtime)
        with tempfile.TemporaryDirectory() as out:
            environment = {"PATH": os.environ["PATH"], "PKG_CONFIG_LIBDIR": "/nonexistent", "CC": "/nonexistent/cc",
                           "CARGO_MANIFEST_DIR": str(RUST / "prudence-sys"), "OUT_DIR": out}
            for system, sentences in (("linux", ("its C is not built: /nonexistent/cc", "set PRUDENCE_LIB_DIR to the folder of libprudence.so")),
                                      ("macos", ("Prudence works on Linux alone, and the program is built for 'macos'",))):
                result = subprocess.run([program], env={**environment, "CARGO_CFG_TARGET_OS": system}, text=True, capture_output=True)
                self.assertEqual(result.returncode, 1)
                for sentence in sentences:
                    self.assertIn(sentence, result.stderr)


PROGRAM = """prudence::global_allocator!();
fn main() {
    println!("{}", vec![1; 1000].iter().sum::<i32>());
    prudence::synchronize();
}
"""
# For a package that depends on prudence-sys as well.
SCRIPT = """fn main() {
    let folder = std::env::var("DEP_PRUDENCE_LIBDIR").unwrap();
    println!("cargo:rustc-link-arg=-Wl,-rpath,{folder}");
}
"""
# In each statement the program loses what it must keep.
IGNORED = """use prudence::{epoch::*, hazard::*, seize, *};
fn main() {
    pin();
    is_pinned();
    let (place, guard) = (Atomic::new(1), &pin());
    place.load(std::sync::atomic::Ordering::SeqCst, guard);
    place.swap(Owned::new(2), std::sync::atomic::Ordering::SeqCst, guard);
    Owned::new(1).into_shared(guard);
    let collector = seize::Collector::new();
    collector.enter();
    collector.enter_owned();
    default_collector().register();
    HazardPointer::new();
    Reclaimer::new();
    Cache::new("values").unwrap().make(1);
    barrier();
}
"""


@unittest.skipUnless(DEEP, "make test-long compiles the crates")
class Users(unittest.TestCase):
    """Packages outside of the tree, as the page of the crate says, and the library in a folder that the loader does not know."""

    PAGE = (RUST / "prudence/README.md").read_text()

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder, cls.prefix = Path(folder.name), Path(folder.name, "prefix")
        subprocess.run(["cmake", "--install", BUILD, "--prefix", cls.prefix], check=True, stdout=subprocess.DEVNULL)

    def package(self, name, source, script=None, way="path"):
        """Makes a package with a line of the page; the clone that it names is this tree."""
        folder = self.folder / name
        (folder / "src").mkdir(parents=True)
        line = re.search(rf"^(?:# )?(prudence = {{ {way} = .*)$", self.PAGE, re.M)[1]
        line = line.replace("../prudence/", f"{ROOT}/").replace("/home/you/prudence", str(ROOT))
        lines = ["[package]", f'name = "{name}"', 'version = "0.0.0"', 'edition = "2021"', "[dependencies]", line]
        if script:
            lines.append(f'prudence-sys = {{ path = "{RUST}/prudence-sys" }}')
            (folder / "build.rs").write_text(script)
        (folder / "Cargo.toml").write_text("\n".join(lines) + "\n")
        (folder / "src/main.rs").write_text(source)
        return folder

    def run_in(self, folder, command, **more):
        environment = {name: value for name, value in os.environ.items()
                       if name not in ("LD_LIBRARY_PATH", "PRUDENCE_LIB_DIR", "RUSTC", "RUSTDOC", "RUSTFLAGS", "CARGO_TARGET_DIR")}
        environment |= {"PATH": f"{Path(CARGO).parent}:{os.environ['PATH']}", "PKG_CONFIG_PATH": str(self.prefix / "lib/pkgconfig"), **more}
        done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def test_cargo_starts_the_program(self):
        folder = self.package("started", PROGRAM)
        self.assertEqual(self.run_in(folder, "cargo run --quiet"), "1000\n")
        done = subprocess.run([folder / "target/debug/started"], text=True, capture_output=True)
        self.assertIn("libprudence.so.0", done.stderr, "the library is where the loader finds it, so nothing is tested here")

    def test_an_address_of_the_repository(self):
        said = subprocess.run(["git", "rev-parse", "--is-shallow-repository"], cwd=ROOT, text=True, capture_output=True)
        if said.stdout != "false\n":
            self.skipTest("this tree is no whole clone")
        folder = self.package("cloned", PROGRAM, way="git")
        self.assertEqual(self.run_in(folder, "cargo run --quiet", CARGO_HOME=str(self.folder / "home"))[-5:], "1000\n")

    def test_the_program_starts_by_itself(self):
        command = re.search(r"```sh\n(RUSTFLAGS=.*)\n```", self.PAGE)[1]
        for name, how, source in (("flags", command, None), ("script", "cargo build", SCRIPT)):
            with self.subTest(name):
                folder = self.package(name, PROGRAM, source)
                self.run_in(folder, how)
                self.assertEqual(self.run_in(folder, f"target/debug/{name}"), "1000\n")

    def test_what_must_be_kept(self):
        said = self.run_in(self.package("ignored", IGNORED), "cargo build --message-format short")
        lines = [number for number, line in enumerate(IGNORED.splitlines(), 1) if line.startswith("    ") and "let" not in line]
        self.assertEqual(sorted(int(number) for number in re.findall(r"main\.rs:(\d+):\d+: warning: unused", said)), lines, said)


class Manifests(unittest.TestCase):
    """Registries show these fields of the crates."""

    def test_they_say_what_is_so(self):
        manifests = sorted(RUST.glob("*/Cargo.toml"))
        self.assertEqual(len(manifests), 3)
        for path in manifests:
            package = tomllib.loads(path.read_text())["package"]
            source = (path.parent / "src/lib.rs").read_text()
            with self.subTest(package["name"]):
                shown = package["metadata"]["docs"]["rs"]
                self.assertIn(shown["default-target"], shown["targets"])
                self.assertEqual([target for target in shown["targets"] if "-linux-" not in target], [])
                self.assertEqual((path.parent / "LICENSE").read_text(), (ROOT / "LICENSE").read_text())
                alone = "#![no_std]" in source and "extern crate std" not in source.partition("#[cfg(test)]")[0]
                self.assertEqual("no-std" in package["categories"], alone)


if __name__ == "__main__":
    if not CARGO:
        print("test_rust: there is no cargo: not run", file=sys.stderr)
        sys.exit(1 if os.environ.get("CI") else SKIPPED)
    unittest.main()
